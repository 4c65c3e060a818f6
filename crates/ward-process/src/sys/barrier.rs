//! Keeps a new process from the ordered program until something else has been done.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// The side of whoever opens it. Dropped unopened, or lost with its process, it stays closed for ever.
pub(crate) struct StartBarrier {
    writer: OwnedFd,
    /// So that opening it never meets a pipe without a reader, which would be a signal.
    reader: OwnedFd,
}

/// What the new process, a copy of the one that opens, needs to wait at the gate.
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

    /// What must stay open for it to be opened.
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
    /// In the new process: waits. False when the gate will never open. Only makes system calls.
    pub(crate) fn wait_for_release(self) -> bool {
        // SAFETY: our copy of the other's end, which would keep the pipe open; nobody here uses it.
        unsafe { libc::close(self.writer) };
        let mut byte = 0_u8;
        loop {
            // SAFETY: one byte of live memory; the descriptor is our copy, open since the fork.
            match unsafe { libc::read(self.reader, (&raw mut byte).cast(), 1) } {
                1 => return true,
                0 => return false,
                _ if super::last_error() == Errno::INTR => {}
                _ => return false,
            }
        }
    }
}
