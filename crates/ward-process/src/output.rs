//! The three streams of a program, and what is collected from them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;

use crate::process_spec::{OutputTarget, ProcessSpec, StdinSource};
use crate::sys::recorder;
use crate::sys::wait::{ReapOutcome, reap, wait_readable};

/// Descriptors 0, 1 and 2 belong to the program, so ours lie above.
const ABOVE_STDIO: i32 = 3;

/// The streams as the child gets them, and what stays with us.
pub(crate) struct StdStreams {
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) stdout: Option<StreamCapture>,
    pub(crate) stderr: Option<StreamCapture>,
}

/// The first bytes of a stream; the rest is read and dropped, so that the program never blocks.
#[derive(Debug)]
pub struct StreamCapture {
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    limit: usize,
    total: u64,
}

impl StreamCapture {
    fn new(pipe: OwnedFd, limit: usize) -> Self {
        Self { pipe: Some(pipe), bytes: Vec::new(), limit, total: 0 }
    }

    /// What was kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How much the program wrote in all, so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether something was dropped.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// Readable when there is something to take; `None` after the end of the stream.
    #[must_use]
    pub fn readiness_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what there is without waiting, at most a mebibyte at once so that a torrent does not
    /// keep the caller from its other work.
    ///
    /// # Errors
    /// When the pipe can't be read.
    pub fn read_available(&mut self) -> io::Result<()> {
        const AT_ONCE: usize = 1 << 20;
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut buffer = [0_u8; 16 * 1024];
        let mut taken = 0;
        while taken < AT_ONCE {
            let length = match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => {
                    self.pipe = None;
                    break;
                }
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            taken += length;
            self.total += length as u64;
            let keep = length.min(self.limit - self.bytes.len());
            self.bytes.extend_from_slice(buffer.get(..keep).unwrap_or_default());
        }
        Ok(())
    }
}

/// The process that records a stream.
pub(crate) struct OutputRecorder(OwnedFd);

impl OutputRecorder {
    /// Whether the last byte has been written and nothing is left of it. Never waits.
    pub(crate) fn has_finished(&self) -> bool {
        // What can't be reaped, because it is not our child or somebody was faster, is not ours.
        !matches!(reap(self.0.as_fd()), Ok(ReapOutcome::Running))
    }

    /// After the end of the tree: whoever stopped it can't do so again.
    pub(crate) fn resume(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::CONT);
    }

    /// Waits for the last bytes, at most so long.
    pub(crate) fn wait_until_finished(&self, at_most: Duration) -> bool {
        let _ = wait_readable(self.0.as_fd(), Some(at_most));
        self.has_finished()
    }

    /// Its stream is held open by somebody outside of the tree, or it hangs.
    pub(crate) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::KILL);
    }
}

/// Opens everything that the order names. The error comes with the name of the stream; recorders that
/// were made by then are in the list all the same.
pub(crate) fn open_streams(
    order: &mut ProcessSpec,
    recorders: &mut Vec<OutputRecorder>,
) -> Result<StdStreams, (&'static str, io::Error)> {
    let stdin = open_input(std::mem::take(&mut order.stdin)).map_err(|error| ("standard input", error))?;
    let own = rustix::stdio::stdout();
    let (stdout, captured_stdout) = open_output(std::mem::take(&mut order.stdout), own, recorders)
        .map_err(|error| ("standard output", error))?;
    let (stderr, captured_stderr) = match order.stderr.take() {
        Some(output) => open_output(output, rustix::stdio::stderr(), recorders),
        None => copy_above_stdio(stdout.as_fd()).map(|fd| (fd, None)),
    }
    .map_err(|error| ("standard error", error))?;
    Ok(StdStreams { stdio: [stdin, stdout, stderr], stdout: captured_stdout, stderr: captured_stderr })
}

fn open_input(input: StdinSource) -> io::Result<OwnedFd> {
    match input {
        StdinSource::Null => open_null(),
        StdinSource::Inherit => copy_above_stdio(rustix::stdio::stdin()),
        StdinSource::FromFd(fd) => move_above_stdio(fd),
    }
}

fn open_output(
    output: OutputTarget,
    own: BorrowedFd<'_>,
    recorders: &mut Vec<OutputRecorder>,
) -> io::Result<(OwnedFd, Option<StreamCapture>)> {
    let plain = |fd: io::Result<OwnedFd>| fd.map(|fd| (fd, None));
    match output {
        OutputTarget::Null => plain(open_null()),
        OutputTarget::Inherit => plain(copy_above_stdio(own)),
        OutputTarget::ToFd(fd) => plain(move_above_stdio(fd)),
        OutputTarget::Capture { limit } => {
            let (reader, writer) = pipe_above_stdio()?;
            rustix::io::ioctl_fionbio(&reader, true)?;
            Ok((writer, Some(StreamCapture::new(reader, limit))))
        }
        OutputTarget::Record { path, limit } => {
            let file = move_above_stdio(open_recording(&path)?)?;
            let (reader, writer) = pipe_above_stdio()?;
            let nulls = open_null_stdio()?;
            let forked = recorder::spawn(&reader, &file, &nulls, limit)?;
            recorders.push(OutputRecorder(forked.pidfd));
            plain(Ok(writer))
        }
    }
}

/// The recorded program's user must not choose what is written to: by a link of either kind, by a file
/// that is theirs, or by a pipe that nobody reads.
fn open_recording(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    let found = rustix::fs::fstat(&file)?;
    let refuse = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return refuse("it is no plain file");
    }
    if found.st_nlink != 1 {
        return refuse("it has another name elsewhere");
    }
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return refuse("it belongs to another user");
    }
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

fn copy_above_stdio(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, ABOVE_STDIO)?)
}

/// The same descriptor where it lies high enough, which it nearly always does.
pub(crate) fn move_above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= ABOVE_STDIO { Ok(fd) } else { copy_above_stdio(fd.as_fd()) }
}

/// A pipe whose ends don't get in the way of the program's streams: reader and writer.
pub(crate) fn pipe_above_stdio() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((move_above_stdio(reader)?, move_above_stdio(writer)?))
}

fn open_null() -> io::Result<OwnedFd> {
    move_above_stdio(rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Three handles on the null device, for a process that keeps no stream of the program's.
pub(crate) fn open_null_stdio() -> io::Result<[OwnedFd; 3]> {
    let null = open_null()?;
    Ok([null.try_clone()?, null.try_clone()?, null])
}
