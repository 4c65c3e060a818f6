//! The engine with the real store, in a process that is killed at random times, hundreds of times (S8.2, S9.1, S9.2b).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use shepherd_api::AuditKind;
use shepherd_store::conformance::household::{HouseholdReport, HouseholdStep};
use shepherd_util::BootId;

use crate::household_model::{AckTiming, HouseholdModel, PendingStep, RunCounts};
use crate::support::{TestStore, helper_program};

/// Several short histories, because the whole log is verified at every start.
const HOUSEHOLDS: u64 = 4;
/// More histories are tried if too few kills hit the short moment between commit and answer, but no more than this.
const MOST_HOUSEHOLDS: u64 = 12;
/// The number of kills that have to hit that moment.
const KILLS_BEFORE_ANSWER: u64 = 5;
const KILLS_EACH: u32 = 75;

/// The approximate time to start the process and open the store.
const START_MICROS: u64 = 20_000;

/// The usual time of a step on this machine, by which the moment of a kill is chosen. On a busy machine, a fixed time
/// would never reach the moment between commit and answer.
struct StepDuration(Duration);

impl StepDuration {
    /// Takes another step into account. Older ones count less and less.
    fn observe(&mut self, took: Duration) {
        self.0 = (self.0 * 7 + took) / 8;
    }

    /// Returns a random moment for a kill: during a step, or soon after it.
    fn random_moment(&self, world: &mut HouseholdModel) -> Duration {
        let latest = u64::try_from(self.0.as_micros() * 3 / 2).unwrap();
        Duration::from_micros(world.rng.below(latest.max(1)))
    }
}

