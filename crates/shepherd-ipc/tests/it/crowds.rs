//! Many at once, and no places left (S11.2, S11.4).

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use shepherd_api::Role;
use shepherd_ipc::Limits;

use crate::support::{Daemon, Everybody, Raw, event};

/// As many descriptors as the system lets us have: both ends of every connection are ours here.
fn many_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}

#[test]
fn heavy_2000_connections_harm_nobody() {
    let most = many_descriptors();
    let (asked, places) = (2_000, 1_024);
    assert!(
        most > 3 * asked,
        "this test needs {} descriptors, but may have {most}: raise `ulimit -Hn`",
        3 * asked
    );
    let daemon = Daemon::start();
    let mut crowd: Vec<Raw> = (0..asked).map(|_| daemon.raw()).collect();
    let mut welcome = 0;
    for raw in &mut crowd {
        // Who is not let in may find that out while speaking.
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
    crate::support::eventually("all are forgotten", || daemon.hub.counts().clients == 0);
    daemon.assert_serves();
}

#[test]
fn an_event_reaches_500_subscribers() {
    many_descriptors();
    let daemon = Daemon::start();
    let mut subscribers: Vec<Raw> = (0..500).map(|_| daemon.greeted()).collect();
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
fn a_place_that_became_free_is_given_away_again() {
    let limits = Limits { clients_of_one_user: 2, ..Limits::default() };
    let daemon = Daemon::with(limits, Everybody(Some(Role::Admin)));
    let first = daemon.greeted();
    let _second = daemon.greeted();
    assert_eq!(daemon.raw().closing_code(), "too-many-clients");
    drop(first);
    crate::support::eventually("there is a place", || daemon.hub.counts().clients == 1);
    daemon.assert_serves();
    assert_eq!(daemon.hub.counts().turned_away, 1);
}

#[test]
fn without_descriptors_nothing_is_accepted_and_nothing_spins() {
    // Only as many as are open now and a few: the daemon is a thread of this process.
    let daemon = Daemon::start();
    let mut inside = daemon.greeted();
    let before = getrlimit(Resource::Nofile);
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let outside = std::os::unix::net::UnixStream::connect(daemon.socket());
    drop(outside);
    let waiting: Vec<_> = {
        let low = Rlimit { current: Some(open), maximum: before.maximum };
        setrlimit(Resource::Nofile, low).unwrap();
        // One of these takes the last descriptor, and then there is none to accept with.
        (0..4).map_while(|_| std::os::unix::net::UnixStream::connect(daemon.socket()).ok()).collect()
    };
    crate::support::eventually("an accept fails", || daemon.hub.counts().failed_accepts > 0);
    let failed = daemon.hub.counts().failed_accepts;
    std::thread::sleep(Duration::from_millis(500));
    let more = daemon.hub.counts().failed_accepts - failed;
    assert!(more <= 6, "{more} attempts in half a second");
    // Who is inside is served meanwhile.
    assert_eq!(inside.call(1, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    setrlimit(Resource::Nofile, before).unwrap();
    drop(waiting);
    daemon.assert_serves();
}
