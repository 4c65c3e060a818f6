//! Many connections, and no descriptors left (S11.2, S11.4).

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use shepherd_api::ClientRole;
use shepherd_ipc::ConnectionLimits;

use crate::support::{FixedRole, IpcTestDaemon, RawClient, event};

/// Raises the limit of descriptors to the maximum: both ends of every connection belong to this process.
fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}

#[test]
fn heavy_2000_connections_harm_nobody() {
    let most = raise_descriptor_limit();
    let (asked, places) = (2_000, 1_024);
    assert!(
        most > 3 * asked,
        "this test needs {} descriptors, but may have {most}: raise `ulimit -Hn`",
        3 * asked
    );
    let daemon = IpcTestDaemon::start();
    let mut crowd: Vec<RawClient> = (0..asked).map(|_| daemon.connect_raw()).collect();
    let mut welcome = 0;
    for raw in &mut crowd {
        // A refused client may notice it while it sends.
        let _ = std::io::Write::write_all(
            &mut raw.stream,
            b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"x\"}\n",
        );
        let answer = raw.read().expect("neither a welcome nor a farewell");
        match answer["type"].as_str() {
            Some("welcome") => welcome += 1,
            _ => assert_eq!(answer["error"]["code"], "too-many-clients", "{answer}"),
        }
    }
    assert_eq!(welcome, places);
    assert_eq!(daemon.hub.counts().clients, places);
    let started = Instant::now();
    assert_eq!(crowd[0].call(1, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(crowd);
    crate::support::wait_until("all clients are disconnected", || daemon.hub.counts().clients == 0);
    daemon.assert_serves();
}

#[test]
fn an_event_reaches_500_subscribers() {
    raise_descriptor_limit();
    let daemon = IpcTestDaemon::start();
    let mut subscribers: Vec<RawClient> = (0..500).map(|_| daemon.connect_greeted()).collect();
    for raw in &mut subscribers {
        raw.call(1, &json!({"type": "subscribe_events"}));
    }
    assert_eq!(daemon.hub.counts().subscribers, 500);
    for number in 0..3 {
        daemon.hub.broadcast(&event(number));
    }
    for raw in &mut subscribers {
        for number in 0..3 {
            assert_eq!(raw.read().unwrap()["event"]["entry_count"], number);
        }
    }
}

#[test]
fn a_freed_connection_slot_is_reused() {
    let limits = ConnectionLimits { clients_per_user: 2, ..ConnectionLimits::default() };
    let daemon = IpcTestDaemon::with_authorizer(limits, FixedRole(Some(ClientRole::Admin)));
    let first = daemon.connect_greeted();
    let _second = daemon.connect_greeted();
    assert_eq!(daemon.connect_raw().closing_code(), "too-many-clients");
    drop(first);
    crate::support::wait_until("there is a place", || daemon.hub.counts().clients == 1);
    daemon.assert_serves();
    assert_eq!(daemon.hub.counts().rejected, 1);
}

#[test]
fn without_descriptors_nothing_is_accepted_and_nothing_spins() {
    // Allow only a few more descriptors than are open now: the daemon is a thread of this process.
    let daemon = IpcTestDaemon::start();
    let mut inside = daemon.connect_greeted();
    let before = getrlimit(Resource::Nofile);
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let outside = std::os::unix::net::UnixStream::connect(daemon.socket());
    drop(outside);
    let waiting: Vec<_> = {
        let low = Rlimit { current: Some(open), maximum: before.maximum };
        setrlimit(Resource::Nofile, low).unwrap();
        // One of these takes the last descriptor, and then none is left to accept another connection.
        (0..4).map_while(|_| std::os::unix::net::UnixStream::connect(daemon.socket()).ok()).collect()
    };
    crate::support::wait_until("an accept fails", || daemon.hub.counts().failed_accepts > 0);
    let failed = daemon.hub.counts().failed_accepts;
    // Failed attempts of half a second are counted.
    std::thread::sleep(Duration::from_millis(500));
    let more = daemon.hub.counts().failed_accepts - failed;
    assert!(more <= 6, "{more} attempts in half a second");
    // Connected clients are served meanwhile.
    assert_eq!(inside.call(1, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    setrlimit(Resource::Nofile, before).unwrap();
    drop(waiting);
    daemon.assert_serves();
}
