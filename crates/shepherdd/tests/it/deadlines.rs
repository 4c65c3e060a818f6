//! Real programs of every kind whose time is over: each is stopped once, leaves no process, and its end is reported once
//! (S6.2, S6.6, S6.7, S13.5).

use std::time::{Duration, Instant};

use shepherd_api::{AuditKind, EndReason, EventKind, SessionView, StopRequester};

use crate::guest::{PowerButton, write_disk};
use crate::harness::compositor::{SwayFixture, assert_installed, fullscreen_window, ipc_socket};
use crate::harness::{
    ObservedProcess, ShepherddFixture, becomes_true_within, process_tree, processes_with, survivors,
    wait_until,
};

/// The lengths of a session. If the program isn't up before the end of one, the test is repeated with the next.
const LENGTHS: [Duration; 3] = [Duration::from_secs(4), Duration::from_secs(10), Duration::from_secs(24)];

/// A run whose time is over.
struct ExpiredRun {
    fixture: ShepherddFixture,
    session: SessionView,
    /// The time from the end of the session until the program was gone.
    took: Duration,
}

impl ExpiredRun {
    /// Ends the daemon with its compositor, and checks that no process is left.
    fn shut_down(mut self) {
        assert!(self.fixture.end().success());
        self.fixture.assert_no_processes_left();
    }
}

/// Returns the output of a session so far.
fn output(fixture: &ShepherddFixture, session: &SessionView) -> String {
    let log = fixture.data().join(format!("logs/{}.log", session.session_id));
    std::fs::read_to_string(log).unwrap_or_default()
}

/// Runs the entry `it` of a policy until its time is over. The entry is launched when `ready` returns true. `members`
/// returns the processes of the program, and none before the program is up.
fn run_until_expired(
    policy: impl Fn(Duration) -> String,
    ready: impl Fn() -> bool,
    members: impl Fn(&ShepherddFixture, &SessionView) -> Vec<ObservedProcess>,
) -> ExpiredRun {
    for length in LENGTHS {
        let fixture = ShepherddFixture::running(&policy(length));
        wait_until("everything is there for it", &ready);
        let mut listener = fixture.subscriber();
        let called = Instant::now();
        let session = fixture.launch("it");
        let mut tree = Vec::new();
        let is_up = becomes_true_within(length, || {
            tree = members(&fixture, &session);
            !tree.is_empty()
        });
        if !is_up || called.elapsed() >= length {
            continue;
        }
        let mut expired = Vec::new();
        let end = listener.wait_for(|event| match event {
            EventKind::SessionExpired { session: of, end } if of.session_id == session.session_id => {
                expired.push((end.clone(), called.elapsed()));
                None
            }
            EventKind::SessionEnded { session_id, end } if *session_id == session.session_id => {
                Some(end.clone())
            }
            _ => None,
        });
        let took = called.elapsed().saturating_sub(length);
        assert_eq!(end, EndReason::Expired);
        assert_eq!(survivors(&tree), []);
        let [(reason, after)] = expired.as_slice() else { panic!("reported {expired:?}") };
        assert_eq!(*reason, EndReason::Expired);
        assert!(*after >= length, "reported after {after:?} of {length:?}");
        wait_until("the session is over", || fixture.state().session.is_none());
        check_record(&fixture);
        return ExpiredRun { fixture, session, took };
    }
    panic!("it did not come up in {LENGTHS:?}");
}

/// Checks that the audit log has one stop request, by the policy, and one end.
fn check_record(fixture: &ShepherddFixture) {
    let by_policy =
        |what: &AuditKind| matches!(what, AuditKind::StopRequested { by: StopRequester::Policy, .. });
    let stops = fixture.count_audit_records(|what| matches!(what, AuditKind::StopRequested { .. }));
    assert_eq!((fixture.count_audit_records(by_policy), stops), (1, 1));
    assert_eq!(fixture.recorded_ends().len(), 1);
}

/// Runs an entry whose program is up when its window fills the screen and it has this many processes.
fn run_until_expired_in_sway(
    screen: &SwayFixture,
    entry: &str,
    processes: usize,
    is_up: impl Fn(i32) -> bool,
) -> ExpiredRun {
    let policy = |length: Duration| {
        screen.policy(&format!("id = \"it\"\nmax_run = \"{}s\"\n{entry}", length.as_secs()))
    };
    let ended = run_until_expired(
        policy,
        || !screen.screenshot().is_empty(),
        |fixture, _| {
            let window = fullscreen_window(&ipc_socket(fixture)).filter(|&pid| is_up(pid));
            window.map(process_tree).filter(|tree| tree.len() >= processes).unwrap_or_default()
        },
    );
    assert_eq!(fullscreen_window(&ipc_socket(&ended.fixture)), None);
    assert_eq!(processes_with(screen.home().to_str().unwrap()), [0; 0]);
    ended
}

