//! Resolves the names of users and groups in a policy to numeric ids.
//!
//! Names are looked up in `/etc/passwd` and `/etc/group` only: no code of a directory service runs in the daemon,
//! and nothing waits for a network. The policy names an account of such a service by its number.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use shepherd_api::ClientRole;
use shepherd_core::policy::{AccessPolicy, Profile, SystemAccount};
use shepherd_util::{GroupEntry, PasswdEntry, ProfileId, parse_group, parse_passwd};

use crate::AccessRules;

/// The file that lists the users of this machine.
pub const USERS_FILE: &str = "/etc/passwd";
/// The file that lists the groups of this machine.
pub const GROUPS_FILE: &str = "/etc/group";

/// The users and groups of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemAccounts {
    users: BTreeMap<String, UserAccount>,
    groups: BTreeMap<String, GroupAccount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserAccount {
    uid: u32,
    gid: u32,
    /// Whether a person may log in.
    is_person: bool,
}

/// The range of ids that `adduser` gives to people.
const PERSON_UIDS: std::ops::Range<u32> = 1000..60_000;

#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupAccount {
    gid: u32,
    members: Vec<String>,
}

/// The error for account files that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read {file}")]
pub struct AccountsReadError {
    /// The path of the file.
    pub file: &'static str,
    /// The error of the operating system.
    pub source: io::Error,
}

impl SystemAccounts {
    /// Reads the accounts of this machine.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn read() -> Result<Self, AccountsReadError> {
        let text = |file| {
            let bytes = std::fs::read(file).map_err(|source| AccountsReadError { file, source })?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Self::parse(&text(USERS_FILE)?, &text(GROUPS_FILE)?))
    }

    /// Returns the id of a group.
    #[must_use]
    pub fn group_id(&self, name: &str) -> Option<u32> {
        self.groups.get(name).map(|group| group.gid)
    }

    /// Returns the name of a user.
    #[must_use]
    pub fn user_name(&self, uid: u32) -> Option<&str> {
        self.users.iter().find(|(_, user)| user.uid == uid).map(|(name, _)| name.as_str())
    }

    /// Returns the names of the users that are people: not system accounts, nor accounts that can't log in.
    pub fn person_names(&self) -> impl Iterator<Item = &str> {
        self.users.iter().filter(|(_, user)| user.is_person).map(|(name, _)| name.as_str())
    }

    /// Returns the names that are no user of this machine. If the accounts could not be read, nobody counts as missing.
    #[must_use]
    pub fn missing_users<'a>(&self, names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        names
            .filter(|name| !self.users.is_empty() && !self.users.contains_key(*name))
            .map(str::to_owned)
            .collect()
    }

    /// Parses the texts of both files. Invalid lines are skipped; the first of two accounts with one name counts, as in
    /// the C library.
    #[must_use]
    pub fn parse(users: &str, groups: &str) -> Self {
        let mut accounts = Self::default();
        let has_no_shell = |line: &&str| line.ends_with("/nologin") || line.ends_with("/false");
        let without_login: BTreeSet<&str> =
            users.lines().filter(has_no_shell).filter_map(|line| line.split(':').next()).collect();
        for PasswdEntry { name, uid, gid, .. } in parse_passwd(users) {
            let is_person = PERSON_UIDS.contains(&uid) && !without_login.contains(name);
            accounts.users.entry(name.to_owned()).or_insert(UserAccount { uid, gid, is_person });
        }
        for GroupEntry { name, gid, members } in parse_group(groups) {
            let members = members.into_iter().map(str::to_owned).collect();
            accounts.groups.entry(name.to_owned()).or_insert(GroupAccount { gid, members });
        }
        accounts
    }

    /// Returns the users of a group: those whose primary group it is, and its listed members.
    fn members(&self, gid: u32) -> BTreeSet<u32> {
        let first = self.users.values().filter(|user| user.gid == gid);
        let listed = self.groups.values().filter(|group| group.gid == gid);
        let listed = listed.flat_map(|group| group.members.iter().filter_map(|name| self.users.get(name)));
        first.chain(listed).map(|user| user.uid).collect()
    }

    fn find(&self, account: &SystemAccount) -> Option<UnixId> {
        match account {
            SystemAccount::Uid(uid) => Some(UnixId::Uid(*uid)),
            SystemAccount::Gid(gid) => Some(UnixId::Gid(*gid)),
            SystemAccount::User(name) => self.users.get(name).map(|user| UnixId::Uid(user.uid)),
            SystemAccount::Group(name) => self.groups.get(name).map(|group| UnixId::Gid(group.gid)),
        }
    }
}

