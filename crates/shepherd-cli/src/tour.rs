//! A few seconds of the real thing: a session that ends whether it likes it or not, a command that a
//! sandbox holds, and a log that notices being edited.
//!
//! Every claim is checked while it is made; one that does not hold ends the tour with an error.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use ward_ledger::{Format, Ledger, Options};
use ward_process::sandbox::{self, Sandbox, Strictness};
use ward_process::{Containment, EndedBy, Exit, Ladder, Lifetime, Order, Output, Supervisor, Tree};

use crate::audit::EVENT_HASH;
use crate::doctor;
use crate::failure::Failure;
use crate::screen::{Screen, Tone};

const SESSION: Duration = Duration::from_secs(3);
const WARNING: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(500);

pub(crate) fn run(screen: &mut Screen) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::io("make a temporary folder"))?;
    let log = folder.path().join("audit.log");
    let (mut ledger, _) = Ledger::open(&log, Options::new(Format::new(EVENT_HASH)?))?;
    let supervisor = Supervisor::new()?;

    screen.line("Shepherd decides what may run, when and for how long, and ends it when time is up.");
    screen.line("CollieClaw lets an AI agent work on this machine, one judged and recorded call at a time.");
    screen.line("Both stand on what you see now. It takes a few seconds and leaves nothing behind.");
    doctor::show_containments(screen, &ward_process::probe(), doctor::Held::Here);

    show_session(screen, &supervisor, &mut ledger)?;
    let sandbox_shown = show_sandbox(screen, &supervisor, &mut ledger, folder.path())?;
    show_log(screen, &log)?;

    match sandbox_shown {
        Shown::Whole => screen.heading("That was all of it, for real"),
        Shown::Not => screen.heading("That was it, for real but in part: this machine lacks the sandbox"),
    }
    screen.line(
        "  `shepherd doctor` says what this machine can enforce; `shepherd --help` what else there is.",
    );
    Ok(())
}

/// Whether the machine had what it takes.
enum Shown {
    Whole,
    Not,
}

/// A program that does not want to end, known by a sleep that nobody else sleeps: it ignores the polite
/// signal, and so does its child.
struct Stubborn {
    sleep: String,
    script: String,
    child: &'static str,
}

