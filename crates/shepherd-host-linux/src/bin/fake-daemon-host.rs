//! A test double of a daemon, which starts one entry and waits to be killed.
//!
//! `fake-daemon-host CONTAINMENT STATE SESSION PROGRAM SCRIPT` prints the handle as soon as the program runs.
#![expect(clippy::panic, clippy::print_stdout, reason = "a test double reports to its test")]

use std::collections::BTreeMap;

use shepherd_api::EntryKind;
use shepherd_core::policy::{
    AvailabilityPolicy, EntrySlot, LimitsPolicy, PolicyEntry, RunPolicy, TimeCost, WarningPolicy,
};
use shepherd_host_api::{HostAdapter, HostEvent, HostSpawnRequest};
use shepherd_host_linux::{LinuxHost, LinuxHostOptions};
use shepherd_util::ProfileId;
use ward_process::Containment;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [containment, state, session, program, script] = arguments.as_slice() else {
        panic!("CONTAINMENT STATE SESSION PROGRAM SCRIPT");
    };
    let mut options = LinuxHostOptions::new(state.into());
    options.containment = Containment::ALL.into_iter().find(|known| format!("{known:?}") == *containment);
    let mut host = LinuxHost::new(options).unwrap_or_else(|error| panic!("{error}"));
    let mut events = host.subscribe();
    host.spawn(HostSpawnRequest {
        session_id: session.parse().unwrap_or_else(|error| panic!("{error}")),
        entry: entry(vec![program.clone(), script.clone()]),
        profile: ProfileId::default(),
        display: None,
    });
    loop {
        match events.blocking_recv() {
            Some(HostEvent::Spawned { handle, .. }) => println!("{}", handle.as_str()),
            Some(event) => panic!("{event:?}"),
            None => panic!("the host is gone"),
        }
    }
}

fn entry(argv: Vec<String>) -> PolicyEntry {
    PolicyEntry {
        entry_id: "fake".parse().unwrap_or_else(|error| panic!("{error}")),
        label: "fake".to_owned(),
        icon_ref: None,
        kind: EntryKind::Process { argv, env: BTreeMap::new(), cwd: None },
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
