//! Real programs of every kind that come to the end of their time: they are told, they are gone, and only once (S6.2,
//! S6.6, S6.7, S13.5).

use std::time::{Duration, Instant};

use shepherd_api::{AuditKind, EndReason, EventKind, SessionView, StopRequester};

use crate::guest::{PowerButton, write_disk};
use crate::harness::compositor::{SwayFixture, assert_installed, fullscreen_window, ipc_socket};
use crate::harness::{
    ObservedProcess, ShepherddFixture, process_tree, processes_with, survivors, wait_until,
};

/// How long a program may run. The first is for a machine that has time; where it does not come up before its end,
/// nothing is learnt, and it gets more.
const LENGTHS: [Duration; 3] = [Duration::from_secs(4), Duration::from_secs(10), Duration::from_secs(24)];

/// How a program was ended.
struct ExpiredRun {
    household: ShepherddFixture,
    session: SessionView,
    /// From the end of its time until it was gone.
    took: Duration,
}

impl ExpiredRun {
    /// The daemon ends, and its compositor, if it has one: then there is nobody.
    fn shut_down(mut self) {
        assert!(self.household.end().success());
        self.household.assert_no_processes_left();
    }
}

/// What a session has said so far.
fn output(household: &ShepherddFixture, session: &SessionView) -> String {
    let log = household.data().join(format!("logs/{}.log", session.session_id));
    std::fs::read_to_string(log).unwrap_or_default()
}

/// Runs the entry `it` of a policy until its time is over. `ready` is when it may be launched, and `members` are its
/// processes once it is up, and none before.
fn run_until_expired(
    policy: impl Fn(Duration) -> String,
    ready: impl Fn() -> bool,
    members: impl Fn(&ShepherddFixture, &SessionView) -> Vec<ObservedProcess>,
) -> ExpiredRun {
    for length in LENGTHS {
        let household = ShepherddFixture::running(&policy(length));
        wait_until("everything is there for it", &ready);
        let mut listener = household.subscriber();
        let called = Instant::now();
        let session = household.launch("it");
        let mut tree = Vec::new();
        while tree.is_empty() && called.elapsed() < length {
            std::thread::sleep(Duration::from_millis(20));
            tree = members(&household, &session);
        }
        if tree.is_empty() {
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
        let [(reason, after)] = expired.as_slice() else { panic!("told {expired:?}") };
        assert_eq!(*reason, EndReason::Expired);
        assert!(*after >= length, "told after {after:?} of {length:?}");
        wait_until("the session is over", || household.state().session.is_none());
        check_record(&household);
        return ExpiredRun { household, session, took };
    }
    panic!("it did not come up in {LENGTHS:?}");
}

/// Its end was called once, by the policy, and came once.
fn check_record(household: &ShepherddFixture) {
    let by_policy =
        |what: &AuditKind| matches!(what, AuditKind::StopRequested { by: StopRequester::Policy, .. });
    let stops = household.count_audit_records(|what| matches!(what, AuditKind::StopRequested { .. }));
    assert_eq!((household.count_audit_records(by_policy), stops), (1, 1));
    assert_eq!(household.count_audit_records(|what| matches!(what, AuditKind::SessionEnded { .. })), 1);
}

/// The same for an entry with a window that has to fill the screen first, and that has at least so many processes.
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
        |household, _| {
            let window = fullscreen_window(&ipc_socket(household)).filter(|&pid| is_up(pid));
            window.map(process_tree).filter(|tree| tree.len() >= processes).unwrap_or_default()
        },
    );
    assert_eq!(fullscreen_window(&ipc_socket(&ended.household)), None);
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

/// Whether a process has a handler of its own for SIGTERM.
fn catches_sigterm(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 14) != 0
}

/// Tux Paint heeds neither SIGTERM nor that its window is closed.
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

/// A signal would come only when half of the grace is over, and nobody waits that long: it is told to quit.
#[test]
fn a_film_ends_in_the_middle_when_its_time_is_over() {
    assert_installed("mpv");
    let screen = SwayFixture::new();
    // Ten seconds of grey, over and over.
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
    let said = output(&ended.household, &ended.session);
    assert!(said.contains("VO: [wlshm]"), "{said}");
    ended.shut_down();
}

/// Runs a guest until its time is over, and says what it and its QEMU said.
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
        |household, session| {
            let is_up = output(household, session).contains("GUEST-UP");
            machine().into_iter().filter(|_| is_up).flat_map(process_tree).collect()
        },
    );
    assert_eq!(machine(), [0; 0]);
    let said = output(&ended.household, &ended.session);
    ended.shut_down();
    said
}

/// The monitor would end it only when half of the grace is over, and nobody waits that long.
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
