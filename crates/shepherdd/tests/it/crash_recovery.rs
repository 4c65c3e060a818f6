//! `kill -9` of the daemon at a hundred random moments of a session (S9.1, S9.2b): the session keeps its end, no warning
//! comes twice, no process is left, and no time is charged twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shepherd_api::{AuditKind, AuditRecord, Command, EndReason, EventKind, StopRequester};
use shepherd_ipc::{BlockingClient, ClientOptions, ServerPush};
use shepherd_util::SessionId;
use ward_fuzz::SeededRandom;

use crate::harness::{ShepherddFixture, is_alive, policy, stubborn_entry, wait_until};

const FIXTURES: u64 = 10;
const LIVES: usize = 2;
const KILLS_IN_A_LIFE: usize = 5;

const POLICY: &str = policy!(stubborn_entry!(
    "play",
    r#"max_run = "3s"
stop_grace = "1s"
warnings = [{ before = "2s" }, { before = "1s" }]"#
));

const LENGTH: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(1);
/// The tolerance for a machine on which ten daemons run.
const SLACK: Duration = Duration::from_secs(3);

#[test]
fn heavy_a_daemon_killed_at_a_hundred_moments_keeps_every_promise() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    std::thread::scope(|scope| {
        for number in 0..FIXTURES {
            scope.spawn(move || {
                let mut random = SeededRandom::new(seed ^ (number << 32));
                let mut fixture = ShepherddFixture::running(POLICY);
                let listener = WarningListener::start(&fixture.socket());
                for _ in 0..LIVES {
                    run_and_kill_repeatedly(&mut fixture, &mut random);
                }
                check_records(&fixture, &listener.end());
                assert!(fixture.end().success());
                fixture.assert_chain_is_sound();
            });
        }
    });
}

/// Returns random moments of a session in milliseconds, most of them close to an event.
fn moments(random: &mut SeededRandom) -> Vec<u64> {
    let mut moments: Vec<u64> = (0..KILLS_IN_A_LIFE)
        .map(|_| {
            let (from, length) = *random
                .pick(&[
                    (0, 40),
                    (40, 200),
                    (980, 60),
                    (1_980, 60),
                    (2_970, 80),
                    (3_100, 800),
                    (3_960, 100),
                    (0, 4_200),
                ])
                .unwrap();
            from + random.next_number() % length
        })
        .collect();
    moments.sort_unstable();
    moments
}

fn run_and_kill_repeatedly(fixture: &mut ShepherddFixture, random: &mut SeededRandom) {
    let moments = moments(random);
    let description = format!("killed at {moments:?} ms");
    let used_before = fixture.recorded_usage("play");
    let called = Instant::now();
    let launch = launch_in_background(fixture.socket());
    let mut came_up = called;
    let (mut seen, mut player) = (None::<(Instant, Instant)>, None);
    let mut look = |fixture: &ShepherddFixture| {
        player = player.or_else(|| fixture.program_pids().first().copied());
        if player.is_some_and(is_alive) {
            let now = Instant::now();
            seen = Some((seen.map_or(now, |(first, _)| first), now));
        }
    };
    for moment in moments {
        // The random moment of the kill.
        std::thread::sleep(
            (called + Duration::from_millis(moment)).saturating_duration_since(Instant::now()),
        );
        fixture.kill();
        look(fixture);
        fixture.start();
        came_up = Instant::now();
    }
    launch.join().unwrap();
    wait_until(&format!("the end of a session {description}"), || {
        look(fixture);
        fixture.state().session.is_none()
    });
    let ended = Instant::now();
    fixture.assert_no_processes_left();
    // If the daemon were killed before the end is on disk, the next one would estimate the usage again.
    wait_until("the records of all ends", || {
        let balance = |sum: i32, record: &AuditRecord| match record.line.what {
            AuditKind::LaunchApproved { .. } => sum + 1,
            AuditKind::SessionEnded { .. } => sum - 1,
            _ => sum,
        };
        fixture.audit().iter().fold(0, balance) == 0
    });
    let used = fixture.recorded_usage("play") - used_before;
    assert!(used <= ended - called, "{description}: {used:?} charged for at most {:?}", ended - called);
    if let Some((first, last)) = seen {
        assert!(used >= last - first, "{description}: {used:?} charged for at least {:?}", last - first);
        assert!(ended >= called + LENGTH, "{description}: ended early, after {:?}", ended - called);
    }
    // If the last daemon has to stop the program, the program gets its grace, and nothing more.
    let latest = (called + LENGTH).max(came_up) + GRACE + SLACK;
    assert!(ended <= latest, "{description}: ended {:?} too late\n{}", ended - latest, fixture.log());
}

