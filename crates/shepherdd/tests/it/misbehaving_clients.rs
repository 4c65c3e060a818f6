//! Front ends that do everything wrong at once (S11.2, S11.4, S13.4): the session ends on time, and whoever behaves is
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

use crate::harness::{EventSubscriber, PATIENCE, ShepherddFixture, wait_until};

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "4s"
warnings = [{ before = "2s" }]
"#;

const HELLO: &str = "{\"type\":\"hello\",\"api_version\":1,\"client\":\"rude\"}\n";

/// How many connections are held open at once.
const CROWD: usize = 2_000;

/// One way to behave badly, over and over until it is enough.
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

/// Entries that make every question about all of them dear.
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

/// Subscribes and asks, and never looks at what comes.
fn never_read(socket: &Path, enough: &AtomicBool) {
    let Some(mut stream) = connect(socket) else { return };
    let subscribe = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"subscribe_events\"}}\n";
    let list = "{\"type\":\"request\",\"id\":2,\"command\":{\"type\":\"metrics\"}}\n";
    let _ = stream.write_all(HELLO.as_bytes()).and_then(|()| stream.write_all(subscribe.as_bytes()));
    while !enough.load(Ordering::Relaxed) && stream.write_all(list.as_bytes()).is_ok() {}
}

/// Wants the longest timeline and all entries, again and again, and takes whatever comes.
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
        let _ = client.call(Command::Launch { entry_id: "nothing".parse().unwrap(), profile: None });
    }
}

/// However it ends, the rude ones end with it.
struct StopFlagGuard<'a>(&'a AtomicBool);

impl Drop for StopFlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// As many as there is room for, and those for whom there is none.
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

/// Asks until it is enough; how often it was answered, and how long the longest answer took.
fn poll_state_until(client: &mut BlockingClient, enough: &AtomicBool) -> (usize, Duration) {
    let (mut answers, mut slowest) = (0, Duration::ZERO);
    while !enough.load(Ordering::Relaxed) {
        let asked = Instant::now();
        match client.call(Command::GetState {}) {
            Ok(CommandReply::State { .. }) => answers += 1,
            // The rude ones are of the same user, who may only so much.
            Err(CallError::Refused(error)) if error.retry_after.is_some() => {}
            other => panic!("{other:?}"),
        }
        slowest = slowest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    (answers, slowest)
}

/// What a listener was told of the session.
#[derive(Debug, Default, PartialEq, Eq)]
struct ObservedSession {
    warnings: Vec<u64>,
    end: Option<EndReason>,
    /// It was too slow for all the lines about the rude ones, and got a new snapshot in their place (S11.2).
    fell_behind: bool,
}

/// Listens until the session is over.
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
fn heavy_a_session_ends_on_time_whatever_front_ends_do() {
    let household = ShepherddFixture::running(&policy());
    let mut listener = household.subscriber();
    let mut client = household.client();
    let socket = household.socket();
    let (enough, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (enough, rounds, socket) = (&enough, &rounds, &socket);
        let _enough = StopFlagGuard(enough);
        let launched = Instant::now();
        household.launch("nap");
        let player = household.wait_for_program();
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
            while !enough.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            crowd.len()
        });
        let served = scope.spawn(move || poll_state_until(&mut client, enough));
        let gone = scope.spawn(move || {
            while crate::harness::is_alive(player) {
                assert!(launched.elapsed() < PATIENCE, "it never ends");
                std::thread::sleep(Duration::from_millis(2));
            }
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
    // A crowd takes a moment to leave, and its user's share of questions to come back.
    wait_until("there is room again", || {
        BlockingClient::connect(&ClientOptions::new(&socket, "polite")).is_ok()
    });
    std::thread::sleep(Duration::from_secs(1));
    // It is as if nothing had been.
    assert!(household.health().ready);
    // Whatever one listener was told, this is what happened.
    let warned = |what: &AuditKind| matches!(what, AuditKind::WarningGiven { .. });
    let ended = |what: &AuditKind| matches!(what, AuditKind::SessionEnded { end: EndReason::Expired, .. });
    assert_eq!((household.count_audit_records(warned), household.count_audit_records(ended)), (1, 1));
    let asked = Instant::now();
    household.launch("nap");
    // What the rude ones left to be recorded makes nobody wait.
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

/// What takes long is done beside the loop, and what is due comes before whoever asks (S13.3b).
#[test]
fn heavy_long_questions_of_many_delay_neither_an_end_nor_anybody_else() {
    let household = ShepherddFixture::running(&policy());
    let mut client = household.client();
    let socket = household.socket();
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (enough, socket) = (&enough, &socket);
        let _enough = StopFlagGuard(enough);
        let launched = Instant::now();
        household.launch("nap");
        let player = household.wait_for_program();
        for _ in 0..16 {
            scope.spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    send_expensive_queries(socket, enough);
                }
            });
        }
        let served = scope.spawn(move || poll_state_until(&mut client, enough));
        while crate::harness::is_alive(player) {
            assert!(launched.elapsed() < PATIENCE, "it never ends");
            std::thread::sleep(Duration::from_millis(2));
        }
        let gone = launched.elapsed();
        enough.store(true, Ordering::Relaxed);
        assert!(gone >= Duration::from_secs(4), "never early: {gone:?}");
        assert!(gone <= Duration::from_secs(6), "never late: {gone:?}");
        let (answers, slowest) = served.join().unwrap();
        assert!(answers >= 2 && slowest < Duration::from_secs(3), "{answers} answers, {slowest:?}");
    });
}

/// Being refused fills neither disk nor log; how often it happened is not lost (S8.3).
#[test]
fn refusals_beyond_the_first_are_counted_instead_of_recorded() {
    const TRIES: usize = 300;
    let mut household = ShepherddFixture::running(POLICY);
    let mut client = household.client();
    let mut refused = 0;
    let nobody: Option<shepherd_util::ProfileId> = Some("nobody".parse().unwrap());
    while refused < TRIES {
        for (entry, profile) in [("nothing", None), ("nap", nobody.clone())] {
            let launch = Command::Launch { entry_id: entry.parse().unwrap(), profile };
            match client.call(launch) {
                Err(CallError::Refused(error)) if error.retry_after.is_some() => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(CallError::Refused(_)) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    let lines = household.count_audit_records(|kind| {
        matches!(kind, AuditKind::LaunchDenied { .. } | AuditKind::CommandRefused { .. })
    });
    assert!((2..=100).contains(&lines), "{lines} lines of {refused} refusals");
    household.end();
    household.start();
    let told = household.audit().into_iter().find_map(|record| match record.line.what {
        AuditKind::Note { text } if text.contains("refusals") => text.split(' ').next()?.parse().ok(),
        _ => None,
    });
    assert_eq!(told, Some(refused - lines));
}
