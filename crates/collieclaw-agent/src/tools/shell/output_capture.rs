//! Captures the output of commands. Only the beginning and the end are kept, but everything is read, so that
//! commands never block on a full pipe.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The size of the pipe, and the amount that is read at once. The limit makes sure that a flood of output
/// can't delay the check of the deadline.
const PIPE_BYTES: usize = 1 << 20;

/// The maximum size of the end that is kept: more than a model gets of one result.
const MAX_TAIL_BYTES: usize = 64 * 1024;

/// An output stream of a whole line.
pub(crate) struct CapturedStream {
    reader: OwnedFd,
    /// Kept open as long as further commands may write to the stream.
    writer: Option<Rc<OwnedFd>>,
    /// The beginning of the output, up to the limit.
    pub(crate) bytes: Vec<u8>,
    /// The end of the output, as far as it came after the beginning.
    tail: VecDeque<u8>,
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
        Ok(Self {
            reader,
            writer,
            bytes: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            limit,
            buffer: vec![0; 64 * 1024].into(),
        })
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
                    let buffer = std::mem::take(&mut self.buffer);
                    self.keep(buffer.get(..count).unwrap_or_default());
                    self.buffer = buffer;
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
        self.keep(text.as_bytes());
    }

    /// Counts printed bytes, and keeps those of the beginning and the latest ones.
    fn keep(&mut self, printed: &[u8]) {
        self.total += printed.len() as u64;
        let room = printed.len().min(self.limit.saturating_sub(self.bytes.len()));
        let (first, rest) = printed.split_at(room);
        self.bytes.extend_from_slice(first);
        let latest = rest.get(rest.len().saturating_sub(MAX_TAIL_BYTES)..).unwrap_or_default();
        let surplus = (self.tail.len() + latest.len()).saturating_sub(MAX_TAIL_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend(latest);
    }

    /// Returns the last kept bytes, at most `max_bytes` and at most as many as came after the first `shown` ones.
    pub(super) fn last_bytes(&self, shown: usize, max_bytes: usize) -> Vec<u8> {
        let kept = self.bytes.len() + self.tail.len();
        // The tail follows the beginning without a gap if nothing between them was dropped.
        let has_gap = self.total > kept as u64;
        let beginning = self.bytes.get(shown..).filter(|_| !has_gap).unwrap_or_default();
        let all: Vec<u8> = beginning.iter().chain(&self.tail).copied().collect();
        all.get(all.len().saturating_sub(max_bytes)..).unwrap_or_default().to_owned()
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