/// Launches the entry without waiting for the reply, which a killed daemon never sends.
fn launch_in_background(socket: PathBuf) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let Ok(mut client) = BlockingClient::connect(&ClientOptions::new(socket, "child")) else { return };
        let _ =
            client.call(Command::Launch { entry_id: "play".parse().unwrap(), profile: None, display: None });
    })
}

/// The number of times that each warning was given.
type WarningCounts = BTreeMap<(SessionId, u64), usize>;

/// Checks the audit records of every session, and the warnings that clients got.
fn check_records(fixture: &ShepherddFixture, warned: &WarningCounts) {
    assert_eq!(warned.values().filter(|times| **times > 1).count(), 0, "{warned:?}");
    let mut sessions: BTreeMap<SessionId, SessionTally> = BTreeMap::new();
    for record in fixture.audit() {
        match record.line.what {
            AuditKind::LaunchApproved { session_id, .. } => {
                sessions.entry(session_id).or_default().approved += 1;
            }
            AuditKind::SessionStarted { session_id } => sessions.entry(session_id).or_default().started += 1,
            AuditKind::WarningGiven { session_id, threshold_secs } => {
                sessions.entry(session_id).or_default().warnings.push(threshold_secs);
            }
            AuditKind::StopRequested { session_id, by: StopRequester::Policy, .. } => {
                sessions.entry(session_id).or_default().expired += 1;
            }
            AuditKind::SessionEnded { session_id, end, charged } => {
                let life = sessions.entry(session_id).or_default();
                life.ends.push(end);
                life.charged += Duration::from(charged);
            }
            _ => {}
        }
    }
    for (session_id, life) in &sessions {
        assert_eq!((life.approved, life.ends.len()), (1, 1), "{session_id}: {life:?}");
        assert!(life.started <= 1 && life.expired <= 1, "{session_id}: {life:?}");
        assert!(life.warnings.is_sorted_by(|earlier, later| earlier > later), "{session_id}: {life:?}");
        if life.ends == [EndReason::Expired] {
            assert_eq!((life.warnings.as_slice(), life.expired), (&[2, 1][..], 1), "{session_id}: {life:?}");
        }
    }
    let charged: Duration = sessions.values().map(|life| life.charged).sum();
    // Each charge is rounded down to a millisecond.
    let difference = fixture.recorded_usage("play").abs_diff(charged);
    assert!(difference <= Duration::from_millis(sessions.len() as u64), "{difference:?}");
}

#[derive(Debug, Default)]
struct SessionTally {
    approved: usize,
    started: usize,
    expired: usize,
    warnings: Vec<u64>,
    ends: Vec<EndReason>,
    charged: Duration,
}

/// A client that connects to one daemon after the other, and counts warnings.
struct WarningListener {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<WarningCounts>,
}

impl WarningListener {
    fn start(socket: &Path) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (socket, over) = (socket.to_owned(), Arc::clone(&enough));
        let thread = std::thread::spawn(move || {
            let mut warned = WarningCounts::new();
            while !over.load(Ordering::Relaxed) {
                count_warnings(&socket, &mut warned, &over);
            }
            warned
        });
        Self { enough, thread }
    }

    fn end(self) -> WarningCounts {
        self.enough.store(true, Ordering::Relaxed);
        wait_until("the listener ends", || self.thread.is_finished());
        self.thread.join().unwrap()
    }
}

