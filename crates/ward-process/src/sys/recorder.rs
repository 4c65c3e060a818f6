//! The recorder: a small process that copies a program's output into a file, up to a limit.
//!
//! A separate process keeps recording while the supervisor is restarted, and spares the supervisor a wake-up
//! for every line of output. The recorder ends when the last writer has closed the stream.

use std::convert::Infallible;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::child::close_all_but;
use super::fork::{ForkOptions, ForkedChild, exit_child, fork};

const TRUNCATION_NOTE: &[u8] = b"\n[output limit reached: the rest was dropped]\n";

/// Forks a recorder that copies `from` to `file` and drops bytes beyond `limit`.
pub(crate) fn spawn(
    from: &OwnedFd,
    file: &OwnedFd,
    null: &[OwnedFd; 3],
    limit: u64,
) -> Result<ForkedChild, Errno> {
    // SAFETY: the recorder only makes system calls on prepared data.
    unsafe { fork(ForkOptions::default(), || run_recorder(from, file, null, limit)) }
}

fn run_recorder(from: &OwnedFd, file: &OwnedFd, null: &[OwnedFd; 3], limit: u64) -> Infallible {
    let released = super::child::connect_stdio(null)
        .and_then(|()| close_all_but(&mut [from.as_raw_fd(), file.as_raw_fd()]));
    if released.is_err() {
        return exit_child(1);
    }
    let _ = rustix::thread::set_name(c"ward-recorder");
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    copy_bounded(from, file, limit)
}

fn copy_bounded(from: &OwnedFd, file: &OwnedFd, limit: u64) -> Infallible {
    let mut buffer = [0_u8; 16 * 1024];
    let mut room = limit;
    let mut full = false;
    loop {
        let length = match rustix::io::read(from, &mut buffer) {
            Ok(0) => return exit_child(0),
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(_) => return exit_child(1),
        };
        if full {
            continue;
        }
        let keep = length.min(usize::try_from(room).unwrap_or(usize::MAX));
        // A full disk is treated like a reached limit: reading goes on, so that the program never blocks.
        let written = write_all(file, buffer.get(..keep).unwrap_or_default()).is_ok();
        room -= keep as u64;
        if !written || keep < length {
            full = true;
            let _ = write_all(file, TRUNCATION_NOTE);
        }
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
