//! Subscribers get all events after the snapshot, in order and once, and never delay others (S11.2).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use shepherd_api::{AuditEvent, AuditKind, AuditRecord, ClientRole, Event, EventKind};
use shepherd_ipc::{ConnectionLimits, PeerAuthorizer, PeerCredentials, PeerPermissions, PinState};

use crate::support::{FixedRole, IpcTestDaemon, RawClient, event, wait_until};

fn connect_subscribed(daemon: &IpcTestDaemon) -> RawClient {
    let mut raw = daemon.connect_greeted();
    let reply = raw.call(1, &json!({"type": "subscribe_events"}));
    assert_eq!(reply["result"]["ok"]["type"], "subscribed", "{reply}");
    raw
}

#[test]
fn events_follow_the_snapshot_in_order() {
    let daemon = IpcTestDaemon::start();
    daemon.hub.broadcast(&event(0));
    let mut raw = connect_subscribed(&daemon);
    let mut bystander = daemon.connect_greeted();
    for number in 1..=100 {
        daemon.hub.broadcast(&event(number));
    }
    for number in 1..=100 {
        assert_eq!(raw.read().unwrap()["event"]["entry_count"], number);
    }
    // Requests and events share the connection; a client without a subscription gets no events.
    assert_eq!(raw.call(2, &json!({"type": "get_state"}))["result"]["ok"]["type"], "state");
    assert_eq!(bystander.call(2, &json!({"type": "get_state"}))["id"], 2);
}

#[test]
fn subscribing_twice_doubles_nothing() {
    let daemon = IpcTestDaemon::start();
    let mut raw = connect_subscribed(&daemon);
    raw.call(2, &json!({"type": "subscribe_events"}));
    daemon.hub.broadcast(&event(1));
    daemon.hub.broadcast(&event(2));
    assert_eq!(raw.read().unwrap()["event"]["entry_count"], 1);
    assert_eq!(raw.read().unwrap()["event"]["entry_count"], 2);
}

#[test]
fn subscribing_while_events_arrive_leaves_no_gap() {
    let daemon = IpcTestDaemon::start();
    let hub = daemon.hub.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let source = std::thread::spawn(move || {
        let mut number = 0;
        while stopped.try_recv().is_err() {
            number += 1;
            hub.broadcast(&event(number));
            // Limit the rate of events, because the test reads them as fast as they come.
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    for _ in 0..20 {
        let mut raw = connect_subscribed(&daemon);
        let first = raw.read().unwrap()["event"]["entry_count"].as_u64().unwrap();
        for number in first + 1..first + 20 {
            assert_eq!(raw.read().unwrap()["event"]["entry_count"], number);
        }
    }
    stop.send(()).unwrap();
    source.join().unwrap();
}

#[test]
fn a_slow_subscriber_learns_how_many_events_it_missed_and_gets_a_snapshot() {
    let daemon = IpcTestDaemon::start();
    let mut slow = connect_subscribed(&daemon);
    let mut quick = connect_subscribed(&daemon);
    // More than the buffers of the socket and the queue can hold.
    let total = 5_000;
    for number in 1..=total {
        daemon.hub.broadcast(&event(number));
        assert_eq!(quick.read().unwrap()["event"]["entry_count"], number, "the quick one waits for nobody");
    }
    let mut expected = 0;
    let behind = loop {
        let message = slow.read().unwrap();
        if message["type"] == "fell_behind" {
            break message;
        }
        expected += 1;
        assert_eq!(message["event"]["entry_count"], expected, "what was kept has no gap");
    };
    assert_eq!(behind["missed"], total - expected, "every event came or was counted");
    assert_eq!(behind["snapshot"]["entry_count"], 77, "the loop was asked");
    assert_eq!(daemon.hub.counts().events_dropped, (total - expected) as u64);
    // After the snapshot, events are live again.
    daemon.hub.broadcast(&event(9_999));
    assert_eq!(slow.read().unwrap()["event"]["entry_count"], 9_999);
}

#[test]
fn a_subscriber_that_never_reads_is_disconnected_and_delays_nobody() {
    let limits =
        ConnectionLimits { write_timeout: Duration::from_millis(500), ..ConnectionLimits::default() };
    let daemon = IpcTestDaemon::with_authorizer(limits, FixedRole(Some(ClientRole::Admin)));
    let _never = connect_subscribed(&daemon);
    let mut quick = connect_subscribed(&daemon);
    for number in 1..=5_000 {
        daemon.hub.broadcast(&event(number));
        assert_eq!(quick.read().unwrap()["event"]["entry_count"], number);
    }
    wait_until("the subscriber is disconnected", || daemon.hub.counts().clients == 1);
}

/// Gives every peer this role and the profile `mia`.
struct FixedProfile(ClientRole);

impl PeerAuthorizer for FixedProfile {
    fn authorize(&self, _: &PeerCredentials, _: PinState) -> Option<PeerPermissions> {
        Some(PeerPermissions { role: self.0, role_with_pin: self.0, profile: Some("mia".parse().unwrap()) })
    }
}

fn request_event(profile: &str) -> Event {
    let request = json!({
        "type": "request_changed", "at": "2026-03-28T09:00:00Z",
        "request": {
            "request_id": "request-00000000000000000000000000000007", "profile": profile,
            "entry_id": "tuxmath", "amount": 900_000, "note": null, "asked_at": "2026-03-28T09:00:00Z",
            "lapses_at": "2026-03-28T09:00:00Z", "state": {"type": "seen"},
        },
    });
    serde_json::from_value(request).unwrap()
}

fn audit_event() -> Event {
    let at = Timestamp::UNIX_EPOCH;
    let line = AuditEvent { at, actor: "policy".to_owned(), what: AuditKind::ClockTrusted };
    Event { at, kind: EventKind::AuditAppended { record: AuditRecord { sequence: 1, line } } }
}

#[test]
fn a_child_hears_nothing_of_the_others_and_of_the_audit_log() {
    for (role, expected) in
        [(ClientRole::Shell, vec!["mia", "end"]), (ClientRole::Admin, vec!["tom", "mia", "audit", "end"])]
    {
        let daemon = IpcTestDaemon::with_authorizer(ConnectionLimits::default(), FixedProfile(role));
        let mut raw = connect_subscribed(&daemon);
        for event in [request_event("tom"), request_event("mia"), audit_event(), event(1)] {
            daemon.hub.broadcast(&event);
        }
        let heard: Vec<String> = expected
            .iter()
            .map(|_| {
                let event = raw.read().unwrap()["event"].clone();
                match event["type"].as_str().unwrap() {
                    "request_changed" => event["request"]["profile"].as_str().unwrap().to_owned(),
                    "audit_appended" => "audit".to_owned(),
                    _ => "end".to_owned(),
                }
            })
            .collect();
        assert_eq!(heard, expected, "{role:?}");
    }
}
