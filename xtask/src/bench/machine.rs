//! The facts about a machine that are needed to read its figures.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::workspace::output_of;

/// The machine and the commit that a result belongs to.
#[derive(Debug, Serialize)]
pub(super) struct BenchMachine {
    date: String,
    /// The commit that was measured, with `-dirty` if there were uncommitted changes.
    revision: Option<String>,
    cores: usize,
    processor: Option<String>,
    kernel: String,
    /// The load of the last 1, 5 and 15 minutes. Figures from a busy machine are unreliable.
    load: String,
}

impl BenchMachine {
    /// Describes this machine.
    pub(super) fn detect(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            date: output_of(Command::new("date").args(["--utc", "+%Y-%m-%dT%H:%M:%SZ"])).unwrap_or_default(),
            revision: revision(root),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(&read("/proc/cpuinfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

fn revision(root: &Path) -> Option<String> {
    let describe = ["describe", "--always", "--dirty", "--exclude=*"];
    output_of(Command::new("git").args(describe).current_dir(root))
}

fn processor(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(": ")?.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_when_the_kernel_names_it() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Example 9\n").as_deref(), Some("Example 9"));
        assert_eq!(processor("processor\t: 0\nBogoMIPS\t: 50\n"), None);
    }
}
