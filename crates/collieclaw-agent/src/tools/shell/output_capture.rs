//! What commands print: the first part is kept, the rest is read all the same, so that nobody ever waits for us.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// Bytes held in the pipe, and taken at once, so that a torrent doesn't keep us from noticing that the time is up.
const PIPE_BYTES: usize = 1 << 20;

/// A stream of the whole line.
pub(crate) struct CapturedStream {
    reader: OwnedFd,
    /// Held for as long as commands may come that print to it.
    writer: Option<Rc<OwnedFd>>,
    pub(crate) bytes: Vec<u8>,
    /// How much came in all.
    pub(crate) total: u64,
    limit: usize,
    buffer: Box<[u8]>,
}

impl CapturedStream {
    pub(super) fn new(limit: usize) -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a program doesn't expect to be told to try again.
        rustix::io::ioctl_fionbio(&reader, true)?;
        // With room in between, the program and we wake each other less often. It works without, too.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
        let writer = Some(Rc::new(writer));
        Ok(Self { reader, writer, bytes: Vec::new(), total: 0, limit, buffer: vec![0; 64 * 1024].into() })
    }

    /// Where commands print.
    pub(super) fn writer(&self) -> Option<Rc<OwnedFd>> {
        self.writer.clone()
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Takes what there is, without waiting.
    pub(super) fn read_available(&mut self) -> Result<ReadProgress, Errno> {
        let mut taken = 0;
        while taken < PIPE_BYTES {
            match rustix::io::read(&self.reader, &mut *self.buffer) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(ReadProgress::Drained),
                Ok(count) => {
                    taken += count;
                    self.total += count as u64;
                    let keep = count.min(self.limit.saturating_sub(self.bytes.len()));
                    self.bytes.extend_from_slice(self.buffer.get(..keep).unwrap_or_default());
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(ReadProgress::More)
    }

    /// Adds a word of our own.
    pub(super) fn append_message(&mut self, text: &str) {
        // In its place among what was printed before.
        while self.read_available() == Ok(ReadProgress::More) {}
        self.total += text.len() as u64;
        let keep = text.len().min(self.limit.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(text.as_bytes().get(..keep).unwrap_or_default());
    }

    /// Takes the rest. Nobody is left who could print more.
    pub(super) fn drain(&mut self) {
        self.writer = None;
        while self.read_available() == Ok(ReadProgress::More) {}
    }
}

/// How much was taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// There may be more.
    More,
    /// All there was.
    Drained,
}
