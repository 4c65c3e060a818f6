//! Applies the access rules of the policy to the accounts of the machine.

use std::sync::Arc;

use shepherd_api::AuditKind;
use shepherd_host_linux::find_entries_without_account;
use shepherd_ipc::{AccessRules, AccountResolveError, SystemAccounts, resolve_access};
use shepherd_util::ClockReading;

use super::{DAEMON_ACTOR, DaemonService};

/// Access rules that name unknown accounts, as sentences.
#[must_use = "access rules that don't apply are recorded"]
pub(crate) struct AccessFaults(Vec<String>);

impl DaemonService {
    /// Computes the role of every account again, for existing and new connections, the entries whose login is missing,
    /// and what the health says about such logins.
    pub(crate) fn refresh_authority(&mut self, accounts: &SystemAccounts, now: ClockReading) -> AccessFaults {
        let policy = self.engine.policy();
        let rules = policy.rules();
        let owner = rustix::process::geteuid().as_raw();
        let (authority, faults) = resolve_access(&rules.access, &rules.profiles, owner, accounts);
        let authority = Arc::new(authority);
        self.clients.set_authorizer(Arc::<AccessRules>::clone(&authority));
        let without_account = if self.engine.capabilities().needs_account {
            find_entries_without_account(policy)
        } else {
            Vec::new()
        };
        let missing_logins = accounts.missing_users(policy.named_logins());
        self.access = authority;
        self.name_login_accounts(accounts);
        self.save_login_accounts();
        let of_entries = missing_logins.iter().map(|login| AccountResolveError::UnknownUser(login.clone()));
        let of_entries = of_entries.filter(|fault| !faults.contains(fault)).map(|fault| fault.to_string());
        let without_account = without_account.iter().map(ToString::to_string);
        self.policy.account_faults =
            faults.iter().map(ToString::to_string).chain(of_entries).chain(without_account).collect();
        let effects = self.engine.update_missing_logins(missing_logins);
        self.carry_out(effects, now);
        AccessFaults(faults.into_iter().map(|fault| format!("access: {fault}")).collect())
    }

    pub(crate) fn record_access_faults(&mut self, faults: AccessFaults, now: ClockReading) {
        for text in faults.0 {
            tracing::warn!("{text}");
            self.append_audit(DAEMON_ACTOR, AuditKind::Note { text }, now);
        }
    }

    /// Applies a change of the machine's accounts, such as a new login.
    pub(super) fn apply_accounts(&mut self, accounts: &SystemAccounts, now: ClockReading) {
        let known_faults = self.policy.account_faults.clone();
        let faults = self.refresh_authority(accounts, now);
        if self.policy.account_faults != known_faults {
            tracing::info!("the accounts of this machine changed");
            self.record_access_faults(faults, now);
        }
    }
}
