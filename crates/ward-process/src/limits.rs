//! Resource limits of a tree, and the mechanism that enforces each of them on this host.

use rustix::process::{Resource, Rlimit};
use serde::Serialize;

/// The resource limits of a tree. `None` leaves a limit as it is. Zero processes, memory or processor share
/// are rejected, because nothing could run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeLimits {
    /// Number of processes and threads in the whole tree, not counting the keeper.
    pub processes: Option<u64>,
    /// Bytes of memory: of the whole tree in a cgroup, otherwise of address space for each process.
    pub memory: Option<u64>,
    /// Bytes of memory of the whole tree. A cgroup enforces it; otherwise the owner of the tree has to compare
    /// it with [`ProcessTree::resident_memory`](crate::ProcessTree::resident_memory) now and then. Unlike
    /// `memory`, it lets programs reserve any amount of address space, which many language runtimes do.
    pub watched_memory: Option<u64>,
    /// Share of one processor in per cent, for the whole tree.
    pub processor_percent: Option<u32>,
    /// Seconds of processor time for each process.
    pub processor_seconds: Option<u64>,
    /// Size in bytes of the largest file that may be written.
    pub file_size: Option<u64>,
    /// Number of open descriptors for each process.
    pub open_files: Option<u64>,
}

/// The way in which a limit is enforced on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitEnforcement {
    /// The tree's cgroup limits the tree as a whole.
    ByCgroup,
    /// A resource limit (`setrlimit(2)`) limits each process.
    ByResourceLimit,
    /// The owner of the tree compares the tree's memory with the limit now and then.
    ByWatching,
    /// The limit is not enforced on this host.
    Not {
        /// Reason why not, and what would help.
        reason: String,
    },
}

/// A requested limit and the way in which it is enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitReport {
    /// Name of the limit: `processes`, `memory`, …
    pub limit: &'static str,
    /// Mechanism that enforces the limit.
    pub kept: LimitEnforcement,
}

/// The mechanisms that are available to limit a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitSupport {
    /// True if the tree's cgroup has the `pids` controller; `memory` and `processor` are the same for theirs.
    pub(crate) processes: bool,
    pub(crate) memory: bool,
    pub(crate) processor: bool,
    /// True if `RLIMIT_NPROC` would count only this tree, which is so in a user namespace of its own.
    pub(crate) nproc_counts_tree_only: bool,
    /// Number of our own processes that are counted with the tree.
    pub(crate) own_processes: u64,
    /// Limit on open files for programs whose spec sets none.
    pub(crate) open_files: Rlimit,
}

/// The files of a cgroup that limit a tree.
pub(crate) const CGROUP_LIMIT_FILES: [&str; 3] = ["pids.max", "memory.max", "cpu.max"];

/// The limits of a tree, sorted by the mechanism that enforces them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LimitPlan {
    /// Files of the cgroup, each with the text to write into it.
    pub(crate) cgroup: Vec<(&'static str, String)>,
    pub(crate) resources: Vec<(Resource, Rlimit)>,
    pub(crate) report: Vec<LimitReport>,
}

/// Period of `cpu.max` in microseconds; the kernel's own default.
const PROCESSOR_PERIOD: u64 = 100_000;

const NO_CONTROLLER: &str = "the tree has no cgroup with this controller; run as a service with Delegate=yes on \
     a pure cgroup v2 system";

impl TreeLimits {
    /// Returns the name of a limit that is zero and would let nothing run.
    pub(crate) fn find_zero_limit(&self) -> Option<&'static str> {
        let limits = [
            ("processes", self.processes),
            ("memory", self.memory.or(self.watched_memory)),
            ("processor_percent", self.processor_percent.map(u64::from)),
        ];
        limits.into_iter().find(|(_, limit)| *limit == Some(0)).map(|(name, _)| name)
    }

    pub(crate) fn plan(&self, support: LimitSupport) -> LimitPlan {
        let mut plan = LimitPlan::default();
        if let Some(count) = self.processes {
            let count = count.saturating_add(support.own_processes);
            if support.processes {
                plan.add_cgroup_limit("processes", "pids.max", count.to_string());
            } else if support.nproc_counts_tree_only {
                plan.add_resource_limit("processes", Resource::Nproc, count);
            } else {
                plan.add_unenforced_limit("processes", NO_CONTROLLER);
            }
        }
        if let Some(bytes) = self.memory {
            if support.memory {
                plan.add_cgroup_limit("memory", "memory.max", bytes.to_string());
            } else {
                plan.add_resource_limit("memory", Resource::As, bytes);
            }
        }
        if let Some(bytes) = self.watched_memory {
            if support.memory {
                plan.add_cgroup_limit("memory", "memory.max", bytes.to_string());
            } else {
                plan.report.push(LimitReport { limit: "memory", kept: LimitEnforcement::ByWatching });
            }
        }
        if let Some(percent) = self.processor_percent {
            if support.processor {
                let share = u64::from(percent) * PROCESSOR_PERIOD / 100;
                plan.add_cgroup_limit("processor_percent", "cpu.max", format!("{share} {PROCESSOR_PERIOD}"));
            } else {
                plan.add_unenforced_limit("processor_percent", NO_CONTROLLER);
            }
        }
        for (name, resource, value) in [
            ("processor_seconds", Resource::Cpu, self.processor_seconds),
            ("file_size", Resource::Fsize, self.file_size),
            ("open_files", Resource::Nofile, self.open_files),
        ] {
            if let Some(value) = value {
                plan.add_resource_limit(name, resource, value);
            }
        }
        if self.open_files.is_none() {
            plan.resources.push((Resource::Nofile, support.open_files));
        }
        // A core dump would write the program's memory, with its secrets, to the disk.
        plan.resources.push((Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }));
        plan
    }
}