struct FakeHouseholdProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl FakeHouseholdProcess {
    fn start(place: &TestStore, world: &HouseholdModel) -> Self {
        let mut child = Command::new(helper_program("fake-household"))
            .arg(&place.folder)
            .arg(world.boot_id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    fn send_step(&mut self, step: &HouseholdStep) {
        let line = serde_json::to_string(step).unwrap();
        writeln!(self.input, "{line}").unwrap();
    }

    /// Returns the next report, or `None` if the process is dead.
    fn read_report(&mut self) -> Option<HouseholdReport> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        // An incomplete line was cut by the kill, so it does not count.
        line.ends_with('\n').then(|| serde_json::from_str(&line).unwrap())
    }

    fn expect_opened(&mut self, world: &mut HouseholdModel, pending: Option<PendingStep>) {
        match self.read_report() {
            Some(HouseholdReport::Opened(found)) => world.check_reopened_state(&found, pending),
            other => panic!("{other:?}"),
        }
    }

    fn expect_done(&mut self, world: &mut HouseholdModel, pending: PendingStep) {
        let Some(HouseholdReport::Done(events)) = self.read_report() else { panic!("it died by itself") };
        check_events(&events, &pending);
        world.commit_step(pending, AckTiming::Immediate);
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn check_events(reported: &[String], pending: &PendingStep) {
    let expected: Vec<String> = pending.events.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(reported, expected, "{:?}", pending.step);
}

/// Damages the heartbeat, as a power cut might.
fn corrupt_heartbeat(place: &TestStore, world: &mut HouseholdModel, boot: BootId) {
    let path = place.file_path("shepherd.pulse");
    if world.boot_id() == boot || world.rng.below(100) >= 25 || !path.exists() {
        return;
    }
    let mut bytes = std::fs::read(&path).unwrap();
    match world.rng.below(4) {
        0 => std::fs::remove_file(&path).unwrap(),
        1 => std::fs::write(&path, b"").unwrap(),
        2 => std::fs::write(&path, &bytes[..bytes.len() / 5]).unwrap(),
        _ => {
            // Damage a digit. A flipped bit could be flipped back by the next damage.
            bytes[90] = b'x';
            std::fs::write(&path, bytes).unwrap();
        }
    }
    world.lose_heartbeat();
}

/// Runs the daemon until it is killed. Returns the step that may or may not have been stored.
fn run_until_killed(
    place: &TestStore,
    world: &mut HouseholdModel,
    usual: &mut StepDuration,
    pending: Option<PendingStep>,
) -> Option<PendingStep> {
    let mut daemon = FakeHouseholdProcess::start(place, world);
    if world.rng.below(100) < 12 {
        // Kill the daemon while it opens the store.
        thread::sleep(Duration::from_micros(world.rng.below(START_MICROS)));
        daemon.kill();
        return match daemon.read_report() {
            Some(HouseholdReport::Opened(found)) => {
                world.check_reopened_state(&found, pending);
                None
            }
            None => pending,
            Some(other) => panic!("{other:?}"),
        };
    }
    daemon.expect_opened(world, pending);
    let mut step = world.recovery_step();
    for _ in 0..world.rng.below(10) {
        let pending = world.predict_step(step);
        let sent = Instant::now();
        daemon.send_step(&pending.step);
        daemon.expect_done(world, pending);
        usual.observe(sent.elapsed());
        step = world.next_step();
    }
    if world.rng.below(100) < 25 {
        // Kill the daemon while it is idle, so that no step is pending.
        daemon.kill();
        world.simulate_daemon_death(None);
        return None;
    }
    let pending = world.predict_step(step);
    daemon.send_step(&pending.step);
    thread::sleep(usual.random_moment(world));
    daemon.kill();
    match daemon.read_report() {
        Some(HouseholdReport::Done(events)) => {
            check_events(&events, &pending);
            world.commit_step(pending, AckTiming::Immediate);
            world.simulate_daemon_death(None);
            None
        }
        None => {
            world.simulate_daemon_death(Some(&pending.step));
            Some(pending)
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// Checks that everything acknowledged is in the log, once and in order.
fn check_audit(place: &TestStore, world: &HouseholdModel) {
    assert_eq!(place.events(), world.audit());
    let report = place.verify();
    assert!(report.is_sound(), "{report}");
    let (mut warned, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in world.audit() {
        match &event.what {
            AuditKind::WarningGiven { session_id, threshold_secs } => {
                assert!(warned.insert((session_id.clone(), *threshold_secs)), "{event:?}");
            }
            AuditKind::SessionEnded { session_id, .. } => {
                assert!(ended.insert(session_id.clone()), "{event:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_household_survives_hundreds_of_kills_of_its_daemon() {
    let mut tally = RunCounts::default();
    let mut usual = StepDuration(Duration::from_millis(1));
    for seed in 1..=MOST_HOUSEHOLDS {
        if seed > HOUSEHOLDS && tally.found_after_restart >= KILLS_BEFORE_ANSWER {
            break;
        }
        let place = TestStore::in_memory();
        let mut world = HouseholdModel::new(seed);
        let mut pending = None;
        for _ in 0..KILLS_EACH {
            let boot = world.boot_id();
            pending = run_until_killed(&place, &mut world, &mut usual, pending);
            if pending.is_none() {
                corrupt_heartbeat(&place, &mut world, boot);
            }
        }
        let mut daemon = FakeHouseholdProcess::start(&place, &world);
        daemon.expect_opened(&mut world, pending);
        daemon.kill();
        assert_eq!(place.load(), *world.stored());
        check_audit(&place, &world);
        tally.add(&world.counts);
    }
    // A test in which nothing happens shows nothing.
    assert!(tally.sessions >= 40 && tally.charged_exactly >= 10 && tally.reboots >= 15, "{tally:?}");
    assert!(tally.warnings >= 10 && tally.expired >= 5 && tally.reattached >= 30, "{tally:?}");
    assert!(tally.heartbeats >= 60 && tally.torn >= 3, "{tally:?}");
    assert!(tally.found_after_restart >= KILLS_BEFORE_ANSWER, "too few kills before an answer: {tally:?}");
}
