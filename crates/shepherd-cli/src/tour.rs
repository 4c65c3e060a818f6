//! `shepherd tour`: shows in a few seconds how a stubborn program is stopped, how a sandbox confines a command, and how
//! the log reveals an edit.
//!
//! The tour checks each of its claims, and ends with an error if a claim does not hold.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use ward_ledger::{Ledger, LedgerFormat, LedgerOptions};
use ward_process::sandbox::{self, Sandbox, SandboxStrictness};
use ward_process::{
    Containment, EndedBy, OutputTarget, ProcessExit, ProcessSpec, ProcessTree, StopLadder, Supervisor,
    TreeLifetime,
};
use ward_terminal::TextTone;

use crate::audit::EVENT_HASH;
use crate::doctor;
use crate::error::{ShepherdCliError, ensure};
use crate::output::ConsoleOutput;

const SESSION: Duration = Duration::from_secs(3);
const WARNING: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(500);

pub(crate) fn run(output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let folder = tempfile::tempdir().map_err(ShepherdCliError::io("make a temporary folder"))?;
    let log = folder.path().join("audit.log");
    let (mut ledger, _) = Ledger::open(&log, LedgerOptions::new(LedgerFormat::new(EVENT_HASH)?))?;
    let supervisor = Supervisor::new()?;

    output.print_line("Shepherd decides what may run, when and for how long, and stops it when time is up.");
    output.print_line(
        "CollieClaw lets an AI agent work on this machine, and checks and records each of its calls.",
    );
    output.print_line(
        "This tour shows the mechanisms behind both. It takes a few seconds and leaves nothing behind.",
    );
    doctor::show_containments(output, &ward_process::probe(), doctor::ContainmentScope::ThisProcess);

    show_session(output, &supervisor, &mut ledger)?;
    let sandbox_shown = show_sandbox(output, &supervisor, &mut ledger, folder.path())?;
    show_log(output, &log)?;

    match sandbox_shown {
        SandboxDemoResult::Complete => output.print_heading("The tour is complete"),
        SandboxDemoResult::Skipped => {
            output.print_heading("The tour is complete, except for the sandbox, which this machine lacks");
        }
    }
    output.print_line(
        "  `shepherd doctor` shows what this machine can enforce; `shepherd --help` lists all commands.",
    );
    Ok(())
}

/// The result of the sandbox part, which some machines can't show.
enum SandboxDemoResult {
    Complete,
    Skipped,
}

/// A program that ignores SIGTERM, as does its child. Its processes are recognised by the unique length of their sleep.
struct StubbornProgram {
    sleep: String,
    script: String,
    child: &'static str,
}

impl StubbornProgram {
    fn new(containment: Containment) -> Self {
        let sleep = format!("sleep {}", 600_000_000 + std::process::id());
        let (flee, child) = match containment {
            // A process group could not stop a child in another session, and the tour would leave it behind.
            Containment::ProcessGroup => ("", "its child stays in the process group"),
            _ => ("setsid", "its child moved to another session"),
        };
        let script = format!("trap '' TERM; {flee} {sleep} & {sleep}; {sleep}");
        Self { sleep, script, child }
    }