impl LimitPlan {
    /// Returns the cgroup's limits for the record of the tree.
    pub(crate) fn recorded_cgroup_limits(&self) -> Vec<(String, String)> {
        self.cgroup.iter().map(|(file, text)| ((*file).to_owned(), text.clone())).collect()
    }

    fn add_cgroup_limit(&mut self, limit: &'static str, file: &'static str, text: String) {
        self.cgroup.push((file, text));
        self.report.push(LimitReport { limit, kept: LimitEnforcement::ByCgroup });
    }

    fn add_resource_limit(&mut self, limit: &'static str, resource: Resource, value: u64) {
        // An unprivileged process can't raise its hard limit, so `setrlimit` would fail with a larger value.
        let value = rustix::process::getrlimit(resource).maximum.map_or(value, |hard| hard.min(value));
        self.resources.push((resource, Rlimit { current: Some(value), maximum: Some(value) }));
        self.report.push(LimitReport { limit, kept: LimitEnforcement::ByResourceLimit });
    }

    fn add_unenforced_limit(&mut self, limit: &'static str, reason: &str) {
        self.report.push(LimitReport { limit, kept: LimitEnforcement::Not { reason: reason.to_owned() } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT_OPEN_FILES: Rlimit = Rlimit { current: Some(1024), maximum: Some(4096) };

    const NOTHING: LimitSupport = LimitSupport {
        processes: false,
        memory: false,
        processor: false,
        nproc_counts_tree_only: false,
        own_processes: 0,
        open_files: DEFAULT_OPEN_FILES,
    };

    fn enforced_limits(limits: &TreeLimits, support: LimitSupport) -> Vec<(&'static str, bool)> {
        let is_enforced = |kept: &LimitEnforcement| !matches!(kept, LimitEnforcement::Not { .. });
        limits.plan(support).report.iter().map(|line| (line.limit, is_enforced(&line.kept))).collect()
    }

    #[test]
    fn limits_without_a_mechanism_are_reported_as_unenforced() {
        let limits = TreeLimits { processes: Some(9), processor_percent: Some(50), ..TreeLimits::default() };
        assert_eq!(enforced_limits(&limits, NOTHING), [("processes", false), ("processor_percent", false)]);
    }

    #[test]
    fn a_cgroup_is_preferred_to_limits_on_each_process() {
        let all =
            LimitSupport { processes: true, memory: true, processor: true, own_processes: 1, ..NOTHING };
        let limits = TreeLimits {
            processes: Some(9),
            memory: Some(1 << 20),
            processor_percent: Some(20),
            ..TreeLimits::default()
        };
        let plan = limits.plan(all);
        assert_eq!(
            plan.cgroup,
            [
                ("pids.max", "10".to_owned()),
                ("memory.max", "1048576".to_owned()),
                ("cpu.max", "20000 100000".to_owned())
            ]
        );
    }

    #[test]
    fn watched_memory_never_limits_the_address_space() {
        let limits = TreeLimits { watched_memory: Some(1 << 30), ..TreeLimits::default() };
        let watched = limits.plan(NOTHING);
        assert!(watched.resources.iter().all(|(resource, _)| *resource != Resource::As), "{watched:?}");
        assert_eq!(watched.report, [LimitReport { limit: "memory", kept: LimitEnforcement::ByWatching }]);
        let by_cgroup = limits.plan(LimitSupport { memory: true, ..NOTHING });
        assert_eq!(by_cgroup.cgroup, [("memory.max", (1_u64 << 30).to_string())]);
    }

    #[test]
    fn a_zero_limit_that_lets_nothing_run_is_found_by_name() {
        let zero = TreeLimits { processor_percent: Some(0), ..TreeLimits::default() };
        assert_eq!(zero.find_zero_limit(), Some("processor_percent"));
        let strict = TreeLimits { file_size: Some(0), memory: Some(1), ..TreeLimits::default() };
        assert_eq!(strict.find_zero_limit(), None);
    }

    #[test]
    fn core_dumps_are_always_off() {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let resources = TreeLimits::default().plan(NOTHING).resources;
        assert_eq!(resources, [(Resource::Nofile, DEFAULT_OPEN_FILES), (Resource::Core, none)]);
    }
}
