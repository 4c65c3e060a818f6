//! The fake host follows the scripts of its programs.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_api::EntryKind;
use shepherd_core::policy::{
    AvailabilityPolicy, EntrySlot, LimitsPolicy, PolicyEntry, RunPolicy, TimeCost, WarningPolicy,
    WindowDisplay,
};
use shepherd_host_api::{
    ExitStatus, FakeHost, FakeHostRequest, FakeProgram, FakeStart, HostAdapter, HostEvent, HostEvents,
    HostSpawnRequest, HostStopRequest,
};
use shepherd_util::{ProfileId, SessionId};

pub(crate) fn entry(id: &str) -> PolicyEntry {
    PolicyEntry {
        entry_id: id.parse().unwrap(),
        label: id.to_owned(),
        icon_ref: None,
        kind: EntryKind::Process { argv: vec![id.to_owned()], env: BTreeMap::new(), cwd: None },
        profiles: None,
        availability: AvailabilityPolicy::Always,
        limits: LimitsPolicy::default(),
        warnings: WarningPolicy::default(),
        disabled: None,
        budgets: Vec::new(),
        cost: TimeCost::Counts,
        earns: None,
        slot: EntrySlot::Foreground,
        unlock: None,
        run: RunPolicy::default(),
    }
}

fn spawn_request(id: &str, number: u128) -> HostSpawnRequest {
    let session_id = SessionId::from_random(number);
    HostSpawnRequest { session_id, entry: entry(id), profile: ProfileId::default(), display: None }
}

fn received_events(events: &mut HostEvents) -> Vec<HostEvent> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_program_starts_shows_a_window_and_ends_when_its_script_says() {
    let mut host = FakeHost::default();
    let (platform, mut events) = (host.platform(), host.subscribe());
    let status = ExitStatus { code: Some(3), signal: None };
    let program = FakeProgram {
        start: FakeStart::After(SECOND),
        window: Some(SECOND),
        exits: Some((5 * SECOND, status)),
        ..FakeProgram::default()
    };
    platform.set_script(&"game".parse().unwrap(), program);
    let request = spawn_request("game", 1);
    let session_id = request.session_id.clone();
    host.spawn(request);
    assert_eq!(received_events(&mut events), []);
    platform.advance_time(SECOND);
    assert!(matches!(received_events(&mut events)[..], [HostEvent::Spawned { .. }]));
    assert_eq!(platform.running_sessions(), std::slice::from_ref(&session_id));
    platform.advance_time(SECOND);
    assert_eq!(received_events(&mut events), [HostEvent::WindowReady { session_id: session_id.clone() }]);
    platform.advance_time(10 * SECOND);
    assert_eq!(received_events(&mut events), [HostEvent::Exited { session_id, status }]);
    assert_eq!(platform.running_sessions(), []);
}

#[test]
fn every_request_is_recorded() {
    let mut host = FakeHost::default();
    let platform = host.platform();
    let spawn = spawn_request("game", 1);
    let session_id = spawn.session_id.clone();
    let stop = HostStopRequest { session_id: session_id.clone(), grace: SECOND };
    host.spawn(spawn.clone());
    host.show_window(&session_id, WindowDisplay::Fullscreen);
    host.stop(stop.clone());
    host.reattach(&session_id, None);
    assert_eq!(
        platform.requests(),
        [
            FakeHostRequest::Spawn(Box::new(spawn)),
            FakeHostRequest::ShowWindow {
                session_id: session_id.clone(),
                display: WindowDisplay::Fullscreen
            },
            FakeHostRequest::Stop(stop),
            FakeHostRequest::Reattach { session_id, handle: None },
        ]
    );
}

#[test]
fn events_before_the_first_subscriber_are_kept() {
    let mut host = FakeHost::default();
    host.spawn(spawn_request("game", 1));
    assert!(host.platform().end_program(&SessionId::from_random(1), ExitStatus::default()));
    let mut events = host.subscribe();
    assert!(matches!(
        received_events(&mut events)[..],
        [HostEvent::Spawned { .. }, HostEvent::Exited { .. }]
    ));
}

#[test]
fn a_new_host_gets_no_events_of_sessions_it_has_not_reattached() {
    let mut host = FakeHost::default();
    let platform = host.platform();
    host.spawn(spawn_request("game", 1));
    let mut later_host = platform.host();
    let mut events = later_host.subscribe();
    assert_eq!(later_host.recorded_sessions(), [SessionId::from_random(1)]);
    platform.end_program(&SessionId::from_random(1), ExitStatus::default());
    assert_eq!(received_events(&mut events), []);
}
