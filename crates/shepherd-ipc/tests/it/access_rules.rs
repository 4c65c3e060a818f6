//! The role of a peer, as a table (S11.3, S11.3b).

use shepherd_api::ClientRole;
use shepherd_api::ClientRole::{Admin, Observer, Shell};
use shepherd_ipc::{AccessRules, PeerAuthorizer, PeerCredentials, PinState};

fn sample_rules() -> AccessRules {
    AccessRules {
        owner_uid: 900,
        users: [(1000, Admin), (1001, Shell), (1002, Observer)].into(),
        groups: [(50, Shell)].into(),
        others: None,
        profiles: [(1001, "mia".parse().unwrap())].into(),
        group_profiles: [(50, "guests".parse().unwrap())].into(),
    }
}

/// The role without the PIN and with it.
fn roles(authority: &AccessRules, uid: u32, gid: u32, pin: PinState) -> Option<(ClientRole, ClientRole)> {
    let standing = authority.authorize(&PeerCredentials { uid, gid, pid: None }, pin)?;
    Some((standing.role, standing.role_with_pin))
}

#[test]
fn each_peer_gets_the_role_that_the_rules_give() {
    for (uid, gid, without_pin, with_pin) in [
        (0, 0, Some((Admin, Admin)), Some((Admin, Admin))),
        (900, 900, Some((Admin, Admin)), Some((Shell, Admin))),
        (1000, 1000, Some((Admin, Admin)), Some((Shell, Admin))),
        (1001, 1001, Some((Shell, Shell)), Some((Shell, Shell))),
        (1002, 1002, Some((Observer, Observer)), Some((Observer, Observer))),
        // The higher of two roles counts.
        (1002, 50, Some((Shell, Shell)), Some((Shell, Shell))),
        (1000, 50, Some((Admin, Admin)), Some((Shell, Admin))),
        (2000, 50, Some((Shell, Shell)), Some((Shell, Shell))),
        // The number of a group is not the number of a user.
        (50, 2000, None, None),
        (2000, 2000, None, None),
        (2000, 0, None, None),
        (2000, 900, None, None),
    ] {
        assert_eq!(roles(&sample_rules(), uid, gid, PinState::NotSet), without_pin, "uid {uid} gid {gid}");
        assert_eq!(roles(&sample_rules(), uid, gid, PinState::Set), with_pin, "uid {uid} gid {gid} with PIN");
    }
}

#[test]
fn the_role_for_others_is_a_minimum() {
    let authority = AccessRules { others: Some(Observer), ..sample_rules() };
    assert_eq!(roles(&authority, 2000, 2000, PinState::NotSet), Some((Observer, Observer)));
    let authority = AccessRules { others: Some(Shell), ..authority };
    assert_eq!(roles(&authority, 1002, 1002, PinState::NotSet), Some((Shell, Shell)));
}

#[test]
fn the_profile_of_a_user_precedes_the_profile_of_its_group() {
    let profile = |uid, gid| {
        let peer = PeerCredentials { uid, gid, pid: None };
        let standing =
            AccessRules { others: Some(Observer), ..sample_rules() }.authorize(&peer, PinState::NotSet);
        standing.unwrap().profile.map(String::from)
    };
    assert_eq!(profile(1001, 50).as_deref(), Some("mia"));
    assert_eq!(profile(2000, 50).as_deref(), Some("guests"));
    assert_eq!(profile(2000, 51), None);
}
