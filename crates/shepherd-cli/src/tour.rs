//! A few seconds of the real thing: a session that ends whether it likes it or not, a command that a
//! sandbox holds, and a log that notices being edited.
//!
//! Every claim is checked while it is made; one that does not hold ends the tour with an error.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use ward_ledger::{Ledger, LedgerFormat, LedgerOptions};
use ward_process::sandbox::{self, Sandbox, SandboxStrictness};
use ward_process::{
    Containment, EndedBy, OutputTarget, ProcessExit, ProcessSpec, ProcessTree, StopLadder, Supervisor,
    TreeLifetime,
};

use crate::audit::EVENT_HASH;
use crate::doctor;
use crate::error::ShepherdCliError;
use crate::output::{ConsoleOutput, TextTone};

const SESSION: Duration = Duration::from_secs(3);
const WARNING: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(500);

pub(crate) fn run(screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let folder = tempfile::tempdir().map_err(ShepherdCliError::io("make a temporary folder"))?;
    let log = folder.path().join("audit.log");
    let (mut ledger, _) = Ledger::open(&log, LedgerOptions::new(LedgerFormat::new(EVENT_HASH)?))?;
    let supervisor = Supervisor::new()?;

    screen.print_line("Shepherd decides what may run, when and for how long, and ends it when time is up.");
    screen.print_line(
        "CollieClaw lets an AI agent work on this machine, one judged and recorded call at a time.",
    );
    screen.print_line("Both stand on what you see now. It takes a few seconds and leaves nothing behind.");
    doctor::show_containments(screen, &ward_process::probe(), doctor::ContainmentScope::ThisProcess);

    show_session(screen, &supervisor, &mut ledger)?;
    let sandbox_shown = show_sandbox(screen, &supervisor, &mut ledger, folder.path())?;
    show_log(screen, &log)?;

    match sandbox_shown {
        SandboxDemoResult::Complete => screen.print_heading("That was all of it, for real"),
        SandboxDemoResult::Skipped => {
            screen.print_heading("That was it, for real but in part: this machine lacks the sandbox");
        }
    }
    screen.print_line(
        "  `shepherd doctor` says what this machine can enforce; `shepherd --help` what else there is.",
    );
    Ok(())
}

/// Whether the machine had what it takes.
enum SandboxDemoResult {
    Complete,
    Skipped,
}

/// A program that does not want to end, known by a sleep that nobody else sleeps: it ignores the polite
/// signal, and so does its child.
struct StubbornProgram {
    sleep: String,
    script: String,
    child: &'static str,
}

impl StubbornProgram {
    fn new(containment: Containment) -> Self {
        let sleep = format!("sleep {}", 600_000_000 + std::process::id());
        let (flee, child) = match containment {
            // It would get away, and the tour would leave it behind.
            Containment::ProcessGroup => ("", "its child stays, since a process group could not hold it"),
            _ => ("setsid", "its child fled into another session"),
        };
        let script = format!("trap '' TERM; {flee} {sleep} & {sleep}; {sleep}");
        Self { sleep, script, child }
    }

