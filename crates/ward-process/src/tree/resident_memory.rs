//! The memory that a tree uses, for limits that no cgroup enforces.

use super::ProcessTree;
use crate::sys::procfs::ProcRoot;

/// The way in which memory is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMeasure {
    /// Counts a page once for each process that maps it. Fast, and never too low.
    UpperBound,
    /// Divides shared pages among the processes that map them. The kernel walks all pages for this.
    Proportional,
}

impl ProcessTree {
    /// Returns the bytes of physical memory that the members use now. Members that have just ended count as 0.
    ///
    /// Use [`MemoryMeasure::UpperBound`] first, and [`MemoryMeasure::Proportional`] to confirm that a limit is
    /// exceeded: after a fork, two processes share most of their pages.
    #[must_use]
    pub fn resident_memory(&self, measure: MemoryMeasure) -> u64 {
        let members = self.processes().into_iter();
        members.map(|pid| resident_bytes(&self.proc, pid, measure)).fold(0, u64::saturating_add)
    }
}

fn resident_bytes(proc: &ProcRoot, pid: i32, measure: MemoryMeasure) -> u64 {
    let proportional = match measure {
        MemoryMeasure::UpperBound => None,
        MemoryMeasure::Proportional => read_proportional(proc, pid),
    };
    proportional.or_else(|| read_resident(proc, pid)).unwrap_or(0)
}

/// Reads the second number of `/proc/PID/statm`, in pages.
fn read_resident(proc: &ProcRoot, pid: i32) -> Option<u64> {
    let mut text = [0_u8; 256];
    let length = proc.read(format_args!("{pid}/statm"), &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Reads the line `Pss:` of `/proc/PID/smaps_rollup`, in kibibytes.
fn read_proportional(proc: &ProcRoot, pid: i32) -> Option<u64> {
    let mut text = [0_u8; 4096];
    let length = proc.read(format_args!("{pid}/smaps_rollup"), &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proportional_measure_is_positive_and_at_most_the_upper_bound() {
        let proc = ProcRoot::open().unwrap();
        let own = std::process::id().cast_signed();
        let proportional = resident_bytes(&proc, own, MemoryMeasure::Proportional);
        let upper_bound = resident_bytes(&proc, own, MemoryMeasure::UpperBound);
        // Other threads of this test may free memory between the two measurements.
        assert!(0 < proportional && proportional <= upper_bound + (64 << 20), "{proportional} {upper_bound}");
    }

    #[test]
    fn a_process_that_has_ended_uses_no_memory() {
        let proc = ProcRoot::open().unwrap();
        assert_eq!(resident_bytes(&proc, i32::MAX, MemoryMeasure::UpperBound), 0);
        assert_eq!(resident_bytes(&proc, i32::MAX, MemoryMeasure::Proportional), 0);
    }
}
