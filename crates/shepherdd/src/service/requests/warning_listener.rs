//! The client that is warned of the end of a session for the first time after a restart of the daemon.

use shepherd_api::ClientRole;
use shepherd_ipc::ClientInfo;
use shepherd_util::ProfileId;

/// A client that has just subscribed, as seen from a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WarningListener {
    /// The person who plays sees what this client shows.
    Player,
    /// An administrator without a profile: a parent elsewhere, or a login that the whole family shares. The warning is
    /// shown, and kept for the child.
    PerhapsPlayer,
    /// Another child, or somebody who only looks on.
    SomebodyElse,
}

impl WarningListener {
    pub(super) fn of_session(profile: &ProfileId, client: &ClientInfo) -> Self {
        match &client.profile {
            _ if client.role == ClientRole::Observer => Self::SomebodyElse,
            Some(own) if own == profile => Self::Player,
            Some(_) => Self::SomebodyElse,
            // A PIN hides the role of an administrator.
            None if client.role_with_pin == ClientRole::Admin => Self::PerhapsPlayer,
            None => Self::Player,
        }
    }
}

#[cfg(test)]
mod tests {
    use shepherd_ipc::PeerCredentials;
    use shepherd_util::ClientId;

    use super::*;

    #[test]
    fn only_a_parent_and_an_onlooker_leave_the_warning_for_the_child() {
        use ClientRole::{Admin, Observer, Shell};
        use WarningListener::{PerhapsPlayer, Player, SomebodyElse};
        for (profile, role, role_with_pin, expected) in [
            (Some("anna"), Shell, Shell, Player),
            (Some("anna"), Admin, Admin, Player),
            (Some("anna"), Observer, Observer, SomebodyElse),
            (Some("ben"), Shell, Shell, SomebodyElse),
            (Some("ben"), Admin, Admin, SomebodyElse),
            (None, Shell, Shell, Player),
            (None, Shell, Admin, PerhapsPlayer),
            (None, Admin, Admin, PerhapsPlayer),
            (None, Observer, Observer, SomebodyElse),
        ] {
            let client = ClientInfo {
                client_id: ClientId::from_random(1),
                name: String::new(),
                peer: PeerCredentials { uid: 1000, gid: 1000, pid: None },
                role,
                role_with_pin,
                profile: profile.map(|profile| profile.parse().unwrap()),
            };
            let found = WarningListener::of_session(&"anna".parse().unwrap(), &client);
            assert_eq!(found, expected, "{profile:?} {role:?} {role_with_pin:?}");
        }
    }
}
