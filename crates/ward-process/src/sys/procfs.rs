//! Reads `/proc` without allocating.

use std::ffi::CStr;
use std::fmt::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

/// A handle on `/proc`, opened before it is needed.
#[derive(Debug)]
pub(crate) struct ProcRoot(OwnedFd);

/// The fields of `/proc/PID/stat` that this crate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// Number of threads that have not been reaped, including the first one after its end.
    pub(crate) threads: u32,
    /// Start time in clock ticks after boot. Together with the boot id and the pid it identifies a process
    /// forever.
    pub(crate) start_time: u64,
}

impl ProcessStat {
    /// Returns false for a zombie, which has ended and only waits for its parent to reap it. The state is that of
    /// the first thread: a process whose first thread has ended looks like a zombie while its other threads run.
    pub(crate) fn is_alive(self) -> bool {
        !matches!(self.state, b'Z' | b'X') || self.threads > 1
    }

    /// Returns true if the first thread has ended and another one runs.
    pub(crate) fn lacks_first_thread(self) -> bool {
        self.state == b'Z' && self.threads > 1
    }
}

impl ProcRoot {
    pub(crate) fn open() -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(c"/proc", flags, Mode::empty()).map(Self)
    }

    pub(crate) fn stat(&self, pid: i32) -> Result<ProcessStat, Errno> {
        // The command name is at most 64 bytes, the numbers before `starttime` at most 20 digits each.
        let mut text = [0_u8; 1024];
        let length = self.read(format_args!("{pid}/stat"), &mut text)?;
        parse_stat(text.get(..length).unwrap_or_default()).ok_or(Errno::INVAL)
    }

    /// Reads as much of a file below `/proc` as fits into the buffer.
    pub(crate) fn read(&self, path: fmt::Arguments<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
        let file = self.open_below(path, OFlags::RDONLY)?;
        let mut length = 0;
        while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(&file, rest) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }

    pub(crate) fn open_below(&self, path: fmt::Arguments<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut name = ShortPath::default();
        name.write_fmt(path).map_err(|_| Errno::NAMETOOLONG)?;
        rustix::fs::openat(&self.0, name.as_c_str()?, flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Returns true if the environment that the process was started with contains `marker` (`NAME=value`).
    pub(crate) fn has_marker(&self, pid: i32, marker: &[u8], buffer: &mut [u8]) -> bool {
        let Ok(length) = self.read(format_args!("{pid}/environ"), buffer) else { return false };
        buffer.get(..length).unwrap_or_default().split(|byte| *byte == 0).any(|entry| entry == marker)
    }

    /// Calls `visit` with every pid in `/proc`.
    pub(crate) fn each_process(&self, mut visit: impl FnMut(i32)) -> Result<(), Errno> {
        // The directory is opened again, because duplicates of a descriptor share the read position.
        let directory = rustix::fs::openat(
            &self.0,
            c".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        each_number_in_directory(directory.as_fd(), &mut visit)
    }

    /// Calls `visit` with every thread id of a process.
    pub(crate) fn each_thread(&self, pid: i32, mut visit: impl FnMut(i32)) -> Result<(), Errno> {
        let directory = self.open_below(format_args!("{pid}/task"), OFlags::RDONLY | OFlags::DIRECTORY)?;
        each_number_in_directory(directory.as_fd(), &mut visit)
    }

    /// Calls `visit` with every child of a process, whichever of its threads forked it.
    pub(crate) fn each_child(&self, pid: i32, mut visit: impl FnMut(i32)) -> Result<(), Errno> {
        self.each_thread(pid, |thread| {
            // A thread that has just ended has no children left.
            let Ok(file) = self.open_below(format_args!("{pid}/task/{thread}/children"), OFlags::RDONLY)
            else {
                return;
            };
            each_number_in_file(file.as_fd(), &mut visit);
        })
    }
}

impl AsFd for ProcRoot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens a pidfd. The pid may have been reused, so the caller has to check afterwards which process it
/// belongs to.
pub(crate) fn open_pidfd(pid: i32) -> Result<OwnedFd, Errno> {
    // `cgroup.procs` shows 0 for a process outside of our PID namespace and for one that is exiting.
    // Signalling 0 would signal our own process group.
    let pid = if pid > 0 { Pid::from_raw(pid) } else { None };
    let pid = pid.ok_or(Errno::SRCH)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty())
}

fn each_number_in_directory(directory: BorrowedFd<'_>, visit: &mut dyn FnMut(i32)) -> Result<(), Errno> {
    let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 8192];
    let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        if let Some(number) = entry?.file_name().to_str().ok().and_then(|name| name.parse().ok()) {
            visit(number);
        }
    }
    Ok(())
}

/// Calls `visit` with every number in a file of numbers that are separated by spaces or line ends.
pub(crate) fn each_number_in_file(file: BorrowedFd<'_>, visit: &mut dyn FnMut(i32)) {
    let mut buffer = [0_u8; 4096];
    let mut number: Option<i32> = None;
    loop {
        let length = match rustix::io::read(file, &mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(_) => break,
        };
        for byte in buffer.get(..length).unwrap_or_default() {
            if byte.is_ascii_digit() {
                let digit = i32::from(byte - b'0');
                number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            } else if let Some(complete) = number.take() {
                visit(complete);
            }
        }
    }
    if let Some(complete) = number {
        visit(complete);
    }
}

fn parse_stat(text: &[u8]) -> Option<ProcessStat> {
    // The command name is in parentheses and may itself contain parentheses and spaces, so parsing starts
    // after the last one.
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(text.get(after + 2..)?).ok()?.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // proc(5): state is field 3, the group field 5, num_threads field 20, starttime field 22.
    let threads = fields.nth(14)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    Some(ProcessStat { state, parent, group, threads, start_time })
}

/// A short path on the stack, for use without allocation.
struct ShortPath {
    bytes: [u8; 96],
    length: usize,
}

impl Default for ShortPath {
    fn default() -> Self {
        Self { bytes: [0; 96], length: 0 }
    }
}

impl ShortPath {
    fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)
    }
}

impl fmt::Write for ShortPath {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        // The last byte has to stay zero as the terminator.
        if end >= self.bytes.len() {
            return Err(fmt::Error);
        }
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_confuse_the_stat_parser() {
        let text = b"42 (a) S 1 (b) R 7 9 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8123 1 1";
        assert_eq!(
            parse_stat(text),
            Some(ProcessStat { state: b'R', parent: 7, group: 9, threads: 1, start_time: 8123 })
        );
    }

    #[test]
    fn our_own_stat_names_our_parent() {
        let proc = ProcRoot::open().unwrap();
        let own = proc.stat(std::process::id().try_into().unwrap()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id().cast_signed());
        assert!(own.is_alive());
    }

    #[test]
    fn pids_below_one_are_refused() {
        for pid in [0, -1, i32::MIN] {
            assert_eq!(open_pidfd(pid).unwrap_err(), Errno::SRCH);
        }
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let proc = ProcRoot::open().unwrap();
        let long = "x".repeat(200);
        assert_eq!(proc.read(format_args!("{long}"), &mut [0; 8]), Err(Errno::NAMETOOLONG));
    }
}