fn variables(screen: &SwayFixture) -> String {
    let home = screen.home();
    let home = home.display();
    format!(
        r#"env = {{ HOME = "{home}", XDG_RUNTIME_DIR = "{home}", SDL_VIDEODRIVER = "wayland", SDL_AUDIODRIVER = "dummy", LIBGL_ALWAYS_SOFTWARE = "1" }}"#
    )
}

/// Returns true if a process has a handler for SIGTERM.
fn catches_sigterm(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 14) != 0
}

/// Tux Paint ignores SIGTERM and the request to close its window.
#[test]
fn a_program_that_ignores_being_asked_is_gone_when_its_grace_is_over() {
    assert_installed("tuxpaint");
    let screen = SwayFixture::new();
    screen.configure("output HEADLESS-1 mode 1280x720@60Hz position 0 0\n");
    let argv = r#"["tuxpaint", "--windowed", "--800x600", "--nosound", "--nolockfile"]"#;
    let entry = format!("argv = {argv}\nstop_grace = \"1s\"\n{}", variables(&screen));
    let ended = run_until_expired_in_sway(&screen, &entry, 1, catches_sigterm);
    assert!(ended.took >= Duration::from_secs(1), "its grace is given: {:?}", ended.took);
    ended.shut_down();
}

#[test]
fn a_browser_with_many_processes_leaves_none_when_its_time_is_over() {
    assert_installed("chromium");
    let screen = SwayFixture::new();
    let profile = screen.home().join("profile");
    let argv = format!(
        r#"["chromium", "--ozone-platform=wayland", "--no-first-run", "--disable-gpu", "--user-data-dir={}", "about:blank"]"#,
        profile.display()
    );
    let entry = format!("argv = {argv}\nstop_grace = \"5s\"\n{}", variables(&screen));
    run_until_expired_in_sway(&screen, &entry, 5, |_| true).shut_down();
}

/// The player gets a command to quit. A signal would come only after half of the grace, which is longer than the test.
#[test]
fn a_film_ends_in_the_middle_when_its_time_is_over() {
    assert_installed("mpv");
    let screen = SwayFixture::new();
    // Ten seconds of grey, in a loop.
    let mut film = b"YUV4MPEG2 W16 H16 F25:1 Ip A1:1 C420\n".to_vec();
    for _ in 0..250 {
        film.extend(b"FRAME\n");
        film.extend([128; 16 * 16 * 3 / 2]);
    }
    std::fs::write(screen.home().join("grey.y4m"), film).unwrap();
    let entry = format!(
        r#"
kind = "media"
library = "films"
args = ["--no-config", "--vo=wlshm", "--ao=null", "--loop-playlist=inf", "--term-status-msg="]
stop_grace = "120s"

[libraries.films]
paths = ["{}"]
"#,
        screen.home().display()
    );
    let ended = run_until_expired_in_sway(&screen, &entry, 1, |_| true);
    let said = output(&ended.fixture, &ended.session);
    assert!(said.contains("VO: [wlshm]"), "{said}");
    ended.shut_down();
}

/// Runs a guest until its time is over, and returns its output and that of QEMU.
fn run_guest_until_expired(button: PowerButton, grace: &str) -> String {
    assert_installed("qemu-system-x86_64");
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk.img");
    write_disk(&disk, button);
    let disk = disk.display();
    let policy = |length: Duration| {
        format!(
            r#"
config_version = 1

[[entries]]
id = "it"
kind = "vm"
driver = "qemu"
args = {{ disk = "{disk}", memory = "32MiB", accel = "tcg", machine = "pc", display = "none", serial = "log" }}
always = true
max_run = "{}s"
stop_grace = "{grace}"
"#,
            length.as_secs()
        )
    };
    let machine = || processes_with(&format!("file={disk}"));
    let ended = run_until_expired(
        policy,
        || true,
        |fixture, session| {
            let is_up = output(fixture, session).contains("GUEST-UP");
            machine().into_iter().filter(|_| is_up).flat_map(process_tree).collect()
        },
    );
    assert_eq!(machine(), [0; 0]);
    let said = output(&ended.fixture, &ended.session);
    ended.shut_down();
    said
}

/// QEMU's monitor would end the guest only after half of the grace, which is longer than the test.
#[test]
fn a_guest_is_powered_down_when_its_time_is_over() {
    let said = run_guest_until_expired(PowerButton::Obeyed, "120s");
    assert!(said.contains("GUEST-DOWN") && !said.contains("terminating on signal"), "{said}");
}

#[test]
fn a_guest_that_ignores_its_power_button_is_gone_when_its_grace_is_over() {
    let said = run_guest_until_expired(PowerButton::Ignored, "2s");
    assert!(!said.contains("GUEST-DOWN"), "{said}");
}
