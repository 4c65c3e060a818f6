//! Bounds on what a tree may use, and what really keeps each of them.

use rustix::process::{Resource, Rlimit};
use serde::Serialize;

/// Bounds on what a tree may use. `None` leaves the one there is; zero processes, memory or processor
/// are refused, since nothing could run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeLimits {
    /// Processes and threads in the whole tree; our own keeper is not counted.
    pub processes: Option<u64>,
    /// Bytes of memory: of the whole tree in a cgroup, of address space for each process without.
    pub memory: Option<u64>,
    /// Per cent of one processor, for the whole tree.
    pub processor_percent: Option<u32>,
    /// Seconds of processor time for each process.
    pub processor_seconds: Option<u64>,
    /// Bytes of the largest file that may be written.
    pub file_size: Option<u64>,
    /// Open descriptors for each process.
    pub open_files: Option<u64>,
}

/// How a bound is kept on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitEnforcement {
    /// For the whole tree together, by its cgroup.
    ByCgroup,
    /// For each process, by a resource limit.
    ByResourceLimit,
    /// Not at all.
    Not {
        /// Why, and what would help.
        reason: String,
    },
}

/// One bound that was asked for and how it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitReport {
    /// Which bound: `processes`, `memory`, …
    pub limit: &'static str,
    /// What keeps it.
    pub kept: LimitEnforcement,
}

/// What the place of the tree allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitSupport {
    /// Controllers that the tree's cgroup has.
    pub(crate) processes: bool,
    pub(crate) memory: bool,
    pub(crate) processor: bool,
    /// Whether `RLIMIT_NPROC` would count this tree and nothing else: in a user namespace of its own.
    pub(crate) nproc_counts_tree_only: bool,
    /// Processes of ours that are counted with the tree.
    pub(crate) own_processes: u64,
    /// What programs start with unless they are bounded.
    pub(crate) open_files: Rlimit,
}

/// The bounds, sorted by who keeps them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LimitPlan {
    /// File of the cgroup and the text to write into it.
    pub(crate) cgroup: Vec<(&'static str, String)>,
    pub(crate) resources: Vec<(Resource, Rlimit)>,
    pub(crate) report: Vec<LimitReport>,
}

/// Microseconds in which a processor share is measured; the kernel's own default.
const PROCESSOR_PERIOD: u64 = 100_000;

const NO_CONTROLLER: &str =
    "the cgroup has no such controller; a service with Delegate=yes on a pure cgroup v2 system has";

impl TreeLimits {
    /// The bound that would let nothing run, if there is one.
    pub(crate) fn find_zero_limit(&self) -> Option<&'static str> {
        let bounds = [
            ("processes", self.processes),
            ("memory", self.memory),
            ("processor_percent", self.processor_percent.map(u64::from)),
        ];
        bounds.into_iter().find(|(_, bound)| *bound == Some(0)).map(|(name, _)| name)
    }

    pub(crate) fn plan(&self, means: LimitSupport) -> LimitPlan {
        let mut plan = LimitPlan::default();
        if let Some(count) = self.processes {
            let count = count.saturating_add(means.own_processes);
            if means.processes {
                plan.add_cgroup_limit("processes", "pids.max", count.to_string());
            } else if means.nproc_counts_tree_only {
                plan.add_resource_limit("processes", Resource::Nproc, count);
            } else {
                plan.add_unenforced_limit("processes", NO_CONTROLLER);
            }
        }
        if let Some(bytes) = self.memory {
            if means.memory {
                plan.add_cgroup_limit("memory", "memory.max", bytes.to_string());
            } else {
                plan.add_resource_limit("memory", Resource::As, bytes);
            }
        }
        if let Some(percent) = self.processor_percent {
            if means.processor {
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
            plan.resources.push((Resource::Nofile, means.open_files));
        }
        // A crash must not write what a program had in memory to the disk.
        plan.resources.push((Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }));
        plan
    }
}

impl LimitPlan {
    fn add_cgroup_limit(&mut self, limit: &'static str, file: &'static str, text: String) {
        self.cgroup.push((file, text));
        self.report.push(LimitReport { limit, kept: LimitEnforcement::ByCgroup });
    }

    fn add_resource_limit(&mut self, limit: &'static str, resource: Resource, value: u64) {
        // Never above the hard limit there is: an unprivileged process may not raise it.
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

    const USUAL: Rlimit = Rlimit { current: Some(1024), maximum: Some(4096) };

    const NOTHING: LimitSupport = LimitSupport {
        processes: false,
        memory: false,
        processor: false,
        nproc_counts_tree_only: false,
        own_processes: 0,
        open_files: USUAL,
    };

    fn enforced_limits(limits: &TreeLimits, means: LimitSupport) -> Vec<(&'static str, bool)> {
        let not = |kept: &LimitEnforcement| matches!(kept, LimitEnforcement::Not { .. });
        limits.plan(means).report.iter().map(|line| (line.limit, !not(&line.kept))).collect()
    }

    #[test]
    fn what_nobody_can_keep_is_said_and_not_pretended() {
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
    fn bounds_that_let_nothing_run_are_named() {
        let zero = TreeLimits { processor_percent: Some(0), ..TreeLimits::default() };
        assert_eq!(zero.find_zero_limit(), Some("processor_percent"));
        let strict = TreeLimits { file_size: Some(0), memory: Some(1), ..TreeLimits::default() };
        assert_eq!(strict.find_zero_limit(), None);
    }

    #[test]
    fn core_dumps_are_always_off() {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let resources = TreeLimits::default().plan(NOTHING).resources;
        assert_eq!(resources, [(Resource::Nofile, USUAL), (Resource::Core, none)]);
    }
}