#[derive(Clone, Copy)]
enum UnixId {
    Uid(u32),
    Gid(u32),
}

/// A problem of a policy on this machine. The permission that can't be resolved isn't given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountResolveError {
    /// The policy names a user that doesn't exist.
    #[error(
        "no such user `{0}` on this machine; create the login with `sudo adduser {0}`, or write the name of a login that \
         exists (`whoami` shows your own) and run `sudo shepherd reload`. A login of a directory service needs its number"
    )]
    UnknownUser(String),
    /// The policy names a group that doesn't exist.
    #[error(
        "no such group `{0}` on this machine; create it with `sudo groupadd {0}`. A group of a directory service needs its \
         number"
    )]
    UnknownGroup(String),
    /// A user belongs to two profiles; the first one counts.
    #[error("user {uid} is in the profiles `{first}` and `{second}`; remove it from one of them")]
    TwoProfiles {
        /// The name of the user.
        uid: u32,
        /// The profile that counts.
        first: ProfileId,
        /// The profile that is ignored.
        second: ProfileId,
    },
}

/// Resolves the rules of a policy, and returns all problems with it.
#[must_use]
pub fn resolve_access(
    access: &AccessPolicy,
    profiles: &BTreeMap<ProfileId, Profile>,
    owner_uid: u32,
    accounts: &SystemAccounts,
) -> (AccessRules, Vec<AccountResolveError>) {
    let mut resolver = AccountResolver {
        accounts,
        authority: AccessRules { owner_uid, others: access.others, ..AccessRules::default() },
        errors: Vec::new(),
    };
    for (account, role) in &access.rules {
        resolver.grant_role(account, *role);
    }
    // Users by name come first, so that a child in a family's group can have its own profile.
    for wants_users in [true, false] {
        for (profile, Profile { accounts, .. }) in profiles {
            let is_user =
                |account: &&SystemAccount| matches!(account, SystemAccount::User(_) | SystemAccount::Uid(_));
            for account in accounts.iter().filter(|account| is_user(account) == wants_users) {
                resolver.assign_profile(account, profile);
            }
        }
    }
    (resolver.authority, resolver.errors)
}

struct AccountResolver<'a> {
    accounts: &'a SystemAccounts,
    authority: AccessRules,
    errors: Vec<AccountResolveError>,
}

impl AccountResolver<'_> {
    fn grant_role(&mut self, account: &SystemAccount, role: ClientRole) {
        let raise = |roles: &mut BTreeMap<u32, ClientRole>, number| {
            let before = roles.entry(number).or_insert(role);
            *before = role.max(*before);
        };
        match self.resolve_account(account) {
            Some(UnixId::Uid(uid)) => raise(&mut self.authority.users, uid),
            Some(UnixId::Gid(gid)) => {
                raise(&mut self.authority.groups, gid);
                for uid in self.accounts.members(gid) {
                    raise(&mut self.authority.users, uid);
                }
            }
            None => {}
        }
    }

    fn assign_profile(&mut self, account: &SystemAccount, profile: &ProfileId) {
        match self.resolve_account(account) {
            Some(UnixId::Uid(uid)) => {
                let first = self.authority.profiles.entry(uid).or_insert_with(|| profile.clone());
                if first != profile {
                    let (first, second) = (first.clone(), profile.clone());
                    self.errors.push(AccountResolveError::TwoProfiles { uid, first, second });
                }
            }
            Some(UnixId::Gid(gid)) => {
                self.authority.group_profiles.entry(gid).or_insert_with(|| profile.clone());
                for uid in self.accounts.members(gid) {
                    self.authority.profiles.entry(uid).or_insert_with(|| profile.clone());
                }
            }
            None => {}
        }
    }

    fn resolve_account(&mut self, account: &SystemAccount) -> Option<UnixId> {
        let number = self.accounts.find(account);
        if number.is_none() {
            let fault = match account {
                SystemAccount::Group(name) => AccountResolveError::UnknownGroup(name.clone()),
                SystemAccount::User(name) => AccountResolveError::UnknownUser(name.clone()),
                // Numeric ids need no lookup.
                SystemAccount::Uid(_) | SystemAccount::Gid(_) => return None,
            };
            if !self.errors.contains(&fault) {
                self.errors.push(fault);
            }
        }
        number
    }
}
