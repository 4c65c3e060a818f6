//! Processes, read from `/proc` without the daemon's code.

/// Returns the living processes with this text in their command line.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_it = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(text) && is_alive(*pid)
    };
    pids.filter(has_it).collect()
}

pub(super) fn parent_of(pid: i32) -> Option<i32> {
    stat_field(pid, 1)?.parse().ok()
}

/// Returns a field of `/proc/PID/stat`, counted from the state.
fn stat_field(pid: i32, number: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(number).map(str::to_owned)
}

/// A process, identified by pid and start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedProcess {
    pid: i32,
    started: String,
}

impl ObservedProcess {
    fn read(pid: i32) -> Option<Self> {
        stat_field(pid, 19).map(|started| Self { pid, started })
    }
}

/// Returns a process and all its descendants.
pub(crate) fn process_tree(pid: i32) -> Vec<ObservedProcess> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let all: Vec<(ObservedProcess, i32)> =
        pids.filter_map(|pid| Some((ObservedProcess::read(pid)?, parent_of(pid)?))).collect();
    let mut found: Vec<ObservedProcess> = ObservedProcess::read(pid).into_iter().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(child, _)| child.clone()));
        next += 1;
    }
    found
}

/// Returns the processes that still run.
pub(crate) fn survivors(processes: &[ObservedProcess]) -> Vec<ObservedProcess> {
    let lives = |process: &&ObservedProcess| {
        is_alive(process.pid) && ObservedProcess::read(process.pid).as_ref() == Some(*process)
    };
    processes.iter().filter(lives).cloned().collect()
}

/// Returns true if a process with this pid exists and isn't a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}
