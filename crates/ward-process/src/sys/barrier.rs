//! The start barrier: a pipe on which a new process waits before it runs the program.
//!
//! The parent uses it to store the record of a tree first, or to close inherited descriptors first.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// The parent's side of the barrier. If it is dropped, or if its process ends, the barrier is never released
/// and the waiting process exits.
pub(crate) struct StartBarrier {
    writer: OwnedFd,
    /// Kept open so that `release` never writes to a pipe without a reader, which would raise `SIGPIPE`.
    reader: OwnedFd,
}

/// The child's side of the barrier. The child is a copy of the parent, so the descriptor numbers are the
/// same.
#[derive(Clone, Copy)]
pub(crate) struct BarrierWaiter {
    reader: RawFd,
    writer: RawFd,
}

impl StartBarrier {
    pub(crate) fn new((reader, writer): (OwnedFd, OwnedFd)) -> Self {
        Self { writer, reader }
    }

    pub(crate) fn waiter(&self) -> BarrierWaiter {
        BarrierWaiter { reader: self.reader.as_raw_fd(), writer: self.writer.as_raw_fd() }
    }

    /// Returns the descriptors that must stay open until [`release`](Self::release).
    pub(crate) fn descriptors(&self) -> [RawFd; 2] {
        [self.reader.as_raw_fd(), self.writer.as_raw_fd()]
    }

    pub(crate) fn release(self) -> Result<(), Errno> {
        loop {
            match rustix::io::write(&self.writer, b"1") {
                Err(Errno::INTR) => {}
                result => return result.map(drop),
            }
        }
    }
}

impl BarrierWaiter {
    /// Returns the descriptors that must stay open until [`wait_for_release`](Self::wait_for_release); a closed one is
    /// negative.
    pub(crate) fn descriptors(self) -> [RawFd; 2] {
        [self.reader, self.writer]
    }

    /// Closes the new process's copy of the writing end, which would keep the pipe open after the parent's death. Call this
    /// before another process is forked that would inherit the copy.
    pub(crate) fn close_writer(&mut self) {
        let writer = std::mem::replace(&mut self.writer, -1);
        if writer >= 0 {
            // SAFETY: no code in the new process uses this copy, and this value has it no more.
            unsafe { libc::close(writer) };
        }
    }

    /// Waits in the new process. Returns false if the barrier will never be released. Only makes system
    /// calls.
    pub(crate) fn wait_for_release(mut self) -> bool {
        self.close_writer();
        let mut byte = 0_u8;
        loop {
            // SAFETY: the buffer is one byte of live memory; the descriptor is the child's copy, open since
            // the fork.
            match unsafe { libc::read(self.reader, (&raw mut byte).cast(), 1) } {
                1 => return true,
                0 => return false,
                _ if super::last_error() == Errno::INTR => {}
                _ => return false,
            }
        }
    }
}
