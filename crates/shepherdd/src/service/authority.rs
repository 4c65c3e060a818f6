//! Applies the access rules of the policy to the accounts of the machine.

use std::sync::Arc;

use shepherd_api::AuditKind;
use shepherd_ipc::{SystemAccounts, resolve_access};
use shepherd_util::ClockReading;

use super::{DAEMON_ACTOR, DaemonService};

/// Access rules that name unknown accounts, as sentences.
#[must_use = "access rules that don't apply are recorded"]
pub(crate) struct AccessFaults(Vec<String>);

impl DaemonService {
    /// Computes the role of every account again, for existing and new connections.
    pub(crate) fn refresh_authority(&self, accounts: &SystemAccounts) -> AccessFaults {
        let rules = self.engine.policy().rules();
        let owner = rustix::process::geteuid().as_raw();
        let (authority, faults) = resolve_access(&rules.access, &rules.profiles, owner, accounts);
        self.clients.set_authorizer(Arc::new(authority));
        AccessFaults(faults.into_iter().map(|fault| format!("access: {fault}")).collect())
    }

    pub(crate) fn record_access_faults(&mut self, faults: AccessFaults, now: ClockReading) {
        for text in faults.0 {
            tracing::warn!("{text}");
            self.append_audit(DAEMON_ACTOR, AuditKind::Note { text }, now);
        }
    }
}
