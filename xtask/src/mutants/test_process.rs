//! Runs one test of a crate in a process of its own.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};

/// The memory that a test may reserve. A mutant may collect memory without end.
const MEMORY_BYTES: u64 = 8 << 30;

/// The size that a file may reach. A mutant may write without end.
const FILE_BYTES: u64 = 1 << 30;

/// A test that waits has this many times the limit of a test that runs.
const WAITING_FACTOR: u32 = 20;

/// The longest pause between two looks at a running test.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A test, as the name that its program accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestName {
    pub(crate) program: PathBuf,
    pub(crate) name: String,
}

/// The outcome of a test's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestOutcome {
    Passed(Duration),
    Failed,
    TimedOut,
}

/// Lists the tests of the programs, without ignored ones.
pub(crate) fn list_tests(programs: &[PathBuf]) -> Result<Vec<TestName>> {
    let mut tests = Vec::new();
    for program in programs {
        let ignored = listed_names(program, &["--ignored"])?;
        let names = listed_names(program, &[])?.into_iter().filter(|name| !ignored.contains(name));
        tests.extend(names.map(|name| TestName { program: program.clone(), name }));
    }
    Ok(tests)
}

fn listed_names(program: &Path, more: &[&str]) -> Result<Vec<String>> {
    let output = Command::new(program).args(["--list", "--format", "terse"]).args(more).output();
    let output = output.with_context(|| format!("could not start {}", program.display()))?;
    if !output.status.success() {
        bail!("could not list the tests of {}: {}", program.display(), output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Limits the memory and the files of this process and of all processes that it starts from now on.
pub(crate) fn limit_resources() -> Result<()> {
    for (resource, bytes) in [(Resource::As, MEMORY_BYTES), (Resource::Fsize, FILE_BYTES)] {
        let maximum = getrlimit(resource).maximum;
        let current = Some(maximum.map_or(bytes, |maximum| maximum.min(bytes)));
        setrlimit(resource, Rlimit { current, maximum })
            .context("could not limit the resources of the tests")?;
    }
    Ok(())
}

/// Runs a test and kills it with its children when the time is up. `folder` is the crate's, `temporary` a folder that is
/// emptied afterwards.
pub(crate) fn run_test(
    test: &TestName,
    variable: (&str, &str),
    [folder, temporary]: [&Path; 2],
    limit: Duration,
) -> Result<TestOutcome> {
    fs::create_dir_all(temporary).with_context(|| format!("could not create {}", temporary.display()))?;
    let started = Instant::now();
    let mut child = Command::new(&test.program)
        .args(["--exact", &test.name, "--test-threads=1"])
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", folder)
        .env("TMPDIR", temporary)
        .env(variable.0, variable.1)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("could not start {}", test.program.display()))?;
    let status = wait_for(&mut child, limit)?;
    let took = started.elapsed();
    // The test's children may still run, whatever became of the test.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait().context("could not wait for a test")?;
    let _ = fs::remove_dir_all(temporary);
    Ok(match status {
        None => TestOutcome::TimedOut,
        Some(status) if status.success() => TestOutcome::Passed(took),
        Some(_) => TestOutcome::Failed,
    })
}

/// Waits until a process ends; `None` if its time is up. On a busy machine a process waits for its turn, so the limit is
/// for the time in which it runs; a process that waits for nothing has [`WAITING_FACTOR`] times as long.
fn wait_for(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().context("could not wait for a test")? {
            return Ok(Some(status));
        }
        let waited = started.elapsed();
        if waited >= limit && (waited >= limit * WAITING_FACTOR || cpu_time(child.id()) >= limit) {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the processor time of a process and its ended children; see `proc_pid_stat(5)`.
fn cpu_time(process: u32) -> Duration {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may contain spaces. Times are the fields 14 to 17, in hundredths of a second.
    let fields = line.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let times = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(times.sum::<u64>() * 10)
}
