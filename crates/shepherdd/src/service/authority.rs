//! Applies the access rules of the policy to the accounts of the machine.

use std::sync::Arc;

use shepherd_api::AuditKind;
use shepherd_host_linux::find_entries_without_account;
use shepherd_ipc::{SystemAccounts, resolve_access};
use shepherd_util::ClockReading;

use super::{DAEMON_ACTOR, DaemonService};

/// Access rules that name unknown accounts, as sentences.
#[must_use = "access rules that don't apply are recorded"]
pub(crate) struct AccessFaults(Vec<String>);

impl DaemonService {
    /// Computes the role of every account again, for existing and new connections, and what the health says about
    /// accounts that are missing.
    pub(crate) fn refresh_authority(&mut self, accounts: &SystemAccounts) -> AccessFaults {
        let policy = self.engine.policy();
        let rules = policy.rules();
        let owner = rustix::process::geteuid().as_raw();
        let (authority, faults) = resolve_access(&rules.access, &rules.profiles, owner, accounts);
        self.clients.set_authorizer(Arc::new(authority));
        let without_account = if self.engine.capabilities().needs_account {
            find_entries_without_account(policy)
        } else {
            Vec::new()
        };
        let missing = without_account.iter().map(ToString::to_string);
        self.policy.account_faults = faults.iter().map(ToString::to_string).chain(missing).collect();
        AccessFaults(faults.into_iter().map(|fault| format!("access: {fault}")).collect())
    }

    pub(crate) fn record_access_faults(&mut self, faults: AccessFaults, now: ClockReading) {
        for text in faults.0 {
            tracing::warn!("{text}");
            self.append_audit(DAEMON_ACTOR, AuditKind::Note { text }, now);
        }
    }
}
