//! Compares the memory of process trees with a limit, where no cgroup enforces it.

use ward_process::{LimitEnforcement, MemoryMeasure, ProcessTree};

/// Returns true if the limit on memory of a tree has to be watched.
#[must_use]
pub fn needs_memory_watch(tree: &ProcessTree) -> bool {
    tree.limit_reports().iter().any(|report| report.kept == LimitEnforcement::ByWatching)
}

/// Returns true if trees use more memory than `limit` together. Memory that processes share counts once.
#[must_use]
pub fn exceeds_memory(trees: &[&ProcessTree], limit: u64) -> bool {
    let used = |measure| trees.iter().map(|tree| tree.resident_memory(measure)).fold(0, u64::saturating_add);
    used(MemoryMeasure::UpperBound) > limit && used(MemoryMeasure::Proportional) > limit
}

/// Returns the sentence for a command that was ended.
#[must_use]
pub fn describe_exceeded_memory(subject: &str, limit: u64) -> String {
    let gibibytes = limit / (1 << 30);
    format!("{subject} used more than {gibibytes} GiB of memory and was ended")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use rustix::pipe::{PipeFlags, pipe_with};
    use ward_process::{OutputTarget, ProcessSpec, StdinSource, StopLadder, Supervisor, TreeLimits};

    use super::super::next_tree_id;
    use super::*;

    /// Runs a Python program until it prints a line, and returns whether its tree exceeds the limit.
    fn check(program: &str, limit: u64) -> bool {
        let supervisor = Supervisor::new().unwrap();
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (stdin, _kept_open) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let limits = TreeLimits { watched_memory: Some(limit), ..TreeLimits::default() };
        let spec = ProcessSpec::new("/usr/bin/python3")
            .args(["-c", program])
            .limits(limits)
            .stdin(StdinSource::FromFd(stdin))
            .stdout(OutputTarget::ToFd(writer));
        let mut tree = supervisor.spawn(next_tree_id().unwrap(), spec).unwrap();
        let mut line = String::new();
        BufReader::new(std::fs::File::from(reader)).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let exceeds = exceeds_memory(&[&tree], limit);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        exceeds
    }

    const MEBIBYTE: u64 = 1 << 20;

    #[test]
    fn reserved_address_space_is_not_memory() {
        let program = "
import mmap, sys
reserved = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
print('ready', flush=True)
sys.stdin.read()
";
        assert!(!check(program, 256 * MEBIBYTE));
    }

    #[test]
    fn memory_that_forked_processes_share_counts_once() {
        let program = "
import os, sys
block = bytearray(os.urandom(1 << 20) * 48)
children = [r for r in range(8) if os.fork() == 0 and (sys.stdin.read() or os._exit(0)) is None]
print('ready', flush=True)
sys.stdin.read()
";
        assert!(!check(program, 256 * MEBIBYTE));
    }

    #[test]
    fn memory_of_all_processes_together_counts() {
        let program = "
import os, sys
import mmap
read, write = os.pipe()
for child in range(4):
    if os.fork() == 0:
        block = mmap.mmap(-1, 32 << 20)
        block.write(b'x' * (32 << 20))
        os.write(write, b'.')
        sys.stdin.read()
        os._exit(0)
for child in range(4):
    os.read(read, 1)
print('ready', flush=True)
sys.stdin.read()
";
        assert!(check(program, 96 * MEBIBYTE));
    }

    #[test]
    fn the_sentence_names_the_limit() {
        assert_eq!(
            describe_exceeded_memory("the command", 4 << 30),
            "the command used more than 4 GiB of memory and was ended"
        );
    }
}
