//! The role that each command needs (S11.3).

use std::collections::BTreeMap;

use shepherd_api::{ClientRole, Command};

use crate::fixtures;

/// Every command with its role. A new command must be added here, so that no role gets it by accident.
const TABLE: &[(&str, ClientRole)] = &[
    ("get_state", ClientRole::Observer),
    ("list_entries", ClientRole::Observer),
    ("launch", ClientRole::Shell),
    ("stop_current", ClientRole::Shell),
    ("reload_config", ClientRole::Admin),
    ("subscribe_events", ClientRole::Observer),
    ("health", ClientRole::Observer),
    ("extend_current", ClientRole::Admin),
    ("set_policy", ClientRole::Admin),
    ("get_policy", ClientRole::Admin),
    ("why", ClientRole::Observer),
    ("timeline", ClientRole::Observer),
    ("usage", ClientRole::Observer),
    ("request_time", ClientRole::Shell),
    ("list_requests", ClientRole::Observer),
    ("mark_request_seen", ClientRole::Admin),
    ("decide_request", ClientRole::Admin),
    ("grant", ClientRole::Admin),
    ("revoke_grant", ClientRole::Admin),
    ("list_grants", ClientRole::Admin),
    ("switch_mode", ClientRole::Admin),
    ("confirm_clock", ClientRole::Admin),
    ("read_audit", ClientRole::Admin),
    ("read_session_log", ClientRole::Shell),
    ("authenticate", ClientRole::Observer),
    ("set_pin", ClientRole::Admin),
    ("metrics", ClientRole::Observer),
    ("check_login", ClientRole::Observer),
];

#[test]
fn every_command_needs_its_role_and_no_less() {
    let table: BTreeMap<_, _> = TABLE.iter().copied().collect();
    let names: Vec<_> = TABLE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, Command::NAMES);
    for line in fixtures::golden_lines("commands") {
        let command: Command = serde_json::from_str(&line).unwrap();
        assert_eq!(command.required_role(), table[command.name()], "{line}");
    }
}
