//! Messages on a text console: the program at a real pseudo-terminal, with a scripted daemon.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use shepherd_api::{
    ApiResponse, ClientMessage, ClientRole, Command, CommandReply, CommandResult, DaemonStateSnapshot, Event,
    EventKind, Language, Millis, ServerMessage, ServerWelcome, SessionCounting, SessionPhase, SessionSlot,
    SessionView, WarningSeverity,
};
use shepherd_util::{ClientId, SessionId};
use tempfile::TempDir;

/// The longest wait for something that happens at once on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps its arguments and its input in a file beside it.
const SPEECH_DOUBLE: &str = "#!/bin/sh
{ printf '%s\n' \"$@\"; cat; } >\"$0.part\" && mv \"$0.part\" \"$0.said\"
";

/// A notifier of Anna at a terminal of its own.
struct ConsoleLogin {
    shell: Child,
    /// The other end of the terminal: what a person sees and types.
    terminal: File,
    subscriber: UnixStream,
    folder: TempDir,
}

impl ConsoleLogin {
    fn start() -> Self {
        Self::with_options(&[])
    }

    /// Starts a notifier that finds a double of `spd-say` first.
    fn with_options(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("spd-say");
        std::fs::write(&program, SPEECH_DOUBLE).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let (terminal, shell) = start_notifier(folder.path(), &socket, options);
        let subscriber = serve_until_subscribed(&listener);
        Self { shell, terminal, subscriber, folder }
    }

    /// Sends a warning as the daemon does.
    fn warn(&mut self, message: &str) {
        let message = message.to_owned();
        let kind = EventKind::WarningIssued {
            session: session(),
            threshold_secs: 300,
            severity: WarningSeverity::Warn,
            message,
        };
        let event = ServerMessage::Event { event: Event { at: Timestamp::UNIX_EPOCH, kind } };
        send(&mut self.subscriber, &event);
    }

    /// Reads from the terminal until this text is there, and returns everything.
    fn read_until(&mut self, text: &str) -> String {
        let (mut seen, deadline) = (String::new(), Instant::now() + PATIENCE);
        while !seen.contains(text) {
            assert!(Instant::now() < deadline, "only this was written: {seen:?}");
            if is_readable(&self.terminal, Duration::from_millis(100)) {
                let mut chunk = [0; 4096];
                let length = self.terminal.read(&mut chunk).unwrap();
                // The terminal ends each line with a carriage return, too.
                seen.push_str(&String::from_utf8_lossy(&chunk[..length]).replace("\r\r", "\r"));
            }
        }
        seen
    }

    fn type_key(&mut self, key: u8) {
        self.terminal.write_all(&[key]).unwrap();
    }
}

impl Drop for ConsoleLogin {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn is_readable(file: &File, within: Duration) -> bool {
    let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&within)).unwrap() > 0
}

/// Starts the program as a login shell does, in the background of a session whose terminal is a new pseudo-terminal.
/// Returns the process of the session.
fn start_notifier(folder: &Path, socket: &Path, options: &[&str]) -> (File, Child) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let own_end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let login = Program::new("setsid")
        .args(["--ctty", "bash", "-c", "set -m; (\"$0\" \"$@\" &); exec sleep 600"])
        .arg(env!("CARGO_BIN_EXE_shepherd-notify"))
        .args(["--terminal", "--profile", "anna", "--socket"])
        .arg(socket)
        .args(options)
        .env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()))
        .stdin(own_end)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    (File::from(terminal), login)
}

