//! The engine on the real store: what it said survives the daemon at any point (S8.2, S9.1).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::EntryKind;
use shepherd_core::policy::{
    AvailabilityPolicy, Cost, DailyQuota, Entry, LimitsPolicy, Policy, Rules, WarningPolicy,
};
use shepherd_core::{
    CoreEngine, CoreEvent, HostCapabilities, LaunchDecision, LaunchRequest, Place, SessionFate,
};
use shepherd_store::{SqliteStore, Store};
use shepherd_util::{BootId, Clock, ManualClock, SessionId};

fn household() -> Policy {
    let entry = Entry {
        entry_id: "game".parse().unwrap(),
        label: "Game".to_owned(),
        icon_ref: None,
        kind: EntryKind::Process { argv: vec!["/bin/true".into()], env: BTreeMap::new(), cwd: None },
        profiles: None,
        availability: AvailabilityPolicy::Always,
        limits: LimitsPolicy {
            max_run: Some(Duration::from_secs(1_800)),
            daily_quota: DailyQuota::every_day(Duration::from_secs(2_400)),
            weekly_quota: None,
            cooldown_after_run: Duration::from_secs(60),
        },
        warnings: WarningPolicy::default(),
        disabled: None,
        budgets: Vec::new(),
        cost: Cost::Counts,
        earns: None,
        unlock: None,
        run: shepherd_core::policy::RunPolicy::default(),
    };
    Policy::new(Rules { entries: vec![entry], ..Rules::default() }).unwrap()
}

struct Daemon {
    engine: CoreEngine,
    store: SqliteStore,
}

impl Daemon {
    fn start(folder: &Path, clock: &ManualClock) -> Self {
        let boot: BootId = "3f1c1e9a-5d0b-4c57-9f0e-0a8a5c1d2b3e".parse().unwrap();
        let (store, _) = SqliteStore::open(folder, clock.now().wall).unwrap();
        let place = Place { boot, zone: TimeZone::UTC };
        let engine =
            CoreEngine::new(household(), store.load().unwrap(), HostCapabilities::everything(), place);
        Self { engine, store }
    }

    fn write(&mut self) {
        let writes = self.engine.take_writes();
        self.store.apply(&writes).unwrap();
    }
}

#[test]
fn a_daemon_that_dies_after_any_step_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at("2026-11-16T12:00:00Z".parse::<Timestamp>().unwrap());
    clock.advance(Duration::from_secs(3_600));
    let mut daemon = Daemon::start(folder.path(), &clock);
    let request = LaunchRequest {
        entry_id: "game".parse().unwrap(),
        profile: None,
        session_id: SessionId::from_random(7),
        actor: "test".to_owned(),
    };
    let LaunchDecision::Approved(plan) = daemon.engine.request_launch(&request, clock.now()) else {
        panic!()
    };
    daemon.write();
    daemon.engine.start_session(&plan.session_id, "handle".to_owned(), clock.now()).unwrap();
    daemon.write();
    let mut expired = false;
    for round in 0..200 {
        // It dies, is away for a while, and comes back to a program that still runs.
        let expected = daemon.engine.stored_state();
        drop(daemon);
        clock.advance(Duration::from_millis(9_700));
        daemon = Daemon::start(folder.path(), &clock);
        assert_eq!(daemon.engine.stored_state(), expected, "round {round}");
        let events = daemon.engine.recover(SessionFate::Alive { handle: None }, clock.now());
        daemon.write();
        expired = events.iter().any(|event| matches!(event, CoreEvent::ExpireDue { .. }));
        if expired {
            break;
        }
    }
    assert!(expired, "the original deadline was enforced");
    let used: Duration = daemon.store.load().unwrap().usage.values().sum();
    // 186 absences of 9.7 s are the first to reach half an hour.
    assert_eq!(used, Duration::from_millis(186 * 9_700), "nothing lost, nothing charged twice");
}
