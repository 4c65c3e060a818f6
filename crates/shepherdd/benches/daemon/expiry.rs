//! Expiry and warnings: never early, and on time with hundreds of clients connected (S4.7).

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::EventKind;
use ward_bench::{BenchmarkLimit, percentile};

use crate::bench_daemon::{BenchDaemon, await_event, entry, launch};
use crate::program::{AWAIT_SIGNAL, since_boot};
use crate::report;

/// Daemons that run side by side, because a session is mostly waiting.
const DAEMONS: usize = 4;
const SESSIONS: usize = 52;
const IDLE_CLIENTS: usize = 500;
/// The lengths of sessions in milliseconds. They differ, so that the daemons are not in step.
const LENGTHS: [u64; 5] = [300, 400, 500, 600, 700];
/// The file in which a program records when it was signalled.
const SIGNALS: &str = "signals";
const WARNING: Duration = Duration::from_millis(150);

/// The delay of each signal and warning in milliseconds; a negative delay is early.
#[derive(Default)]
pub(crate) struct LatenessSamples {
    pub(crate) signals: Vec<f64>,
    pub(crate) warnings: Vec<f64>,
}

pub(crate) fn measure() {
    let threads: Vec<_> =
        (0..DAEMONS).map(|number| std::thread::spawn(move || measure_one_daemon(number))).collect();
    let mut all = LatenessSamples::default();
    for thread in threads {
        let late = thread.join().unwrap();
        all.signals.extend(late.signals);
        all.warnings.extend(late.warnings);
    }
    for (what, samples) in
        [("signal after a deadline", all.signals), ("warning after its time", all.warnings)]
    {
        let mut samples = samples;
        let earliest = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let name = format!("{what}, {} sessions, {IDLE_CLIENTS} clients", samples.len());
        report(&format!("{name}: earliest"), "ms", earliest, None, BenchmarkLimit::AtLeast(0.0));
        report(
            &format!("{name}: median"),
            "ms",
            percentile(&mut samples, 50.0),
            None,
            BenchmarkLimit::AtMost(5.0),
        );
        report(
            &format!("{name}: p99"),
            "ms",
            percentile(&mut samples, 99.0),
            None,
            BenchmarkLimit::AtMost(20.0),
        );
    }
}

fn measure_one_daemon(number: usize) -> LatenessSamples {
    let mut daemon = BenchDaemon::empty(nap_entries);
    daemon.start();
    let idle = daemon.idle_clients(IDLE_CLIENTS);
    let late = measure_sessions(&daemon, number, SESSIONS);
    drop(idle);
    late
}

/// Runs sessions one after the other. `first` is the place of the first one's length.
pub(crate) fn measure_sessions(daemon: &BenchDaemon, first: usize, sessions: usize) -> LatenessSamples {
    // The signals of earlier sessions don't count.
    let _ = std::fs::remove_file(daemon.folder().join(SIGNALS));
    let mut client = daemon.subscriber();
    let (mut deadlines, mut late) = (Vec::new(), LatenessSamples::default());
    for session in 0..sessions {
        let length = LENGTHS.get((session + first) % LENGTHS.len()).copied().unwrap();
        let session = launch(&mut client, &format!("nap-{length}"));
        let deadline = since_boot_at(session.started_at) + Duration::from_millis(length);
        deadlines.push(deadline);
        let mut warned = None;
        await_event(&mut client, |event| match &event.kind {
            EventKind::WarningIssued { .. } => {
                warned = Some(since_boot());
                None
            }
            EventKind::SessionEnded { .. } => Some(()),
            _ => None,
        });
        late.warnings.push(lateness(warned.expect("a warning before the end"), deadline - WARNING));
    }
    let signals = std::fs::read_to_string(daemon.folder().join(SIGNALS)).unwrap();
    let signals: Vec<Duration> =
        signals.lines().map(|line| Duration::from_nanos(line.parse().unwrap())).collect();
    assert_eq!(signals.len(), deadlines.len(), "every session was signalled once");
    late.signals =
        signals.into_iter().zip(deadlines).map(|(signal, deadline)| lateness(signal, deadline)).collect();
    late
}

/// Returns entries whose programs record when they are signalled.
pub(crate) fn nap_entries(folder: &Path) -> String {
    let (program, signals) = (std::env::current_exe().unwrap(), folder.join(SIGNALS));
    let argv = [program.to_str().unwrap(), AWAIT_SIGNAL, signals.to_str().unwrap()];
    let nap = |length| {
        let lines =
            format!("max_run = \"{length}ms\"\nwarnings = [{{ before = \"{}ms\" }}]", WARNING.as_millis());
        entry(&format!("nap-{length}"), &argv, &lines)
    };
    LENGTHS.map(nap).concat()
}

/// Converts a wall-clock time to the time since boot. Both clocks are read right after the launch and one after the
/// other, so that a change of the wall clock hardly matters.
pub(crate) fn since_boot_at(at: Timestamp) -> Duration {
    let passed = Duration::try_from(Timestamp::now().duration_since(at)).unwrap();
    since_boot() - passed
}

pub(crate) fn lateness(moment: Duration, due: Duration) -> f64 {
    (moment.as_secs_f64() - due.as_secs_f64()) * 1_000.0
}