    /// Counts the program's processes by searching all processes, independently of the supervisor.
    fn survivors(&self) -> usize {
        let command = self.sleep.replace(' ', "\0") + "\0";
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        // A zombie has no command line.
        let commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        commands
            .filter(|found| found == command.as_bytes() || contains(found, self.script.as_bytes()))
            .count()
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Runs a session with a deadline, a warning, and a program that ignores both.
fn show_session(
    output: &mut ConsoleOutput,
    supervisor: &Supervisor,
    ledger: &mut Ledger,
) -> Result<(), ShepherdCliError> {
    output.print_heading("A session of three seconds, with a program that refuses to stop");
    // Recorded first, because nothing starts without a record.
    record(ledger, json!({"event": "session_started", "entry": "stubborn", "max_run_ms": 3000}))?;
    let stubborn = StubbornProgram::new(supervisor.containment());
    let mut tree = spawn(supervisor, "session", shell(&stubborn.script))?;
    output.print_marked(
        TextTone::Faint,
        "▶",
        &format!("started; it ignores SIGTERM, and {}", stubborn.child),
    );

    expect_running(&mut tree, SESSION - WARNING)?;
    output.print_marked(TextTone::Faint, "!", "one second left");
    record(ledger, json!({"event": "warning", "entry": "stubborn", "remaining_ms": 1000}))?;

    expect_running(&mut tree, WARNING)?;
    let members = stubborn.survivors();
    ensure(members >= 2, "the stubborn program had no child")?;
    let stopped = supervisor.stop(&mut tree, StopLadder::polite(GRACE))?;
    ensure(stopped.ended_by == EndedBy::Kill, "the stubborn program exited before it was killed")?;
    ensure(stubborn.survivors() == 0, "a process outlived the session")?;
    let elapsed = stopped.elapsed.as_millis();
    record(
        ledger,
        json!({"event": "session_ended", "entry": "stubborn", "after_ms": u64::try_from(elapsed).unwrap_or(u64::MAX)}),
    )?;
    let result = format!(
        "time is up: asked to exit, waited {} ms, killed; all {members} processes are gone",
        GRACE.as_millis()
    );
    output.print_marked(TextTone::Good, "■", &result);
    Ok(())
}

/// Runs commands in a sandbox and shows which files they can read and write.
fn show_sandbox(
    output: &mut ConsoleOutput,
    supervisor: &Supervisor,
    ledger: &mut Ledger,
    folder: &Path,
) -> Result<SandboxDemoResult, ShepherdCliError> {
    output.print_heading("A command in a sandbox, next to a secret file");
    let (workspace, secret) = (folder.join("workspace"), folder.join("secret"));
    std::fs::create_dir(&workspace).map_err(ShepherdCliError::io("make a workspace"))?;
    std::fs::write(&secret, "the secret").map_err(ShepherdCliError::io("write a secret"))?;
    let read_secret = format!("cat {}", secret.display());
    let write_outside = format!("echo x > {}", folder.join("outside").display());
    let attempts = [
        ("write a file in its workspace", "echo hello > note && cat note", true),
        ("read a file outside its workspace", read_secret.as_str(), false),
        ("write a file outside its workspace", write_outside.as_str(), false),
    ];
    let mut sandbox = Sandbox::system_read_only();
    sandbox.read.push(workspace.clone());
    sandbox.write.push(workspace.clone());
    sandbox.strictness = SandboxStrictness::BestEffort;
    let files = sandbox::probe().filesystem;
    if !files.is_enforced() {
        output.print_marked(
            TextTone::Bad,
            "✗",
            &format!("skipped, because this machine can't restrict access to files: {files}"),
        );
        return Ok(SandboxDemoResult::Skipped);
    }
    for (number, (what, script, may)) in attempts.into_iter().enumerate() {
        record(ledger, json!({"event": "command", "what": what}))?;
        let spec = shell(script).directory(&workspace).sandbox(sandbox.clone());
        let mut tree = spawn(supervisor, &format!("sandbox-{number}"), spec)?;
        let done =
            tree.wait(Some(Duration::from_secs(20))).map_err(ShepherdCliError::io("wait for a command"))?;
        // A refusal is an exit with an error code. A command that hangs or is killed fails the tour.
        let as_expected = match done.map(|ended| ended.exit) {
            Some(ProcessExit::Code(code)) => (code == 0) == may,
            Some(ProcessExit::Signal(_) | ProcessExit::Unknown) | None => false,
        };
        ensure(as_expected, &format!("the sandbox gave the wrong result for: {what}"))?;
        if may {
            output.print_marked(TextTone::Good, "✓", &format!("the command could {what}"));
        } else {
            output.print_marked(TextTone::Good, "✗", &format!("the command could not {what}"));
        }
    }
    Ok(SandboxDemoResult::Complete)
}

/// Verifies the log of the tour before and after an edit.
fn show_log(output: &mut ConsoleOutput, log: &Path) -> Result<(), ShepherdCliError> {
    output.print_heading("The log of this tour, and what happens when somebody edits it");
    let format = LedgerFormat::new(EVENT_HASH)?;
    let verify = || {
        ward_ledger::verify(log, &format, None)
            .map_err(|source| ShepherdCliError::Verify { log: log.to_owned(), source })
    };
    let report = verify()?;
    ensure(report.is_sound(), "an unchanged log failed verification")?;
    output.print_marked(
        TextTone::Good,
        "✓",
        &format!("{} records, linked by their hashes, and none was changed", report.records),
    );

    let text = std::fs::read_to_string(log).map_err(ShepherdCliError::io("read the log"))?;
    let edited = text.replace("\"remaining_ms\":1000", "\"remaining_ms\":9000");
    ensure(edited != text, "the log does not contain the warning")?;
    std::fs::write(log, edited).map_err(ShepherdCliError::io("edit the log"))?;
    let report = verify()?;
    let broken = report
        .broken
        .ok_or_else(|| ShepherdCliError::DemoCheckFailed("an edited log passed verification".to_owned()))?;
    output.print_marked(TextTone::Good, "✗", &format!("after editing one number: {broken}"));
    Ok(())
}

fn shell(script: &str) -> ProcessSpec {
    ProcessSpec::new("/bin/sh")
        .args(["-c", script])
        .env("PATH", "/usr/bin:/bin")
        .lifetime(TreeLifetime::DiesWithSupervisor)
        .stdout(OutputTarget::Null)
}

fn spawn(
    supervisor: &Supervisor,
    name: &str,
    mut spec: ProcessSpec,
) -> Result<ProcessTree, ShepherdCliError> {
    if supervisor.containment() == Containment::ProcessGroup {
        spec = spec.lifetime(TreeLifetime::Independent);
    }
    let id = format!("tour-{}-{name}", std::process::id());
    let id = id.parse().map_err(|error| ShepherdCliError::DemoCheckFailed(format!("{error}")))?;
    Ok(supervisor.spawn(id, spec)?)
}

fn expect_running(tree: &mut ProcessTree, length: Duration) -> Result<(), ShepherdCliError> {
    let ended = tree.wait(Some(length)).map_err(ShepherdCliError::io("wait for a program"))?;
    ensure(ended.is_none(), "the program exited too early")
}

fn record(ledger: &mut Ledger, event: Value) -> Result<(), ShepherdCliError> {
    let event: Map<String, Value> = match event {
        Value::Object(event) => event,
        other => Map::from_iter([("event".to_owned(), other)]),
    };
    ledger.append(event)?;
    Ok(())
}
