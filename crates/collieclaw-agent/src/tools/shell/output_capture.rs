//! Captures the output of commands. Only the first part is kept, but everything is read, so that commands
//! never block on a full pipe.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The size of the pipe, and the amount that is read at once. The limit makes sure that a flood of output
/// can't delay the check of the deadline.
const PIPE_BYTES: usize = 1 << 20;

/// An output stream of a whole line.
pub(crate) struct CapturedStream {
    reader: OwnedFd,
    /// Kept open as long as further commands may write to the stream.
    writer: Option<Rc<OwnedFd>>,
    pub(crate) bytes: Vec<u8>,
    /// The number of bytes that were printed.
    pub(crate) total: u64,
    limit: usize,
    buffer: Box<[u8]>,
}

impl CapturedStream {
    pub(super) fn new(limit: usize) -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end is non-blocking, because programs don't expect `EAGAIN`.
        rustix::io::ioctl_fionbio(&reader, true)?;
        // A larger pipe saves context switches. A failure does no harm.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
        let writer = Some(Rc::new(writer));
        Ok(Self { reader, writer, bytes: Vec::new(), total: 0, limit, buffer: vec![0; 64 * 1024].into() })
    }

    pub(super) fn writer(&self) -> Option<Rc<OwnedFd>> {
        self.writer.clone()
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Reads the available output without waiting: at least everything that was in the pipe at the beginning.
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

    /// Appends a message of CollieClaw.
    pub(super) fn append_message(&mut self, text: &str) {
        // The output that was printed before has to come first. All of it is in the pipe, so one reading is enough; a
        // command that prints on could make a loop endless.
        let _ = self.read_available();
        self.total += text.len() as u64;
        let keep = text.len().min(self.limit.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(text.as_bytes().get(..keep).unwrap_or_default());
    }

    /// Reads the rest after all commands have ended.
    pub(super) fn drain(&mut self) {
        self.writer = None;
        let _ = self.read_available();
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// More output may be available.
    More,
    /// All available output was read.
    Drained,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_message_follows_the_output_before_it_even_if_a_command_floods_the_stream() {
        let mut stream = CapturedStream::new(1 << 30).unwrap();
        let flood = stream.writer.as_ref().unwrap().try_clone().unwrap();
        rustix::io::write(&flood, b"before").unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let writer = std::thread::spawn(move || {
            let block = vec![b'.'; PIPE_BYTES];
            // The write fails when the reader is closed.
            while !ended.load(Ordering::Relaxed) && rustix::io::write(&flood, &block).is_ok() {}
        });
        stream.append_message("message");
        assert!(stream.bytes.starts_with(b"before") && stream.bytes.ends_with(b"message"));
        assert!(stream.bytes.len() < 2 * PIPE_BYTES);
        ends.store(true, Ordering::Relaxed);
        drop(stream);
        writer.join().unwrap();
    }
}