impl Stubborn {
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
fn show_session(screen: &mut Screen, supervisor: &Supervisor, ledger: &mut Ledger) -> Result<(), Failure> {
    screen.heading("A session of three seconds, with a program that will not go");
    // Written down first: what can't be recorded is not granted.
    record(ledger, json!({"event": "session_started", "entry": "stubborn", "max_run_ms": 3000}))?;
    let stubborn = Stubborn::new(supervisor.containment());
    let mut tree = spawn(supervisor, "session", shell(&stubborn.script))?;
    screen.toned(Tone::Faint, "▶", &format!("started; it ignores SIGTERM, and {}", stubborn.child));

    still_runs(&mut tree, SESSION - WARNING)?;
    screen.toned(Tone::Faint, "!", "one second left");
    record(ledger, json!({"event": "warning", "entry": "stubborn", "remaining_ms": 1000}))?;

    still_runs(&mut tree, WARNING)?;
    let members = stubborn.survivors();
    expect(members >= 2, "the stubborn program had no child")?;
    let stopped = supervisor.stop(&mut tree, Ladder::polite(GRACE))?;
    expect(stopped.ended_by == EndedBy::Kill, "the stubborn program ended before it was killed")?;
    expect(stubborn.survivors() == 0, "a process outlived the session")?;
    let elapsed = stopped.elapsed.as_millis();
    record(
        ledger,
        json!({"event": "session_ended", "entry": "stubborn", "after_ms": u64::try_from(elapsed).unwrap_or(u64::MAX)}),
    )?;
    let told = format!(
        "time is up: asked politely, waited {} ms, killed. {members} processes are gone, none is left",
        GRACE.as_millis()
    );
    screen.toned(Tone::Good, "■", &told);
    Ok(())
}

/// What an agent's command may touch, and what the kernel keeps from it.
fn show_sandbox(
    screen: &mut Screen,
    supervisor: &Supervisor,
    ledger: &mut Ledger,
    folder: &Path,
) -> Result<Shown, Failure> {
    screen.heading("A command in a sandbox, with a secret next door");
    let (workspace, secret) = (folder.join("workspace"), folder.join("secret"));
    std::fs::create_dir(&workspace).map_err(Failure::io("make a workspace"))?;
    std::fs::write(&secret, "the secret").map_err(Failure::io("write a secret"))?;
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
    sandbox.strictness = Strictness::BestEffort;
    let files = sandbox::probe().filesystem;
    if !files.holds() {
        screen.toned(Tone::Bad, "✗", &format!("not shown, since files can't be kept from it here: {files}"));
        return Ok(Shown::Not);
    }
    for (number, (what, script, may)) in attempts.into_iter().enumerate() {
        record(ledger, json!({"event": "command", "what": what}))?;
        let order = shell(script).directory(&workspace).sandbox(sandbox.clone());
        let mut tree = spawn(supervisor, &format!("sandbox-{number}"), order)?;
        let done = tree.wait(Some(Duration::from_secs(20))).map_err(Failure::io("wait for a command"))?;
        // Refused is what ended by itself, with an error: not what hung or was killed.
        let as_told = match done.map(|ended| ended.exit) {
            Some(Exit::Code(code)) => (code == 0) == may,
            Some(Exit::Signal(_) | Exit::Unknown) | None => false,
        };
        expect(as_told, &format!("the sandbox was wrong about this: {what}"))?;
        if may {
            screen.toned(Tone::Good, "✓", &format!("it could {what}"));
        } else {
            screen.toned(Tone::Good, "✗", &format!("it could not {what}"));
        }
    }
    Ok(Shown::Whole)
}

/// The record of all that, before and after somebody edits it.
fn show_log(screen: &mut Screen, log: &Path) -> Result<(), Failure> {
    screen.heading("The record of it, and what happens when somebody edits it");
    let format = Format::new(EVENT_HASH)?;
    let verify = || {
        ward_ledger::verify(log, &format, None)
            .map_err(|source| Failure::Verify { log: log.to_owned(), source })
    };
    let report = verify()?;
    expect(report.is_sound(), "a log that nobody touched did not verify")?;
    screen.toned(
        Tone::Good,
        "✓",
        &format!("{} records, each with the hash of the one before: sound", report.records),
    );

    let text = std::fs::read_to_string(log).map_err(Failure::io("read the log"))?;
    let edited = text.replace("\"remaining_ms\":1000", "\"remaining_ms\":9000");
    expect(edited != text, "the log does not contain the warning")?;
    std::fs::write(log, edited).map_err(Failure::io("edit the log"))?;
    let report = verify()?;
    let broken = report.broken.ok_or_else(|| Failure::NotAsTold("an edited log verified".to_owned()))?;
    screen.toned(Tone::Good, "✗", &format!("one number edited: {broken}"));
    Ok(())
}

fn shell(script: &str) -> Order {
    Order::new("/bin/sh")
        .args(["-c", script])
        .env("PATH", "/usr/bin:/bin")
        .lifetime(Lifetime::DiesWithSupervisor)
        .stdout(Output::Null)
}

fn spawn(supervisor: &Supervisor, name: &str, mut order: Order) -> Result<Tree, Failure> {
    if supervisor.containment() == Containment::ProcessGroup {
        order = order.lifetime(Lifetime::Independent);
    }
    let id = format!("tour-{}-{name}", std::process::id());
    let id = id.parse().map_err(|error| Failure::NotAsTold(format!("{error}")))?;
    Ok(supervisor.spawn(id, order)?)
}

fn still_runs(tree: &mut Tree, length: Duration) -> Result<(), Failure> {
    let ended = tree.wait(Some(length)).map_err(Failure::io("wait for a program"))?;
    expect(ended.is_none(), "the program ended by itself")
}

fn record(ledger: &mut Ledger, event: Value) -> Result<(), Failure> {
    let event: Map<String, Value> = match event {
        Value::Object(event) => event,
        other => Map::from_iter([("event".to_owned(), other)]),
    };
    ledger.append(event)?;
    Ok(())
}

fn expect(held: bool, otherwise: &str) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(Failure::NotAsTold(otherwise.to_owned())) }
}
