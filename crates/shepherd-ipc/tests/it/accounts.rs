//! Resolving names of accounts to numbers (S11.3).

use std::collections::BTreeMap;

use shepherd_api::ClientRole;
use shepherd_core::policy::{AccessPolicy, Profile, SystemAccount};
use shepherd_ipc::{AccessRules, AccountResolveError, SystemAccounts, resolve_access};
use shepherd_util::ProfileId;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash
# a remark
broken line
anna:x:1000:1000:Anna,,,:/home/anna:/bin/bash
mia:x:1001:100::/home/mia:/bin/sh
tom:x:1002:100::/home/tom:/bin/sh
anna:x:6666:6666:a second Anna:/:/bin/sh
huge:x:99999999999:1::/:/bin/sh
";

const GROUP: &str = "root:x:0:
kids:x:100:
parents:x:200:anna, nobody-we-know
games:x:300:mia,tom
";

fn user(name: &str) -> SystemAccount {
    SystemAccount::User(name.to_owned())
}

fn group(name: &str) -> SystemAccount {
    SystemAccount::Group(name.to_owned())
}

fn id(name: &str) -> ProfileId {
    name.parse().unwrap()
}

fn check(
    rules: Vec<(SystemAccount, ClientRole)>,
    profiles: &[(&str, Vec<SystemAccount>)],
) -> (AccessRules, Vec<AccountResolveError>) {
    let profile = |(name, accounts): &(&str, Vec<SystemAccount>)| {
        (id(name), Profile { label: (*name).to_owned(), accounts: accounts.clone() })
    };
    let profiles: BTreeMap<_, _> = profiles.iter().map(profile).collect();
    resolve_access(&AccessPolicy { rules, others: None }, &profiles, 7, &SystemAccounts::parse(PASSWD, GROUP))
}

#[test]
fn names_become_numbers_and_groups_their_members() {
    let rules = vec![
        (user("mia"), ClientRole::Observer),
        (group("kids"), ClientRole::Shell),
        (group("parents"), ClientRole::Admin),
        (SystemAccount::Uid(4711), ClientRole::Shell),
        (SystemAccount::Gid(300), ClientRole::Observer),
    ];
    let (authority, faults) = check(rules, &[]);
    assert_eq!(faults, []);
    let expected = AccessRules {
        owner_uid: 7,
        // The higher of two roles counts, in either order.
        users: [
            (1000, ClientRole::Admin),
            (1001, ClientRole::Shell),
            (1002, ClientRole::Shell),
            (4711, ClientRole::Shell),
        ]
        .into(),
        groups: [(100, ClientRole::Shell), (200, ClientRole::Admin), (300, ClientRole::Observer)].into(),
        ..AccessRules::default()
    };
    assert_eq!(authority, expected);
}

#[test]
fn an_unknown_account_is_reported_once_and_gets_no_role() {
    let rules = vec![
        (user("carl"), ClientRole::Admin),
        (group("wheel"), ClientRole::Admin),
        // The number is too large, so the line is ignored.
        (user("huge"), ClientRole::Admin),
    ];
    let (authority, faults) = check(rules, &[("carl", vec![user("carl")])]);
    assert_eq!(authority, AccessRules { owner_uid: 7, ..AccessRules::default() });
    assert_eq!(
        faults,
        [
            AccountResolveError::UnknownUser("carl".to_owned()),
            AccountResolveError::UnknownGroup("wheel".to_owned()),
            AccountResolveError::UnknownUser("huge".to_owned()),
        ]
    );
    assert_eq!(
        faults[0].to_string(),
        "no such user `carl` on this machine; create the login with `sudo adduser carl`, or write the name of a login that \
         exists (`whoami` shows your own) and run `sudo shepherd reload`. A login of a directory service needs its number"
    );
}

#[test]
fn a_user_has_one_profile_and_a_second_one_is_reported() {
    let (authority, faults) = check(
        vec![],
        &[("a", vec![group("kids")]), ("b", vec![user("mia")]), ("c", vec![SystemAccount::Uid(1001)])],
    );
    // The user's own profile counts before that of a group; Tom has only that of his group.
    assert_eq!(authority.profiles, [(1001, id("b")), (1002, id("a"))].into());
    assert_eq!(authority.group_profiles, [(100, id("a"))].into());
    assert_eq!(faults, [AccountResolveError::TwoProfiles { uid: 1001, first: id("b"), second: id("c") }]);
}

#[test]
fn the_accounts_of_this_machine_can_be_read() {
    let accounts = SystemAccounts::read().unwrap();
    let access = AccessPolicy { rules: vec![(user("root"), ClientRole::Observer)], others: None };
    let (authority, faults) = resolve_access(&access, &BTreeMap::new(), 7, &accounts);
    assert_eq!((authority.users, faults), ([(0, ClientRole::Observer)].into(), vec![]));
}
