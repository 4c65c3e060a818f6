//! From names to numbers (S11.3).

use std::collections::BTreeMap;

use shepherd_api::Role;
use shepherd_core::policy::{Access, Account, Profile};
use shepherd_ipc::{AccountFault, Accounts, Authority, resolve};
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

fn user(name: &str) -> Account {
    Account::User(name.to_owned())
}

fn group(name: &str) -> Account {
    Account::Group(name.to_owned())
}

fn id(name: &str) -> ProfileId {
    name.parse().unwrap()
}

fn check(rules: Vec<(Account, Role)>, profiles: &[(&str, Vec<Account>)]) -> (Authority, Vec<AccountFault>) {
    let profile = |(name, accounts): &(&str, Vec<Account>)| {
        (id(name), Profile { label: (*name).to_owned(), accounts: accounts.clone() })
    };
    let profiles: BTreeMap<_, _> = profiles.iter().map(profile).collect();
    resolve(&Access { rules, others: None }, &profiles, 7, &Accounts::parse(PASSWD, GROUP))
}

#[test]
fn names_become_numbers_and_groups_their_members() {
    let rules = vec![
        (user("mia"), Role::Observer),
        (group("kids"), Role::Shell),
        (group("parents"), Role::Admin),
        (Account::Uid(4711), Role::Shell),
        (Account::Gid(300), Role::Observer),
    ];
    let (authority, faults) = check(rules, &[]);
    assert_eq!(faults, []);
    let expected = Authority {
        owner_uid: 7,
        // The higher of two roles counts, whichever was named first.
        users: [(1000, Role::Admin), (1001, Role::Shell), (1002, Role::Shell), (4711, Role::Shell)].into(),
        groups: [(100, Role::Shell), (200, Role::Admin), (300, Role::Observer)].into(),
        ..Authority::default()
    };
    assert_eq!(authority, expected);
}

#[test]
fn who_does_not_exist_is_reported_once_and_gets_nothing() {
    let rules = vec![
        (user("carl"), Role::Admin),
        (group("wheel"), Role::Admin),
        // Its number does not fit, so its line is none.
        (user("huge"), Role::Admin),
    ];
    let (authority, faults) = check(rules, &[("carl", vec![user("carl")])]);
    assert_eq!(authority, Authority { owner_uid: 7, ..Authority::default() });
    assert_eq!(
        faults,
        [
            AccountFault::UnknownUser("carl".to_owned()),
            AccountFault::UnknownGroup("wheel".to_owned()),
            AccountFault::UnknownUser("huge".to_owned()),
        ]
    );
    assert_eq!(
        faults[0].to_string(),
        "there is no user `carl` on this machine; create it, or give its number if a directory service knows it"
    );
}

#[test]
fn a_user_has_one_profile_and_a_second_one_is_reported() {
    let (authority, faults) = check(
        vec![],
        &[("a", vec![group("kids")]), ("b", vec![user("mia")]), ("c", vec![Account::Uid(1001)])],
    );
    // The user's own profile, not its group's; Tom has only the group's.
    assert_eq!(authority.profiles, [(1001, id("b")), (1002, id("a"))].into());
    assert_eq!(authority.group_profiles, [(100, id("a"))].into());
    assert_eq!(faults, [AccountFault::TwoProfiles { uid: 1001, first: id("b"), second: id("c") }]);
}

#[test]
fn the_accounts_of_this_machine_can_be_read() {
    let accounts = Accounts::read().unwrap();
    let access = Access { rules: vec![(user("root"), Role::Observer)], others: None };
    let (authority, faults) = resolve(&access, &BTreeMap::new(), 7, &accounts);
    assert_eq!((authority.users, faults), ([(0, Role::Observer)].into(), vec![]));
}