    /// What is left of it, by a look at all processes that knows nothing of trees.
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

/// A session with a deadline, a warning, and a program that ignores both.
fn show_session(
    screen: &mut ConsoleOutput,
    supervisor: &Supervisor,
    ledger: &mut Ledger,
) -> Result<(), ShepherdCliError> {
    screen.print_heading("A session of three seconds, with a program that will not go");
    // Written down first: what can't be recorded is not granted.
    record(ledger, json!({"event": "session_started", "entry": "stubborn", "max_run_ms": 3000}))?;
    let stubborn = StubbornProgram::new(supervisor.containment());
    let mut tree = spawn(supervisor, "session", shell(&stubborn.script))?;
    screen.print_marked(
        TextTone::Faint,
        "▶",
        &format!("started; it ignores SIGTERM, and {}", stubborn.child),
    );

    expect_running(&mut tree, SESSION - WARNING)?;
    screen.print_marked(TextTone::Faint, "!", "one second left");
    record(ledger, json!({"event": "warning", "entry": "stubborn", "remaining_ms": 1000}))?;

    expect_running(&mut tree, WARNING)?;
    let members = stubborn.survivors();
    ensure(members >= 2, "the stubborn program had no child")?;
    let stopped = supervisor.stop(&mut tree, StopLadder::polite(GRACE))?;
    ensure(stopped.ended_by == EndedBy::Kill, "the stubborn program ended before it was killed")?;
    ensure(stubborn.survivors() == 0, "a process outlived the session")?;
    let elapsed = stopped.elapsed.as_millis();
    record(
        ledger,
        json!({"event": "session_ended", "entry": "stubborn", "after_ms": u64::try_from(elapsed).unwrap_or(u64::MAX)}),
    )?;
    let told = format!(
        "time is up: asked politely, waited {} ms, killed. {members} processes are gone, none is left",
        GRACE.as_millis()
    );
    screen.print_marked(TextTone::Good, "■", &told);
    Ok(())
}

/// What an agent's command may touch, and what the kernel keeps from it.
fn show_sandbox(
    screen: &mut ConsoleOutput,
    supervisor: &Supervisor,
    ledger: &mut Ledger,
    folder: &Path,
) -> Result<SandboxDemoResult, ShepherdCliError> {
    screen.print_heading("A command in a sandbox, with a secret next door");
    let (workspace, secret) = (folder.join("workspace"), folder.join("secret"));
    std::fs::create_dir(&workspace).map_err(ShepherdCliError::io("make a workspace"))?;
    std::fs::write(&secret, "the secret").map_err(ShepherdCliError::io("write a secret"))?;
    let read_secret = format!("cat {}", secret.display());
    let write_outside = format!("echo x > {}", folder.join("outside").display());
    let attempts = [
        ("write a file in its workspace", "echo hello > note && cat note", true),
        ("read a file outside", read_secret.as_str(), false),
        ("write a file outside", write_outside.as_str(), false),
    ];
    let mut sandbox = Sandbox::system_read_only();
    sandbox.read.push(workspace.clone());
    sandbox.write.push(workspace.clone());
    sandbox.strictness = SandboxStrictness::BestEffort;
    let files = sandbox::probe().filesystem;
    if !files.is_enforced() {
        screen.print_marked(
            TextTone::Bad,
            "✗",
            &format!("not shown, since files can't be kept from it here: {files}"),
        );
        return Ok(SandboxDemoResult::Skipped);
    }
    for (number, (what, script, may)) in attempts.into_iter().enumerate() {
        record(ledger, json!({"event": "command", "what": what}))?;
        let order = shell(script).directory(&workspace).sandbox(sandbox.clone());
        let mut tree = spawn(supervisor, &format!("sandbox-{number}"), order)?;
        let done =
            tree.wait(Some(Duration::from_secs(20))).map_err(ShepherdCliError::io("wait for a command"))?;
        // Refused is what ended by itself, with an error: not what hung or was killed.
        let as_told = match done.map(|ended| ended.exit) {
            Some(ProcessExit::Code(code)) => (code == 0) == may,
            Some(ProcessExit::Signal(_) | ProcessExit::Unknown) | None => false,
        };
        ensure(as_told, &format!("the sandbox was wrong about this: {what}"))?;
        if may {
            screen.print_marked(TextTone::Good, "✓", &format!("it could {what}"));
        } else {
            screen.print_marked(TextTone::Good, "✗", &format!("it could not {what}"));
        }
    }
    Ok(SandboxDemoResult::Complete)
}

/// The record of all that, before and after somebody edits it.
fn show_log(screen: &mut ConsoleOutput, log: &Path) -> Result<(), ShepherdCliError> {
    screen.print_heading("The record of it, and what happens when somebody edits it");
    let format = LedgerFormat::new(EVENT_HASH)?;
    let verify = || {
        ward_ledger::verify(log, &format, None)
            .map_err(|source| ShepherdCliError::Verify { log: log.to_owned(), source })
    };
    let report = verify()?;
    ensure(report.is_sound(), "a log that nobody touched did not verify")?;
    screen.print_marked(
        TextTone::Good,
        "✓",
        &format!("{} records, each with the hash of the one before: sound", report.records),
    );

    let text = std::fs::read_to_string(log).map_err(ShepherdCliError::io("read the log"))?;
    let edited = text.replace("\"remaining_ms\":1000", "\"remaining_ms\":9000");
    ensure(edited != text, "the log does not contain the warning")?;
    std::fs::write(log, edited).map_err(ShepherdCliError::io("edit the log"))?;
    let report = verify()?;
    let broken = report
        .broken
        .ok_or_else(|| ShepherdCliError::DemoCheckFailed("an edited log verified".to_owned()))?;
    screen.print_marked(TextTone::Good, "✗", &format!("one number edited: {broken}"));
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
    mut order: ProcessSpec,
) -> Result<ProcessTree, ShepherdCliError> {
    if supervisor.containment() == Containment::ProcessGroup {
        order = order.lifetime(TreeLifetime::Independent);
    }
    let id = format!("tour-{}-{name}", std::process::id());
    let id = id.parse().map_err(|error| ShepherdCliError::DemoCheckFailed(format!("{error}")))?;
    Ok(supervisor.spawn(id, order)?)
}

fn expect_running(tree: &mut ProcessTree, length: Duration) -> Result<(), ShepherdCliError> {
    let ended = tree.wait(Some(length)).map_err(ShepherdCliError::io("wait for a program"))?;
    ensure(ended.is_none(), "the program ended by itself")
}

fn record(ledger: &mut Ledger, event: Value) -> Result<(), ShepherdCliError> {
    let event: Map<String, Value> = match event {
        Value::Object(event) => event,
        other => Map::from_iter([("event".to_owned(), other)]),
    };
    ledger.append(event)?;
    Ok(())
}

fn ensure(held: bool, otherwise: &str) -> Result<(), ShepherdCliError> {
    if held { Ok(()) } else { Err(ShepherdCliError::DemoCheckFailed(otherwise.to_owned())) }
}
