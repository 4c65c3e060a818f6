//! Opens the standard streams of a program, and captures or records its output.

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

/// Lowest descriptor that we use for ourselves. The child moves the program's streams to 0, 1 and 2 with
/// `dup2`, which would overwrite a descriptor of ours there.
const ABOVE_STDIO: i32 = 3;

/// The streams that the child gets, and the reading ends of those that the supervisor captures.
pub(crate) struct StdStreams {
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) stdout: Option<StreamCapture>,
    pub(crate) stderr: Option<StreamCapture>,
}

/// The captured first bytes of a stream. The rest is read and dropped, so that the program never blocks.
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

    /// Returns the bytes that were kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of bytes that the program has written so far, including dropped ones.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns true if bytes were dropped.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// Returns a descriptor that is readable when [`read_available`](Self::read_available) has something to
    /// read, or `None` after the end of the stream.
    #[must_use]
    pub fn readiness_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads the available bytes without waiting, at most a mebibyte in one call, so that a program that
    /// writes without pause doesn't keep the caller from other work.
    ///
    /// # Errors
    /// Fails if the pipe can't be read.
    pub fn read_available(&mut self) -> io::Result<()> {
        const MAX_READ: usize = 1 << 20;
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut buffer = [0_u8; 16 * 1024];
        let mut read = 0;
        while read < MAX_READ {
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
            read += length;
            self.total += length as u64;
            let keep = length.min(self.limit - self.bytes.len());
            self.bytes.extend_from_slice(buffer.get(..keep).unwrap_or_default());
        }
        Ok(())
    }
}

/// A handle on the recorder process of a stream (see [`recorder`]).
pub(crate) struct OutputRecorder(OwnedFd);

impl OutputRecorder {
    /// Returns true if the recorder has written the last byte and has been reaped. Never waits.
    pub(crate) fn has_finished(&self) -> bool {
        // A recorder that can't be reaped isn't our child or was reaped elsewhere in this process; either way
        // it needs no further care.
        !matches!(reap(self.0.as_fd()), Ok(ReapOutcome::Running))
    }

    /// Continues a recorder that a program of the tree has stopped with `SIGSTOP`. To be called after the end
    /// of the tree, when no program is left that could stop the recorder again.
    pub(crate) fn resume(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::CONT);
    }

    /// Waits until the recorder has finished, and returns false if that takes longer than `timeout`.
    pub(crate) fn wait_until_finished(&self, timeout: Duration) -> bool {
        let _ = wait_readable(self.0.as_fd(), Some(timeout));
        self.has_finished()
    }

    /// Kills a recorder that hangs or whose stream is held open by a process outside of the tree.
    pub(crate) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::KILL);
    }
}

/// Opens the three streams of a spec. The error names the stream. Recorders that were started before an error
/// are in `recorders`.
pub(crate) fn open_streams(
    spec: &mut ProcessSpec,
    recorders: &mut Vec<OutputRecorder>,
) -> Result<StdStreams, (&'static str, io::Error)> {
    let stdin = open_input(std::mem::take(&mut spec.stdin)).map_err(|error| ("standard input", error))?;
    let own_stdout = rustix::stdio::stdout();
    let (stdout, captured_stdout) = open_output(std::mem::take(&mut spec.stdout), own_stdout, recorders)
        .map_err(|error| ("standard output", error))?;
    let (stderr, captured_stderr) = match spec.stderr.take() {
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

/// Opens the file of a recording. The user of the recorded program must not be able to choose what is written
/// to, so symlinks, hard links, files of other users and anything that isn't a regular file (a pipe without a
/// reader would block us) are refused.
fn open_recording(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    let found = rustix::fs::fstat(&file)?;
    let refuse = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return refuse("not a regular file");
    }
    if found.st_nlink != 1 {
        return refuse("the file has more than one hard link");
    }
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return refuse("the file belongs to another user");
    }
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

fn copy_above_stdio(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, ABOVE_STDIO)?)
}

/// Returns the descriptor itself if it is 3 or higher, otherwise a duplicate that is.
pub(crate) fn move_above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= ABOVE_STDIO { Ok(fd) } else { copy_above_stdio(fd.as_fd()) }
}

/// Creates a pipe with both descriptors above the standard streams; returns reader and writer.
pub(crate) fn pipe_above_stdio() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((move_above_stdio(reader)?, move_above_stdio(writer)?))
}

fn open_null() -> io::Result<OwnedFd> {
    move_above_stdio(rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens the null device three times, for a helper process that must not keep the program's streams open.
pub(crate) fn open_null_stdio() -> io::Result<[OwnedFd; 3]> {
    let null = open_null()?;
    Ok([null.try_clone()?, null.try_clone()?, null])
}
