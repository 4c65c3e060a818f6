//! Descriptors of our own in the loop, memory and the kernel's clock: the one place with `unsafe`.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a non-blocking descriptor with the event loop.
#[expect(unsafe_code, reason = "tokio can't check that the descriptor stays valid")]
pub(crate) fn register_readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is a valid descriptor, the `AsyncFd` owns it from here on, and no other code replaces or
    // closes it before the registration is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }
        .map_err(|error| error.into_parts().1)
}

/// Returns memory to the system that only the start or a reload has used. Reading a policy takes many times the memory of
/// the policy itself, and the allocator would keep that memory until the next reload, which may be months away. Nearly
/// the whole program is mapped then, because the kernel maps the neighbours of each page that is used.
#[expect(unsafe_code, reason = "functions of the C library")]
pub(crate) fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes its own locks and releases only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for Range { start, end } in code_mappings(&maps) {
        // SAFETY: these are pages of programs and libraries that nobody may write to, so they are as in their files. The
        // kernel maps a page again when it is used. If the mapping is gone, the call fails or changes only such pages.
        unsafe {
            libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED)
        };
    }
}

/// Returns the address ranges of executable files in the text of `/proc/PID/maps`. Read-only data isn't among them: it
/// contains pointers that the dynamic linker has written.
fn code_mappings(maps: &str) -> impl Iterator<Item = Range<usize>> {
    maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let is_code_of_file = rest.starts_with("r-xp ") && rest.contains(" /");
        let (start, end) = range.split_once('-').filter(|_| is_code_of_file)?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(address(start)?..address(end)?)
    })
}

/// Returns whether the kernel says that time synchronisation keeps the wall clock right (`adjtimex(2)`). The kernel
/// takes that back when somebody sets the clock by hand, and only root can say it.
#[expect(unsafe_code, reason = "no safe crate of ours reads the kernel's view of the clock")]
pub(crate) fn is_clock_synchronised() -> bool {
    // SAFETY: the structure is plain numbers, for which zero is a value. Zero in `modes` changes nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of ours, which outlives the call.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    state != -1 && state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0100000 r--p 00000000 fe:00 99 /usr/bin/shepherdd
55d0c0100000-55d0c0680000 r-xp 00100000 fe:00 99 /usr/bin/shepherdd
55d0c0680000-55d0c0690000 r--p 00680000 fe:00 99 /usr/bin/shepherdd
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000155000 r-xp 00026000 fe:00 98 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000200000-7f0000201000 r-xp 00000000 00:00 0
7f0000300000-7f0000301000 rwxp 00000000 fe:00 97 /tmp/written
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]
";

    #[test]
    fn only_code_that_is_the_same_as_in_its_file_is_released() {
        let found: Vec<_> = code_mappings(MAPS).collect();
        assert_eq!(found, [0x55d0_c010_0000..0x55d0_c068_0000, 0x7f00_0000_0000..0x7f00_0015_5000]);
    }

    #[test]
    fn code_runs_on_after_its_release() {
        release_free_memory();
        assert!(!std::fs::read_to_string("/proc/self/maps").unwrap().is_empty());
    }
}
