//! Accounts whose logins the policy limits, and the end of those that it doesn't allow (S19.2).

use std::collections::BTreeSet;
use std::time::Duration;

use shepherd_api::{AuditKind, ClientRole};
use shepherd_core::policy::{LoginEnd, LoginWithoutDaemon};
use shepherd_core::{LoginCheck, LoginSupport};
use shepherd_host_api::{LoginEvent, LoginMonitor, LoginStopRequest, LoginTerminal};
use shepherd_ipc::{PeerAuthorizer as _, PeerCredentials, PinState};
use shepherd_util::{ClockReading, ProfileId};

use super::DaemonService;
use super::file_reads::FileReadRequest;
use crate::login_accounts::LoginAccounts;

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
}

impl MachineLogins {
    pub(crate) fn new(monitor: Box<dyn LoginMonitor>) -> Self {
        Self { monitor, terminals: None, fault: None, ending: BTreeSet::new() }
    }
}

impl DaemonService {
    /// Watches logins if a rule of the policy needs to know of them.
    pub(crate) fn watch_logins(&mut self) {
        let policy = self.engine.policy();
        let earns = policy.entries().iter().any(|entry| entry.earns.is_some());
        if earns || policy.login_entries().next().is_some() {
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
                self.end_forbidden_logins(before.as_deref(), now);
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
            }
            LoginEvent::Problem { detail } => {
                tracing::warn!("{detail}");
                self.append_audit(LOGIN_ACTOR, AuditKind::Note { text: detail }, now);
            }
        }
    }

    /// Ends the logins that the rules no longer allow.
    pub(super) fn check_logins(&mut self, now: ClockReading) {
        let known = self.logins.terminals.clone();
        self.end_forbidden_logins(known.as_deref(), now);
    }

    /// Ends logins that may not go on. A login that began against the rules ends at once, because PAM was bypassed; one
    /// that was there before this daemon or these rules gets its time to save.
    fn end_forbidden_logins(&mut self, before: Option<&[LoginTerminal]>, now: ClockReading) {
        let accounts: BTreeSet<u32> =
            self.logins.terminals.iter().flatten().map(|terminal| terminal.uid).collect();
        for uid in accounts {
            let Some(profile) = self.limited_profile(uid, None) else { continue };
            let Some(check) = self.engine.check_login(&profile, now) else { continue };
            let policy = self.engine.policy();
            let Some(entry) = policy.login_entry(&profile).filter(|_| !check.reasons.is_empty()) else {
                continue;
            };
            let end = entry.run.login.end;
            // A screen that is locked already needs nothing.
            let is_in_use = |terminal: &LoginTerminal| {
                terminal.uid == uid && (end == LoginEnd::Terminate || !terminal.state.locked)
            };
            if !self.logins.terminals.iter().flatten().any(is_in_use) || self.logins.ending.contains(&uid) {
                continue;
            }
            let was_there = before.is_none_or(|before| before.iter().any(is_in_use));
            let stop_grace = entry.run.stop_grace.unwrap_or(policy.rules().stop_grace);
            let grace = if was_there { stop_grace } else { Duration::ZERO };
            self.record_forbidden_login(uid, profile, check, now);
            self.logins.ending.insert(uid);
            self.logins.monitor.stop(LoginStopRequest { uid, grace, end });
        }
    }

    fn record_forbidden_login(&mut self, uid: u32, profile: ProfileId, check: LoginCheck, now: ClockReading) {
        let LoginCheck { entry_id, reasons, .. } = check;
        tracing::info!(uid, %profile, ?reasons, "ending a login that isn't allowed now");
        let actor = format!("{LOGIN_ACTOR} uid {uid}");
        self.append_audit(&actor, AuditKind::LaunchDenied { entry_id, profile, reasons }, now);
    }

    /// Returns the profile whose time a login of this account uses. There is none for root, administrators and accounts
    /// without a profile, which are never limited.
    pub(super) fn limited_profile(&self, uid: u32, gid: Option<u32>) -> Option<ProfileId> {
        let account = PeerCredentials { uid, gid: gid.unwrap_or(NO_GROUP), pid: None };
        let permissions = self.access.authorize(&account, PinState::NotSet)?;
        permissions.profile.filter(|_| permissions.role != ClientRole::Admin)
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
