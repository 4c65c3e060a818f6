//! Clients that misbehave in every way at once (S11.2, S11.4, S13.4): the session ends on time, and other clients are
//! served.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shepherd_api::{AuditKind, Command, CommandReply, EndReason, EventKind};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, ServerPush};
use ward_fuzz::SeededRandom;

use crate::harness::{
    EventSubscriber, PATIENCE, ShepherddFixture, call_at_allowed_rate, is_alive, policy, sleep_entry,
    wait_until,
};

const POLICY: &str = policy!(sleep_entry!(
    "nap",
    r#"max_run = "4s"
warnings = [{ before = "2s" }]"#
));

const HELLO: &str = "{\"type\":\"hello\",\"api_version\":1,\"client\":\"rude\"}\n";

/// The number of connections that are held open at once.
const CROWD: usize = 2_000;

/// A function that misbehaves once, and is called until the flag is set.
type ClientMisbehaviour = fn(&Path, &AtomicBool);

const MISBEHAVIOURS: [ClientMisbehaviour; 12] = [
    connect_and_close,
    send_partial_frame,
    send_garbage,
    send_oversized_frame,
    never_read,
    never_read,
    send_many_requests,
    send_many_requests,
    send_expensive_queries,
    send_expensive_queries,
    send_expensive_queries,
    send_expensive_queries,
];

/// The number of entries, which makes lists and timelines expensive.
const ENTRIES: usize = 1_000;

fn connect(socket: &Path) -> Option<UnixStream> {
    let stream = UnixStream::connect(socket).ok()?;
    for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
        set(&stream, Some(Duration::from_millis(200))).unwrap();
    }
    Some(stream)
}

fn connect_and_close(socket: &Path, _: &AtomicBool) {
    drop(connect(socket));
}

fn send_partial_frame(socket: &Path, _: &AtomicBool) {
    let Some(mut stream) = connect(socket) else { return };
    let _ = stream.write_all(&HELLO.as_bytes()[..20]);
    // The connection stays open for a while with half a frame.
    std::thread::sleep(Duration::from_millis(20));
}

fn send_garbage(socket: &Path, _: &AtomicBool) {
    let Some(mut stream) = connect(socket) else { return };
    let mut random = SeededRandom::new(stream.as_raw_fd().unsigned_abs().into());
    let bytes: Vec<u8> = (0..4_096).map(|_| random.byte()).collect();
    let _ = stream.write_all(HELLO.as_bytes()).and_then(|()| stream.write_all(&bytes));
    let _ = stream.read(&mut [0; 4_096]);
}

fn send_oversized_frame(socket: &Path, _: &AtomicBool) {
    let Some(mut stream) = connect(socket) else { return };
    let piece = vec![b'x'; 1 << 20];
    let _ = stream.write_all(HELLO.as_bytes());
    for _ in 0..100 {
        if stream.write_all(&piece).is_err() {
            return;
        }
    }
    panic!("a hundred megabytes in one line were taken");
}

/// Subscribes and sends requests, but never reads.
fn never_read(socket: &Path, enough: &AtomicBool) {
    let Some(mut stream) = connect(socket) else { return };
    let subscribe = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"subscribe_events\"}}\n";
    let list = "{\"type\":\"request\",\"id\":2,\"command\":{\"type\":\"metrics\"}}\n";
    let _ = stream.write_all(HELLO.as_bytes()).and_then(|()| stream.write_all(subscribe.as_bytes()));
    while !enough.load(Ordering::Relaxed) && stream.write_all(list.as_bytes()).is_ok() {}
}

/// Requests the longest timeline and all entries in a loop, and reads the replies.
fn send_expensive_queries(socket: &Path, enough: &AtomicBool) {
    let Some(mut stream) = connect(socket) else { return };
    let timeline = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"timeline\",\
         \"from\":\"2026-11-16T00:00:00Z\",\"to\":\"2026-12-27T23:00:00Z\"}}\n";
    let entries = "{\"type\":\"request\",\"id\":2,\"command\":{\"type\":\"list_entries\"}}\n";
    let much = [timeline, entries].concat().repeat(8);
    let _ = stream.write_all(HELLO.as_bytes());
    let mut answers = vec![0; 1 << 20];
    while !enough.load(Ordering::Relaxed) {
        let _ = stream.write_all(much.as_bytes());
        if let Ok(0) = stream.read(&mut answers) {
            return;
        }
    }
}

