//! Accounts whose logins the policy limits, and the news about who is logged in (S19.2).

mod adoption;

use std::collections::{BTreeMap, BTreeSet};

use shepherd_api::{AuditKind, ClientRole, SessionSlot};
use shepherd_core::policy::LoginWithoutDaemon;
use shepherd_core::{LoginSupport, SessionRecord};
use shepherd_host_api::{LoginEvent, LoginMonitor, LoginTerminal};
use shepherd_ipc::{PeerAuthorizer as _, PeerCredentials, PinState, SystemAccounts};
use shepherd_util::{ClockReading, ProfileId};

use super::DaemonService;
use super::file_reads::FileReadRequest;
use crate::login_accounts::LoginAccounts;

/// The first uid that can be a person's. PAM asks about no account below it (`packaging/pam-configs`), so the daemon ends no
/// login of one either.
const FIRST_UID_OF_PEOPLE: u32 = 1000;

/// A group that no account has, for an account whose group isn't known.
const NO_GROUP: u32 = u32::MAX;

/// The actor in audit lines about logins.
const LOGIN_ACTOR: &str = "logind";

/// The state of the machine's logins.
pub(crate) struct MachineLogins {
    monitor: Box<dyn LoginMonitor>,
    /// The terminals that somebody is logged in to; `None` before the first list.
    terminals: Option<Vec<LoginTerminal>>,
    /// The reason why nobody tells who is logged in.
    pub(super) fault: Option<String>,
    /// The accounts whose login is being ended.
    ending: BTreeSet<u32>,
    /// The names of accounts with a profile.
    names: BTreeMap<u32, String>,
}

impl MachineLogins {
    pub(crate) fn new(monitor: Box<dyn LoginMonitor>) -> Self {
        Self { monitor, terminals: None, fault: None, ending: BTreeSet::new(), names: BTreeMap::new() }
    }
}

/// Returns the account of a session that stands for being logged in.
pub(super) fn account_of(session: &SessionRecord) -> Option<u32> {
    match &session.slot {
        SessionSlot::Login { account } => account.parse().ok(),
        _ => None,
    }
}

impl DaemonService {
    /// Watches logins if a rule of the policy needs to know of them.
    pub(crate) fn watch_logins(&mut self) {
        let policy = self.engine.policy();
        let earns = policy.entries().iter().any(|entry| entry.earns.is_some());
        let has_logins = self.engine.sessions().iter().any(|session| account_of(session).is_some());
        if earns || has_logins || policy.login_entries().next().is_some() {
            self.logins.monitor.watch();
        } else {
            self.logins.monitor.rest();
            (self.logins.terminals, self.logins.fault) = (None, None);
        }
    }

    pub(super) fn handle_login_event(&mut self, event: LoginEvent, now: ClockReading) {
        match event {
            LoginEvent::Terminals(terminals) => {
                self.logins.fault = None;
                let effects = self.engine.set_login_support(LoginSupport::Present);
                self.carry_out(effects, now);
                let before = self.logins.terminals.replace(terminals);
                self.update_logins(before.as_deref(), now);
            }
            LoginEvent::Unavailable { detail } => {
                tracing::warn!("{detail}");
                self.logins.fault = Some(detail);
                let effects = self.engine.set_login_support(LoginSupport::Absent);
                self.carry_out(effects, now);
            }
            LoginEvent::Ended { uid } => {
                tracing::info!(uid, "the login has ended");
                self.logins.ending.remove(&uid);
                self.finish_login(uid, now);
                self.check_logins(now);
            }
            LoginEvent::Problem { detail } => {
                tracing::warn!("{detail}");
                self.append_audit(LOGIN_ACTOR, AuditKind::Note { text: detail }, now);
            }
        }
    }

    /// Returns the profile whose time a login of this account uses. There is none for root, administrators, accounts of
    /// the system and accounts without a profile, which are never limited.
    pub(in crate::service) fn limited_profile(&self, uid: u32, gid: Option<u32>) -> Option<ProfileId> {
        if uid < FIRST_UID_OF_PEOPLE {
            return None;
        }
        let account = PeerCredentials { uid, gid: gid.unwrap_or(NO_GROUP), pid: None };
        let permissions = self.access.authorize(&account, PinState::NotSet)?;
        permissions.profile.filter(|_| permissions.role != ClientRole::Admin)
    }

    /// Returns the profile of an account, also of an administrator.
    fn profile_of_account(&self, uid: u32) -> Option<ProfileId> {
        let account = PeerCredentials { uid, gid: NO_GROUP, pid: None };
        self.access.authorize(&account, PinState::NotSet)?.profile
    }

    /// Remembers the names of the accounts that have a profile.
    pub(super) fn name_login_accounts(&mut self, accounts: &SystemAccounts) {
        let name = |uid: &u32| Some((*uid, accounts.user_name(*uid)?.to_owned()));
        self.logins.names = self.access.profiles.keys().filter_map(name).collect();
    }

    /// Has the accounts written down that may not log in while no daemon runs.
    pub(super) fn save_login_accounts(&mut self) {
        // Without a policy, the accounts of the last one are the best that is known.
        if self.policy.source.is_none() {
            return;
        }
        let policy = self.engine.policy();
        let is_refused = |uid: &&u32| {
            let profile = self.limited_profile(**uid, None);
            let login = profile.and_then(|profile| policy.login_entry(&profile));
            login.is_some_and(|login| login.run.login.without_daemon == LoginWithoutDaemon::Refuse)
        };
        let refused = self.access.profiles.keys().filter(is_refused).copied().collect();
        self.request_file_read(FileReadRequest::SaveLoginAccounts(LoginAccounts::new(refused)));
    }
}
