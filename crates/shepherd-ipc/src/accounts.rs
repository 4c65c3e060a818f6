//! From the names in a policy to the numbers that the kernel knows.
//!
//! Names are looked up in `/etc/passwd` and `/etc/group`, and nowhere else: no code of a directory service runs in
//! the daemon, and nothing waits for a network. An account of such a service is named in the policy by its number.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use shepherd_api::Role;
use shepherd_core::policy::{Access, Account, Profile};
use shepherd_util::{GroupLine, ProfileId, UserLine, group_lines, user_lines};

use crate::Authority;

const USERS_FILE: &str = "/etc/passwd";
const GROUPS_FILE: &str = "/etc/group";

/// The accounts of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    users: BTreeMap<String, User>,
    groups: BTreeMap<String, Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    gid: u32,
    members: Vec<String>,
}

/// The accounts of this machine can't be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {file}")]
pub struct AccountsError {
    /// What was to be read.
    pub file: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl Accounts {
    /// The accounts of this machine.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn read() -> Result<Self, AccountsError> {
        let text = |file| {
            let bytes = std::fs::read(file).map_err(|source| AccountsError { file, source })?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Self::parse(&text(USERS_FILE)?, &text(GROUPS_FILE)?))
    }

    /// The number of a group.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.get(name).map(|group| group.gid)
    }

    /// The accounts that the texts of both files name. A line that is not one of an account names none; of two with
    /// one name the first counts, as in the system's own library.
    #[must_use]
    pub fn parse(users: &str, groups: &str) -> Self {
        let mut accounts = Self::default();
        for UserLine { name, uid, gid, .. } in user_lines(users) {
            accounts.users.entry(name.to_owned()).or_insert(User { uid, gid });
        }
        for GroupLine { name, gid, members } in group_lines(groups) {
            let members = members.into_iter().map(str::to_owned).collect();
            accounts.groups.entry(name.to_owned()).or_insert(Group { gid, members });
        }
        accounts
    }

    /// The users of a group: whose first group it is, and who is listed as a member.
    fn members(&self, gid: u32) -> BTreeSet<u32> {
        let first = self.users.values().filter(|user| user.gid == gid);
        let listed = self.groups.values().filter(|group| group.gid == gid);
        let listed = listed.flat_map(|group| group.members.iter().filter_map(|name| self.users.get(name)));
        first.chain(listed).map(|user| user.uid).collect()
    }

    fn find(&self, account: &Account) -> Option<Number> {
        match account {
            Account::Uid(uid) => Some(Number::Uid(*uid)),
            Account::Gid(gid) => Some(Number::Gid(*gid)),
            Account::User(name) => self.users.get(name).map(|user| Number::Uid(user.uid)),
            Account::Group(name) => self.groups.get(name).map(|group| Number::Gid(group.gid)),
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Uid(u32),
    Gid(u32),
}

/// Something in a policy that does not fit this machine. What it would have permitted is not permitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountFault {
    /// There is no such user.
    #[error(
        "there is no user `{0}` on this machine; create it, or give its number if a directory service knows it"
    )]
    UnknownUser(String),
    /// There is no such group.
    #[error(
        "there is no group `{0}` on this machine; create it, or give its number if a directory service knows it"
    )]
    UnknownGroup(String),
    /// A user whose time could be two profiles'. It is the first one's.
    #[error("user {uid} is in the profiles `{first}` and `{second}`; remove it from one of them")]
    TwoProfiles {
        /// Which user.
        uid: u32,
        /// The profile that counts.
        first: ProfileId,
        /// The other.
        second: ProfileId,
    },
}

/// The rules of a policy in numbers, and all that did not fit.
#[must_use]
pub fn resolve(
    access: &Access,
    profiles: &BTreeMap<ProfileId, Profile>,
    owner_uid: u32,
    accounts: &Accounts,
) -> (Authority, Vec<AccountFault>) {
    let mut resolver = Resolver {
        accounts,
        authority: Authority { owner_uid, others: access.others, ..Authority::default() },
        faults: Vec::new(),
    };
    for (account, role) in &access.rules {
        resolver.permit(account, *role);
    }
    // Users by name come first, so that a child of a family's group can have a profile of its own.
    for wants_users in [true, false] {
        for (profile, Profile { accounts, .. }) in profiles {
            let is_user = |account: &&Account| matches!(account, Account::User(_) | Account::Uid(_));
            for account in accounts.iter().filter(|account| is_user(account) == wants_users) {
                resolver.bind(account, profile);
            }
        }
    }
    (resolver.authority, resolver.faults)
}

struct Resolver<'a> {
    accounts: &'a Accounts,
    authority: Authority,
    faults: Vec<AccountFault>,
}

impl Resolver<'_> {
    fn permit(&mut self, account: &Account, role: Role) {
        let raise = |roles: &mut BTreeMap<u32, Role>, number| {
            let before = roles.entry(number).or_insert(role);
            *before = role.max(*before);
        };
        match self.number(account) {
            Some(Number::Uid(uid)) => raise(&mut self.authority.users, uid),
            Some(Number::Gid(gid)) => {
                raise(&mut self.authority.groups, gid);
                for uid in self.accounts.members(gid) {
                    raise(&mut self.authority.users, uid);
                }
            }
            None => {}
        }
    }

    fn bind(&mut self, account: &Account, profile: &ProfileId) {
        match self.number(account) {
            Some(Number::Uid(uid)) => {
                let first = self.authority.profiles.entry(uid).or_insert_with(|| profile.clone());
                if first != profile {
                    let (first, second) = (first.clone(), profile.clone());
                    self.faults.push(AccountFault::TwoProfiles { uid, first, second });
                }
            }
            Some(Number::Gid(gid)) => {
                self.authority.group_profiles.entry(gid).or_insert_with(|| profile.clone());
                for uid in self.accounts.members(gid) {
                    self.authority.profiles.entry(uid).or_insert_with(|| profile.clone());
                }
            }
            None => {}
        }
    }

    fn number(&mut self, account: &Account) -> Option<Number> {
        let number = self.accounts.find(account);
        if number.is_none() {
            let fault = match account {
                Account::Group(name) => AccountFault::UnknownGroup(name.clone()),
                Account::User(name) => AccountFault::UnknownUser(name.clone()),
                // Numbers need no looking up.
                Account::Uid(_) | Account::Gid(_) => return None,
            };
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
        number
    }
}
