//! Benchmark of the time that a sandbox adds to a command: `true` with and without a sandbox.

use std::error::Error;
use std::time::Duration;

use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};
use ward_process::sandbox::{FileReplacement, MemoryFiles, Sandbox, SandboxNetwork};
use ward_process::{Containment, ProcessSpec, Supervisor, probe};

const ROUNDS: usize = 300;

/// Limit on the added time for every command of an agent. It is too short for a person to notice, and shorter
/// than forking a shell.
const MAX_ADDED_MS: f64 = 3.0;

fn main() -> Result<(), Box<dyn Error>> {
    // The strongest containment is the default; a process group adds the least time of its own.
    for containment in [probe().strongest(), Containment::ProcessGroup] {
        measure(containment)?;
    }
    Ok(())
}

fn measure(containment: Containment) -> Result<(), Box<dyn Error>> {
    let supervisor = Supervisor::with_containment(containment)?;
    // The first run probes the host, once for the whole process, and is not measured.
    run(&supervisor, sandboxed_true(), 0)?;
    let (mut bare, mut added) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let without = millis(run(&supervisor, bare_true(), round * 2)?);
        let with = millis(run(&supervisor, sandboxed_true(), round * 2 + 1)?);
        bare.push(without);
        added.push(with - without);
    }
    report(&BenchmarkRow {
        bench: format!("process: time that the sandbox adds to `true` in a {containment}"),
        unit: "ms".into(),
        figure: median(&mut added),
        baseline: Some(BenchmarkBaseline {
            name: "`true` without a sandbox".into(),
            figure: median(&mut bare),
        }),
        bar: BenchmarkLimit::AtMost(MAX_ADDED_MS),
    })?;
    Ok(())
}

fn bare_true() -> ProcessSpec {
    ProcessSpec::new("/bin/true")
}

/// Returns `true` in a sandbox with every part that the commands of an agent have.
fn sandboxed_true() -> ProcessSpec {
    let replacement = |path: &str| FileReplacement { path: path.into(), content: b"replaced\n".to_vec() };
    let replacements = ["/etc/passwd", "/etc/group", "/etc/hosts"].map(replacement).to_vec();
    bare_true().sandbox(Sandbox {
        network: SandboxNetwork::Loopback,
        memory_files: Some(MemoryFiles { max_bytes: 256 << 20, replacements }),
        ..Sandbox::system_read_only()
    })
}

/// Measures the time from the spawn to the end of the tree, including the removal of its temporary folder.
fn run(supervisor: &Supervisor, spec: ProcessSpec, number: usize) -> Result<Duration, Box<dyn Error>> {
    let id = format!("bench-{}-{number}", std::process::id()).parse()?;
    let (result, duration) = timed(|| -> Result<bool, Box<dyn Error>> {
        let ended = supervisor.spawn(id, spec)?.wait(None)?;
        Ok(ended.is_some_and(|ended| ended.exit.is_success()))
    });
    if result? { Ok(duration) } else { Err("`true` failed".into()) }
}
