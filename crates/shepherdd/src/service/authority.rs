//! Who may do what, by the policy that applies and the accounts of the machine.

use std::sync::Arc;

use shepherd_api::AuditKind;
use shepherd_ipc::{SystemAccounts, resolve_access};
use shepherd_util::ClockReading;

use super::DaemonService;

impl DaemonService {
    /// Works it out anew; it holds for every connection, old and new.
    pub(crate) fn refresh_authority(&mut self, accounts: &SystemAccounts, now: ClockReading) {
        let rules = self.engine.policy().rules();
        let owner = rustix::process::geteuid().as_raw();
        let (authority, faults) = resolve_access(&rules.access, &rules.profiles, owner, accounts);
        self.clients.set_authorizer(Arc::new(authority));
        for fault in faults {
            let text = format!("access: {fault}");
            tracing::warn!("{text}");
            self.append_audit("shepherdd", AuditKind::Note { text }, now);
        }
    }
}
