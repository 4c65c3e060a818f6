//! Who may do what, by the policy that applies and the accounts of the machine.

use std::sync::Arc;

use shepherd_api::AuditKind;
use shepherd_ipc::{Accounts, resolve};
use shepherd_util::Now;

use super::Service;

impl Service {
    /// Works it out anew; it holds for every connection, old and new.
    pub(crate) fn renew_authority(&mut self, accounts: &Accounts, now: Now) {
        let rules = self.engine.policy().rules();
        let owner = rustix::process::geteuid().as_raw();
        let (authority, faults) = resolve(&rules.access, &rules.profiles, owner, accounts);
        self.clients.set_gatekeeper(Arc::new(authority));
        for fault in faults {
            let text = format!("access: {fault}");
            tracing::warn!("{text}");
            self.note("shepherdd", AuditKind::Note { text }, now);
        }
    }
}