/// Connects to the next daemon, and counts warnings until that one is gone.
fn count_warnings(socket: &Path, warned: &mut WarningCounts, over: &AtomicBool) {
    let mut client = None;
    wait_until("the next daemon", || {
        client = BlockingClient::connect(&ClientOptions::new(socket, "listener")).ok();
        client.is_some() || over.load(Ordering::Relaxed)
    });
    let Some(mut client) = client.filter(|_| !over.load(Ordering::Relaxed)) else { return };
    if client.subscribe().is_err() {
        return;
    }
    while !over.load(Ordering::Relaxed) {
        match client.next_push(Some(Duration::from_millis(100))) {
            Ok(ServerPush::Event(event)) => {
                if let EventKind::WarningIssued { session, threshold_secs, .. } = event.kind {
                    *warned.entry((session.session_id, threshold_secs)).or_default() += 1;
                }
            }
            Ok(ServerPush::FellBehind { .. }) | Err(shepherd_ipc::CallError::TimedOut) => {}
            Err(_) => return,
        }
    }
}

/// The daemon is killed as soon as the warning arrives, before a slow disk has the record. If the next daemon takes so
/// long to start that the next warning passes, the audit log still has that warning once.
#[test]
fn a_warning_is_not_repeated_after_a_restart() {
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut fixture = ShepherddFixture::new(POLICY).on_a_slow_disk(Duration::from_millis(5));
                fixture.start();
                let mut listener = fixture.subscriber();
                let called = Instant::now();
                fixture.launch("play");
                let mut warned = WarningCounts::new();
                let (mut listens, mut back) = (true, called);
                while listens {
                    let heard = listener.wait_for(|event| match event {
                        EventKind::WarningIssued { session, threshold_secs, .. } => {
                            Some(Some((session.session_id.clone(), *threshold_secs)))
                        }
                        EventKind::SessionEnded { .. } => Some(None),
                        _ => None,
                    });
                    let Some(warning) = heard else { break };
                    fixture.kill();
                    *warned.entry(warning).or_default() += 1;
                    fixture.start();
                    listener = fixture.subscriber();
                    listens = listener.snapshot.session.is_some();
                    back = Instant::now();
                }
                let heard: Vec<u64> = warned.keys().map(|(_, threshold)| *threshold).rev().collect();
                let missed_the_last = heard == [2] && back >= called + LENGTH - Duration::from_secs(1);
                assert!(heard == [2, 1] || missed_the_last, "{heard:?}, back after {:?}", back - called);
                wait_until("the session is over", || fixture.state().session.is_none());
                check_records(&fixture, &warned);
            });
        }
    });
}

/// The daemon is killed before the start of the program is recorded. If the program is ended before the next daemon
/// starts, its time is charged all the same.
#[test]
fn killing_the_daemon_gives_no_free_time() {
    let mut fixture = ShepherddFixture::running(POLICY);
    assert!(fixture.end().success());
    let mut fixture = fixture.on_a_slow_disk(Duration::from_millis(20));
    fixture.start();
    let session = fixture.launch("play");
    let player = fixture.wait_for_program();
    fixture.kill();
    // The program runs on without a daemon for this long.
    std::thread::sleep(Duration::from_millis(500));
    fixture.kill_program(player);
    let mut fixture = fixture.with_wrapper(&[]);
    fixture.start();
    fixture.wait_until_idle();
    let ends = fixture.count_audit_records(
        |what| matches!(what, AuditKind::SessionEnded { session_id, .. } if *session_id == session.session_id),
    );
    assert_eq!(ends, 1);
    let started = fixture.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. }));
    assert_eq!(started, 0, "the disk was not slow enough for this test");
    let used = fixture.recorded_usage("play");
    assert!(used >= Duration::from_millis(500), "{used:?}");
}