fn policy() -> String {
    let more = (1..ENTRIES).map(|number| {
        format!(
            "\n[[entries]]\nid = \"more-{number}\"\nargv = [\"true\"]\n\
             windows = [{{ days = \"weekdays\", from = \"15:00\", to = \"18:00\" }}]\n"
        )
    });
    [POLICY.to_owned()].into_iter().chain(more).collect()
}

fn send_many_requests(socket: &Path, enough: &AtomicBool) {
    let Ok(mut client) = BlockingClient::connect(&ClientOptions::new(socket, "rude")) else { return };
    while !enough.load(Ordering::Relaxed) {
        let _ = client.call(Command::GetState {});
        let _ = client.call(Command::Launch {
            entry_id: "nothing".parse().unwrap(),
            profile: None,
            display: None,
        });
    }
}

/// Sets the flag that ends the misbehaving clients, also if the test fails.
struct StopFlagGuard<'a>(&'a AtomicBool);

impl Drop for StopFlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens more connections than the daemon accepts.
fn open_connections(socket: &Path) -> Vec<UnixStream> {
    let mut limit = getrlimit(Resource::Nofile);
    limit = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, limit).unwrap();
    (0..CROWD)
        .filter_map(|_| {
            let mut stream = connect(socket)?;
            let _ = stream.write_all(HELLO.as_bytes());
            Some(stream)
        })
        .collect()
}

/// Requests the state until the flag is set, and returns the number of replies and the longest wait for one.
fn poll_state_until(client: &mut BlockingClient, enough: &AtomicBool) -> (usize, Duration) {
    let (mut answers, mut slowest) = (0, Duration::ZERO);
    wait_until("the end of the test", || {
        let asked = Instant::now();
        match client.call(Command::GetState {}) {
            Ok(CommandReply::State { .. }) => answers += 1,
            // The misbehaving clients belong to the same user and use up the rate limit.
            Err(CallError::Refused(error)) if error.retry_after.is_some() => {}
            other => panic!("{other:?}"),
        }
        slowest = slowest.max(asked.elapsed());
        enough.load(Ordering::Relaxed)
    });
    (answers, slowest)
}

/// The events of a session that a subscriber got.
#[derive(Debug, Default, PartialEq, Eq)]
struct ObservedSession {
    warnings: Vec<u64>,
    end: Option<EndReason>,
    /// The subscriber was too slow and got a new snapshot (S11.2).
    fell_behind: bool,
}

/// Collects events until the session is over.
fn observe_session(listener: &mut EventSubscriber) -> ObservedSession {
    let mut heard = ObservedSession::default();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match listener.client.next_push(Some(left)).expect("an event in time") {
            ServerPush::Event(event) => match event.kind {
                EventKind::WarningIssued { threshold_secs, .. } => heard.warnings.push(threshold_secs),
                EventKind::SessionEnded { end, .. } => {
                    heard.end = Some(end);
                    return heard;
                }
                _ => {}
            },
            ServerPush::FellBehind { snapshot, .. } => {
                heard.fell_behind = true;
                if snapshot.session.is_none() {
                    return heard;
                }
            }
        }
    }
}

