//! Two hundred sessions at once (S19.1): ends on time, launches and stops, compared with a session that is alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shepherd_api::{Command, CommandReply, EventKind, SessionView, StopMode};
use shepherd_ipc::BlockingClient;
use shepherd_util::SessionId;
use ward_bench::{BenchmarkLimit, median, millis, percentile, timed};

use crate::bench_daemon::{BenchDaemon, await_event, entry};
use crate::expiry::{lateness, since_boot_at};
use crate::program::AWAIT_SIGNAL;
use crate::report;

/// The sessions that end at their deadlines, all of them at once.
const SESSIONS: usize = 200;
/// The sessions that are stopped beside them, and the sessions that are launched and stopped alone.
const STOPPED: usize = 40;
/// Longer than all launches and stops take on a busy machine.
const LENGTH: Duration = Duration::from_secs(40);
/// The time for the last writes of a session, which must not slow down the next launch.
const SETTLE: Duration = Duration::from_millis(20);

/// The times of launches and stops, in milliseconds.
#[derive(Default)]
struct StepTimes {
    launches: Vec<f64>,
    stops: Vec<f64>,
}

pub(crate) fn measure() {
    let mut daemon = BenchDaemon::empty(children);
    daemon.start();
    let mut client = daemon.subscriber();
    let mut alone = StepTimes::default();
    for _ in 0..STOPPED {
        let session = launch(&mut client, 0, &mut alone);
        stop(&mut client, &session.session_id, &mut alone);
    }
    let mut crowd = StepTimes::default();
    let begin = Instant::now();
    let launch_next = |number| {
        let session = launch(&mut client, number, &mut crowd);
        (session.session_id, since_boot_at(session.started_at) + LENGTH)
    };
    let sessions: Vec<(SessionId, Duration)> = (0..SESSIONS + STOPPED).map(launch_next).collect();
    let (lasting, stopped) = sessions.split_at(SESSIONS);
    for (session_id, _) in stopped {
        stop(&mut client, session_id, &mut crowd);
    }
    assert!(begin.elapsed() < LENGTH, "no session has ended before all others were launched and stopped");
    for _ in lasting {
        await_event(&mut client, |event| matches!(event.kind, EventKind::SessionEnded { .. }).then_some(()));
    }
    report_lateness(daemon.folder(), lasting);
    crowd.launches.drain(..SESSIONS);
    for (what, mut crowd, mut alone) in
        [("launch", crowd.launches, alone.launches), ("stop", crowd.stops, alone.stops)]
    {
        let name = format!("{what} beside {SESSIONS} sessions (median)");
        let alone = Some(("without another session", median(&mut alone)));
        report(&name, "ms", median(&mut crowd), alone, BenchmarkLimit::RatioAtMost(2.0));
    }
}

fn report_lateness(folder: &Path, sessions: &[(SessionId, Duration)]) {
    let late = |(number, (_, deadline)): (usize, &(SessionId, Duration))| {
        let signal = std::fs::read_to_string(signals(folder, number)).unwrap();
        lateness(Duration::from_nanos(signal.trim().parse().unwrap()), *deadline)
    };
    let mut samples: Vec<f64> = sessions.iter().enumerate().map(late).collect();
    let name = format!("signal after a deadline, {SESSIONS} sessions at once");
    let earliest = samples.iter().copied().fold(f64::INFINITY, f64::min);
    report(&format!("{name}: earliest"), "ms", earliest, None, BenchmarkLimit::AtLeast(0.0));
    for (what, percent, most) in [("median", 50.0, 5.0), ("p99", 99.0, 20.0)] {
        let figure = percentile(&mut samples, percent);
        report(&format!("{name}: {what}"), "ms", figure, None, BenchmarkLimit::AtMost(most));
    }
}

/// Returns a profile with an entry for each session.
fn children(folder: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let child = |number: usize| {
        let file = signals(folder, number);
        let argv = [program.to_str().unwrap(), AWAIT_SIGNAL, file.to_str().unwrap()];
        let (profile, length) = (profile(number), LENGTH.as_secs());
        let lines = format!("profiles = [\"{profile}\"]\nmax_run = \"{length}s\"\nwarnings = []");
        (format!("\n[profiles.{profile}]\n"), entry(&profile, &argv, &lines))
    };
    let (profiles, entries): (String, String) = (0..SESSIONS + STOPPED).map(child).unzip();
    profiles + &entries
}

fn profile(number: usize) -> String {
    format!("child-{number:03}")
}

/// Returns the file in which the program of a child records when it was signalled.
fn signals(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("signal-{number:03}"))
}

fn launch(client: &mut BlockingClient, number: usize, times: &mut StepTimes) -> SessionView {
    let (entry_id, child) = (profile(number).parse().unwrap(), profile(number).parse().unwrap());
    let command = Command::Launch { entry_id, profile: Some(child), display: None };
    let (reply, took) = timed(|| client.call(command));
    let Ok(CommandReply::Launched { session }) = reply else { panic!("{reply:?}") };
    times.launches.push(millis(took));
    await_event(client, |event| matches!(event.kind, EventKind::SessionStarted { .. }).then_some(()));
    std::thread::sleep(SETTLE);
    session
}

/// Kills a session, and measures the time until its end is reported.
fn stop(client: &mut BlockingClient, session_id: &SessionId, times: &mut StepTimes) {
    let command = Command::StopCurrent { mode: StopMode::Force, session_id: Some(session_id.clone()) };
    let ((), took) = timed(|| {
        client.call(command).unwrap();
        await_event(client, |event| match &event.kind {
            EventKind::SessionEnded { session_id: ended, .. } => (ended == session_id).then_some(()),
            _ => None,
        });
    });
    times.stops.push(millis(took));
    std::thread::sleep(SETTLE);
}
