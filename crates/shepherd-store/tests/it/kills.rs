//! The engine on the real store, in a process that is killed at any moment, hundreds of times (S8.2, S9.1, S9.2b).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use shepherd_api::AuditKind;
use shepherd_store::conformance::life::{Report, Step};
use shepherd_util::BootId;

use crate::household::{Heard, Pending, Tally, World};
use crate::support::{Place, helper};

/// Several households, for a log that grows long is verified at every start.
const HOUSEHOLDS: u64 = 4;
const KILLS_EACH: u32 = 75;

/// About what a step takes.
const STEP_MICROS: u64 = 3_000;
/// About what starting and opening the store takes.
const START_MICROS: u64 = 20_000;

struct Daemon {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Daemon {
    fn start(place: &Place, world: &World) -> Self {
        let mut child = Command::new(helper("fake-household"))
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

    fn tell(&mut self, step: &Step) {
        let line = serde_json::to_string(step).unwrap();
        writeln!(self.input, "{line}").unwrap();
    }

    /// What it tells next; `None` if it is dead.
    fn hear(&mut self) -> Option<Report> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        // A line that was cut by its death was not told.
        line.ends_with('\n').then(|| serde_json::from_str(&line).unwrap())
    }

    fn hear_opened(&mut self, world: &mut World, pending: Option<Pending>) {
        match self.hear() {
            Some(Report::Opened(found)) => world.opened(&found, pending),
            other => panic!("{other:?}"),
        }
    }

    fn hear_done(&mut self, world: &mut World, pending: Pending) {
        let Some(Report::Done(events)) = self.hear() else { panic!("it died by itself") };
        check_events(&events, &pending);
        world.accept(pending, Heard::AtOnce);
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn check_events(told: &[String], pending: &Pending) {
    let expected: Vec<String> = pending.events.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(told, expected, "{:?}", pending.step);
}

/// A power cut may leave anything in the place of the last sign of life.
fn tear_pulse(place: &Place, world: &mut World, boot: BootId) {
    let path = place.file("shepherd.pulse");
    if world.boot_id() == boot || world.dice.below(100) >= 25 || !path.exists() {
        return;
    }
    let mut bytes = std::fs::read(&path).unwrap();
    match world.dice.below(4) {
        0 => std::fs::remove_file(&path).unwrap(),
        1 => std::fs::write(&path, b"").unwrap(),
        2 => std::fs::write(&path, &bytes[..bytes.len() / 5]).unwrap(),
        _ => {
            // A digit of the moment; not a bit of it, which the next cut could put right again.
            bytes[90] = b'x';
            std::fs::write(&path, bytes).unwrap();
        }
    }
    world.pulse_is_torn();
}

/// One life of the daemon, up to its violent end. Returns the step that was on its way then.
fn live_and_die(place: &Place, world: &mut World, pending: Option<Pending>) -> Option<Pending> {
    let mut daemon = Daemon::start(place, world);
    if world.dice.below(100) < 12 {
        // Dies while it opens the store.
        sleep_below(world, START_MICROS);
        daemon.kill();
        return match daemon.hear() {
            Some(Report::Opened(found)) => {
                world.opened(&found, pending);
                None
            }
            None => pending,
            Some(other) => panic!("{other:?}"),
        };
    }
    daemon.hear_opened(world, pending);
    let mut step = world.recovery();
    for _ in 0..world.dice.below(10) {
        let pending = world.foresee(step);
        daemon.tell(&pending.step);
        daemon.hear_done(world, pending);
        step = world.next_step();
    }
    if world.dice.below(100) < 25 {
        // Dies while it sleeps; the step is none of its business any more.
        daemon.kill();
        world.daemon_died(None);
        return None;
    }
    let pending = world.foresee(step);
    daemon.tell(&pending.step);
    sleep_below(world, STEP_MICROS);
    daemon.kill();
    match daemon.hear() {
        Some(Report::Done(events)) => {
            check_events(&events, &pending);
            world.accept(pending, Heard::AtOnce);
            world.daemon_died(None);
            None
        }
        None => {
            world.daemon_died(Some(&pending.step));
            Some(pending)
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// Mostly short, sometimes long.
fn sleep_below(world: &mut World, micros: u64) {
    let bound = world.dice.below(micros) + 1;
    thread::sleep(Duration::from_micros(world.dice.below(bound)));
}

/// Everything that was acknowledged is in the chain, once, in order.
fn check_audit(place: &Place, world: &World) {
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
    let mut tally = Tally::default();
    for seed in 1..=HOUSEHOLDS {
        let place = Place::in_memory();
        let mut world = World::new(seed);
        let mut pending = None;
        for _ in 0..KILLS_EACH {
            let boot = world.boot_id();
            pending = live_and_die(&place, &mut world, pending);
            if pending.is_none() {
                tear_pulse(&place, &mut world, boot);
            }
        }
        let mut daemon = Daemon::start(&place, &world);
        daemon.hear_opened(&mut world, pending);
        daemon.kill();
        assert_eq!(place.load(), *world.stored());
        check_audit(&place, &world);
        tally.add(&world.tally);
    }
    // A run in which nothing happened has shown nothing.
    assert!(tally.sessions >= 40 && tally.charged_exactly >= 10 && tally.reboots >= 15, "{tally:?}");
    assert!(tally.warnings >= 10 && tally.expired >= 5 && tally.taken_back >= 30, "{tally:?}");
    assert!(tally.pulses >= 60 && tally.torn >= 3, "{tally:?}");
    assert!(tally.found_after_restart >= 5, "no kill hit the moment between commit and answer: {tally:?}");
}
