//! `kill -9` of the daemon at a hundred random moments of a session's life (S9.1, S9.2b): the original end, no warning
//! twice, nobody left, nothing charged twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shepherd_api::{AuditKind, Command, EndReason, EventKind, StopRequester};
use shepherd_ipc::{BlockingClient, ClientOptions, ServerPush};
use shepherd_util::SessionId;
use ward_fuzz::SeededRandom;

use crate::harness::{PATIENCE, ShepherddFixture, is_alive, wait_until};

const HOUSEHOLDS: u64 = 10;
const LIVES: usize = 2;
const KILLS_IN_A_LIFE: usize = 5;

/// Asked to end it would stay for ever: the signal that it ignores stays ignored in what it becomes.
const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "play"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
always = true
max_run = "3s"
stop_grace = "1s"
warnings = [{ before = "2s" }, { before = "1s" }]
"#;

const LENGTH: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(1);
/// For a machine that does ten things at once.
const SLACK: Duration = Duration::from_secs(3);

#[test]
fn a_daemon_killed_at_a_hundred_moments_keeps_every_promise() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    std::thread::scope(|scope| {
        for number in 0..HOUSEHOLDS {
            scope.spawn(move || {
                let mut random = SeededRandom::new(seed ^ (number << 32));
                let mut household = ShepherddFixture::running(POLICY);
                let listener = WarningListener::start(&household.socket());
                for _ in 0..LIVES {
                    run_and_kill_repeatedly(&mut household, &mut random);
                }
                check_records(&household, &listener.end());
                assert!(household.end().success());
                household.assert_chain_is_sound();
            });
        }
    });
}

/// Moments of a life in milliseconds, most of them where something happens.
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

fn run_and_kill_repeatedly(household: &mut ShepherddFixture, random: &mut SeededRandom) {
    let moments = moments(random);
    let told = format!("killed at {moments:?} ms");
    let used_before = household.recorded_usage("play");
    let called = Instant::now();
    let launch = launch_in_background(household.socket());
    let mut came_up = called;
    let (mut seen, mut player) = (None::<(Instant, Instant)>, None);
    let mut look = |household: &ShepherddFixture| {
        player = player.or_else(|| household.program_pids().first().copied());
        if player.is_some_and(is_alive) {
            let now = Instant::now();
            seen = Some((seen.map_or(now, |(first, _)| first), now));
        }
    };
    for moment in moments {
        std::thread::sleep(
            (called + Duration::from_millis(moment)).saturating_duration_since(Instant::now()),
        );
        household.kill();
        look(household);
        household.start();
        came_up = Instant::now();
    }
    launch.join().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while household.state().session.is_some() {
        look(household);
        assert!(Instant::now() < deadline, "{told}: it never ends");
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = Instant::now();
    household.assert_no_processes_left();
    let used = household.recorded_usage("play") - used_before;
    assert!(used <= ended - called, "{told}: {used:?} charged for at most {:?}", ended - called);
    if let Some((first, last)) = seen {
        assert!(used >= last - first, "{told}: {used:?} charged for at least {:?}", last - first);
        assert!(ended >= called + LENGTH, "{told}: ended early, after {:?}", ended - called);
    }
    // Its end may have to be called by the daemon that came up last, and then it has its grace, and nothing else.
    let latest = (called + LENGTH).max(came_up) + GRACE + SLACK;
    assert!(ended <= latest, "{told}: ended {:?} too late\n{}", ended - latest, household.log());
}

/// The answer may never come: the daemon that would give it is killed.
fn launch_in_background(socket: PathBuf) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let Ok(mut client) = BlockingClient::connect(&ClientOptions::new(socket, "child")) else { return };
        let _ = client.call(Command::Launch { entry_id: "play".parse().unwrap(), profile: None });
    })
}

/// How often each warning was given.
type WarningCounts = BTreeMap<(SessionId, u64), usize>;

/// What every session leaves on record, and what clients were told of it.
fn check_records(household: &ShepherddFixture, warned: &WarningCounts) {
    assert_eq!(warned.values().filter(|times| **times > 1).count(), 0, "{warned:?}");
    let mut sessions: BTreeMap<SessionId, SessionTally> = BTreeMap::new();
    for record in household.audit() {
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
    // Each is rounded down to a millisecond on its own.
    let difference = household.recorded_usage("play").abs_diff(charged);
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

/// Whoever listens to one daemon after the other, as a front end does that comes back.
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
                std::thread::sleep(Duration::from_millis(2));
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

/// Counts warnings until the daemon is gone.
fn count_warnings(socket: &Path, warned: &mut WarningCounts, over: &AtomicBool) {
    let Ok(mut client) = BlockingClient::connect(&ClientOptions::new(socket, "listener")) else { return };
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

/// Not even by whoever kills the daemon in the moment in which it hears the warning, on a disk that is too slow to have
/// it on record by then. Where a daemon takes so long to come up that the next warning passes unheard, the books still
/// have it once.
#[test]
fn a_warning_that_was_heard_is_not_heard_again() {
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut household = ShepherddFixture::new(POLICY).on_a_slow_disk(Duration::from_millis(5));
                household.start();
                let mut listener = household.subscriber();
                let called = Instant::now();
                household.launch("play");
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
                    household.kill();
                    *warned.entry(warning).or_default() += 1;
                    household.start();
                    listener = household.subscriber();
                    listens = listener.snapshot.session.is_some();
                    back = Instant::now();
                }
                let heard: Vec<u64> = warned.keys().map(|(_, threshold)| *threshold).rev().collect();
                let missed_the_last = heard == [2] && back >= called + LENGTH - Duration::from_secs(1);
                assert!(heard == [2, 1] || missed_the_last, "{heard:?}, back after {:?}", back - called);
                wait_until("the session is over", || household.state().session.is_none());
                check_records(&household, &warned);
            });
        }
    });
}

/// A daemon that is killed before it is on record that the program runs: who ends the program then and starts the
/// daemon again has played all the same.
#[test]
fn nobody_plays_for_nothing_by_killing_the_daemon_in_time() {
    let mut household = ShepherddFixture::running(POLICY);
    assert!(household.end().success());
    let mut household = household.on_a_slow_disk(Duration::from_millis(20));
    household.start();
    let session = household.launch("play");
    let player = household.wait_for_program();
    household.kill();
    std::thread::sleep(Duration::from_millis(500));
    let player = rustix::process::Pid::from_raw(player).unwrap();
    rustix::process::kill_process(player, rustix::process::Signal::KILL).unwrap();
    let mut household = household.with_wrapper(&[]);
    wait_until("it is gone", || household.program_pids().is_empty());
    household.start();
    household.wait_until_idle();
    let ends = household.count_audit_records(
        |what| matches!(what, AuditKind::SessionEnded { session_id, .. } if *session_id == session.session_id),
    );
    assert_eq!(ends, 1);
    let started = household.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. }));
    assert_eq!(started, 0, "the disk was not slow enough for this test");
    let used = household.recorded_usage("play");
    assert!(used >= Duration::from_millis(500), "{used:?}");
}