/// Answers the notifier until it has subscribed to events, and returns that connection.
fn serve_until_subscribed(listener: &UnixListener) -> UnixStream {
    let (mut stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    lines.next().unwrap();
    send(
        &mut stream,
        &ServerMessage::Welcome(ServerWelcome {
            api_version: 1,
            speaks: 1,
            daemon_version: "0.1.0".to_owned(),
            client_id: ClientId::from_random(1),
            role: ClientRole::Shell,
            role_with_pin: None,
        }),
    );
    let ClientMessage::Request(request) = ClientMessage::parse(lines.next().unwrap().as_bytes()).unwrap()
    else {
        panic!("a request was expected");
    };
    assert_eq!(request.command, Command::SubscribeEvents {});
    let snapshot = DaemonStateSnapshot {
        api_version: 1,
        at: Timestamp::UNIX_EPOCH,
        session: Some(session()),
        sessions: vec![session()],
        entry_count: 1,
        mode: String::new(),
        clock_trusted: true,
        profiles: Vec::new(),
        language: Some(Language::German),
    };
    let result = CommandResult::Ok(CommandReply::Subscribed { snapshot });
    send(&mut stream, &ServerMessage::Response(ApiResponse { id: request.id, result }));
    stream
}

fn send(stream: &mut UnixStream, message: &ServerMessage) {
    let line = serde_json::to_string(message).unwrap() + "\n";
    stream.write_all(line.as_bytes()).unwrap();
}

fn session() -> SessionView {
    SessionView {
        session_id: SessionId::from_random(1),
        entry_id: "tuxmath".parse().unwrap(),
        label: "Mathe".to_owned(),
        profile: "anna".parse().unwrap(),
        slot: SessionSlot::Foreground,
        counting: SessionCounting::Active,
        phase: SessionPhase::Running,
        started_at: Timestamp::UNIX_EPOCH,
        remaining: Some(Millis(300_000)),
        hours_end: None,
        ran: None,
        warned: None,
    }
}

// S19.3
#[test]
fn a_warning_is_written_to_the_terminal_of_the_login() {
    let mut login = ConsoleLogin::start();
    login.warn("Noch 5 Minuten Mathe.\u{1b}[2J");
    let seen = login.read_until("tuxmath 10m");
    assert!(seen.contains("Shepherd: Noch 5 Minuten Mathe.\\u{1b}[2J\r\n"), "{seen:?}");
    assert!(seen.contains("Um 10 Minuten mehr bitten: shepherd request tuxmath 10m\r\n"), "{seen:?}");
}

// S19.3
#[test]
fn a_warning_is_spoken_as_input_of_the_speech_program() {
    let mut login = ConsoleLogin::with_options(&["--speak"]);
    login.warn("--version `id` $(id)\n!-!QUIT");
    let said = login.folder.path().join("spd-say.said");
    let deadline = Instant::now() + PATIENCE;
    while !said.exists() {
        assert!(Instant::now() < deadline, "nothing was spoken");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(
        std::fs::read_to_string(said).unwrap(),
        "--pipe-mode\n--language\nde\nMathe. --version `id` $(id)  QUIT\n"
    );
}

#[test]
fn nothing_is_spoken_unless_asked_for() {
    let mut login = ConsoleLogin::start();
    login.warn("Noch 5 Minuten Mathe.");
    login.read_until("tuxmath 10m");
    login.warn("Noch 1 Minute Mathe.");
    login.read_until("Noch 1 Minute");
    assert!(!login.folder.path().join("spd-say.said").exists());
}

#[test]
fn a_stopped_terminal_misses_a_message_and_gets_the_next() {
    const STOP: u8 = 0x13;
    const CONTINUE: u8 = 0x11;
    let mut login = ConsoleLogin::start();
    login.warn("one");
    login.read_until("tuxmath 10m");
    login.type_key(STOP);
    for number in 0..2_000 {
        login.warn(&format!("lost {number}"));
    }
    login.type_key(CONTINUE);
    // The kernel may have kept the first lines.
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        assert!(Instant::now() < deadline);
        login.warn("the last one");
        if is_readable(&login.terminal, Duration::from_millis(100)) {
            break login.read_until("the last one");
        }
    };
    assert!(found.contains("Shepherd: "), "{found:?}");
}

#[test]
fn the_notifier_ends_with_its_terminal() {
    let mut login = ConsoleLogin::start();
    login.terminal = File::open("/dev/null").unwrap();
    login.subscriber.set_read_timeout(Some(PATIENCE)).unwrap();
    let read = login.subscriber.read(&mut [0]);
    assert!(matches!(read, Ok(0)), "the notifier still runs: {read:?}");
}