#[test]
fn heavy_misbehaving_front_ends_do_not_delay_the_end_of_a_session() {
    let fixture = ShepherddFixture::running(&policy());
    let mut listener = fixture.subscriber();
    let mut client = fixture.client();
    let socket = fixture.socket();
    let (enough, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (enough, rounds, socket) = (&enough, &rounds, &socket);
        let _enough = StopFlagGuard(enough);
        let launched = Instant::now();
        fixture.launch("nap");
        let player = fixture.wait_for_program();
        for nuisance in MISBEHAVIOURS {
            scope.spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    nuisance(socket, enough);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let holding = scope.spawn(move || {
            let crowd = open_connections(socket);
            wait_until("the end of the test", || enough.load(Ordering::Relaxed));
            crowd.len()
        });
        let served = scope.spawn(move || poll_state_until(&mut client, enough));
        let gone = scope.spawn(move || {
            wait_until("the end of the program", || !is_alive(player));
            launched.elapsed()
        });
        let heard = observe_session(&mut listener);
        let gone = gone.join();
        enough.store(true, Ordering::Relaxed);
        let gone = gone.unwrap();
        let whole = ObservedSession { warnings: vec![2], end: Some(EndReason::Expired), fell_behind: false };
        assert!(heard == whole || heard.fell_behind && heard.warnings.len() <= 1, "{heard:?}");
        assert!(gone >= Duration::from_secs(4), "never early: {gone:?}");
        assert!(gone <= Duration::from_secs(6), "never late: {gone:?}");
        let (answers, slowest) = served.join().unwrap();
        assert!(answers >= 2 && slowest < Duration::from_secs(3), "{answers} answers, {slowest:?}");
        assert!(holding.join().unwrap() > 1_000);
        assert!(rounds.load(Ordering::Relaxed) > 100);
    });
    // The connections take a moment to close.
    wait_until("a client can connect again", || {
        BlockingClient::connect(&ClientOptions::new(&socket, "polite")).is_ok()
    });
    // The rate limit of the user recovers only with time.
    std::thread::sleep(Duration::from_secs(1));
    assert!(fixture.health().ready);
    // The audit log is complete, whatever one subscriber missed.
    let warned = |what: &AuditKind| matches!(what, AuditKind::WarningGiven { .. });
    let ended = |what: &AuditKind| matches!(what, AuditKind::SessionEnded { end: EndReason::Expired, .. });
    assert_eq!((fixture.count_audit_records(warned), fixture.count_audit_records(ended)), (1, 1));
    let asked = Instant::now();
    fixture.launch("nap");
    // Records of the misbehaving clients don't delay a launch.
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

/// S13.3b: expensive requests don't run in the loop, and due events come before requests.
#[test]
fn heavy_many_long_queries_delay_neither_the_end_of_a_session_nor_other_clients() {
    let fixture = ShepherddFixture::running(&policy());
    let mut client = fixture.client();
    let socket = fixture.socket();
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (enough, socket) = (&enough, &socket);
        let _enough = StopFlagGuard(enough);
        let launched = Instant::now();
        fixture.launch("nap");
        let player = fixture.wait_for_program();
        for _ in 0..16 {
            scope.spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    send_expensive_queries(socket, enough);
                }
            });
        }
        let served = scope.spawn(move || poll_state_until(&mut client, enough));
        wait_until("the end of the program", || !is_alive(player));
        let gone = launched.elapsed();
        enough.store(true, Ordering::Relaxed);
        assert!(gone >= Duration::from_secs(4), "never early: {gone:?}");
        assert!(gone <= Duration::from_secs(6), "never late: {gone:?}");
        let (answers, slowest) = served.join().unwrap();
        assert!(answers >= 2 && slowest < Duration::from_secs(3), "{answers} answers, {slowest:?}");
    });
}

/// S8.3: refusals don't fill the disk or the log, but their number is recorded.
#[test]
fn refusals_beyond_the_first_are_counted_instead_of_recorded() {
    const TRIES: usize = 300;
    let mut fixture = ShepherddFixture::running(POLICY);
    let mut client = fixture.client();
    let mut refused = 0;
    let nobody: Option<shepherd_util::ProfileId> = Some("nobody".parse().unwrap());
    while refused < TRIES {
        for (entry, profile) in [("nothing", None), ("nap", nobody.clone())] {
            let launch = Command::Launch { entry_id: entry.parse().unwrap(), profile, display: None };
            match call_at_allowed_rate(&mut client, &launch) {
                Err(CallError::Refused(_)) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    let lines = fixture.count_audit_records(|kind| {
        matches!(kind, AuditKind::LaunchDenied { .. } | AuditKind::CommandRefused { .. })
    });
    assert!((2..=100).contains(&lines), "{lines} lines of {refused} refusals");
    fixture.end();
    fixture.start();
    let counted = fixture.audit().into_iter().find_map(|record| match record.line.what {
        AuditKind::Note { text } if text.contains("refusals") => text.split(' ').next()?.parse().ok(),
        _ => None,
    });
    assert_eq!(counted, Some(refused - lines));
}
