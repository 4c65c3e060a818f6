//! Who may give which command (S11.3).

use std::collections::BTreeMap;

use shepherd_api::{Command, Role};

use crate::fixtures;

/// Every command by its name. A new one has to be added here, too: nobody gets a right by accident.
const TABLE: &[(&str, Role)] = &[
    ("get_state", Role::Observer),
    ("list_entries", Role::Observer),
    ("launch", Role::Shell),
    ("stop_current", Role::Shell),
    ("reload_config", Role::Admin),
    ("subscribe_events", Role::Observer),
    ("health", Role::Observer),
    ("extend_current", Role::Admin),
    ("set_policy", Role::Admin),
    ("get_policy", Role::Admin),
    ("why", Role::Observer),
    ("timeline", Role::Observer),
    ("usage", Role::Observer),
    ("request_time", Role::Shell),
    ("list_requests", Role::Observer),
    ("mark_request_seen", Role::Admin),
    ("decide_request", Role::Admin),
    ("grant", Role::Admin),
    ("revoke_grant", Role::Admin),
    ("list_grants", Role::Admin),
    ("switch_mode", Role::Admin),
    ("confirm_clock", Role::Admin),
    ("read_audit", Role::Admin),
    ("authenticate", Role::Observer),
    ("set_pin", Role::Admin),
    ("metrics", Role::Observer),
];

#[test]
fn every_command_needs_its_role_and_no_less() {
    let table: BTreeMap<_, _> = TABLE.iter().copied().collect();
    let names: Vec<_> = TABLE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, Command::NAMES);
    for line in fixtures::golden("commands") {
        let command: Command = serde_json::from_str(&line).unwrap();
        assert_eq!(command.needs(), table[command.name()], "{line}");
    }
}
