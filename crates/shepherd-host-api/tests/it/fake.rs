//! What the script of a fake program says is what happens.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_api::EntryKind;
use shepherd_core::policy::{
    AvailabilityPolicy, Cost, Display, Entry, LimitsPolicy, RunPolicy, WarningPolicy,
};
use shepherd_host_api::{
    ExitStatus, FakeHost, FakeOrder, FakeProgram, FakeStart, Host, HostEvent, HostEvents, SpawnOrder,
    StopOrder,
};
use shepherd_util::{ProfileId, SessionId};

pub(crate) fn entry(id: &str) -> Entry {
    Entry {
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
        cost: Cost::Counts,
        earns: None,
        unlock: None,
        run: RunPolicy::default(),
    }
}

fn order(id: &str, number: u128) -> SpawnOrder {
    let session_id = SessionId::from_random(number);
    SpawnOrder { session_id, entry: entry(id), profile: ProfileId::default() }
}

fn heard(events: &mut HostEvents) -> Vec<HostEvent> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_program_starts_shows_a_window_and_ends_when_its_script_says() {
    let mut host = FakeHost::default();
    let (world, mut events) = (host.world(), host.subscribe());
    let status = ExitStatus { code: Some(3), signal: None };
    let program = FakeProgram {
        start: FakeStart::After(SECOND),
        window: Some(SECOND),
        ends: Some((5 * SECOND, status)),
        ..FakeProgram::default()
    };
    world.script(&"game".parse().unwrap(), program);
    let order = order("game", 1);
    let session_id = order.session_id.clone();
    host.spawn(order);
    assert_eq!(heard(&mut events), []);
    world.elapse(SECOND);
    assert!(matches!(heard(&mut events)[..], [HostEvent::Spawned { .. }]));
    assert_eq!(world.running(), std::slice::from_ref(&session_id));
    world.elapse(SECOND);
    assert_eq!(heard(&mut events), [HostEvent::WindowReady { session_id: session_id.clone() }]);
    world.elapse(10 * SECOND);
    assert_eq!(heard(&mut events), [HostEvent::Exited { session_id, status }]);
    assert_eq!(world.running(), []);
}

#[test]
fn every_order_is_on_record() {
    let mut host = FakeHost::default();
    let world = host.world();
    let spawn = order("game", 1);
    let session_id = spawn.session_id.clone();
    let stop = StopOrder { session_id: session_id.clone(), grace: SECOND };
    host.spawn(spawn.clone());
    host.show(&session_id, Display::Fullscreen);
    host.stop(stop.clone());
    host.reattach(&session_id, None);
    assert_eq!(
        world.orders(),
        [
            FakeOrder::Spawn(Box::new(spawn)),
            FakeOrder::Show { session_id: session_id.clone(), display: Display::Fullscreen },
            FakeOrder::Stop(stop),
            FakeOrder::Reattach { session_id, handle: None },
        ]
    );
}

#[test]
fn what_happens_before_anybody_listens_is_not_lost() {
    let mut host = FakeHost::default();
    host.spawn(order("game", 1));
    assert!(host.world().end(&SessionId::from_random(1), ExitStatus::default()));
    let mut events = host.subscribe();
    assert!(matches!(heard(&mut events)[..], [HostEvent::Spawned { .. }, HostEvent::Exited { .. }]));
}

#[test]
fn a_later_host_does_not_hear_of_what_it_has_not_taken_back() {
    let mut host = FakeHost::default();
    let world = host.world();
    host.spawn(order("game", 1));
    let mut later = world.host();
    let mut events = later.subscribe();
    assert_eq!(later.earlier_sessions(), [SessionId::from_random(1)]);
    world.end(&SessionId::from_random(1), ExitStatus::default());
    assert_eq!(heard(&mut events), []);
}
