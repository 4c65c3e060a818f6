//! Health (S13.2): an answer shows that the daemon is alive, and the checks show whether it can do its work.

use shepherd_api::{HealthCheck, HealthView, RejectedPolicyView};
use shepherd_util::ClockReading;

use super::DaemonService;
use crate::policy_source::RejectedPolicyFile;

impl DaemonService {
    pub(super) fn health(&self, now: ClockReading) -> HealthView {
        let checks = vec![
            self.policy_check(),
            self.host_check(),
            self.store_check(),
            self.heartbeat_check(),
            self.clock_check(now),
        ];
        HealthView {
            ready: checks.iter().all(|check| check.passed),
            daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: now.mono.total_since(self.started.mono).into(),
            checks,
            // The host's limitations may change, for example when a compositor comes or goes.
            limitations: self
                .host
                .limitations()
                .into_iter()
                .chain(self.limitations.iter().cloned())
                .chain(self.policy.exposed.iter().chain(&self.policy.copy_fault).cloned())
                .chain(self.policy.account_faults.iter().chain(&self.policy.login_fault).cloned())
                .chain(self.login_limitation())
                .collect(),
            containment: self.engine.capabilities().containment.clone(),
            rejected_policy: self.rejected_policy(),
            audit_log: self.audit_log.to_str().map(str::to_owned),
        }
    }

    /// Describes what is missing while nobody tells who is logged in.
    fn login_limitation(&self) -> Option<String> {
        let fault = self.logins.fault.as_ref()?;
        let consequence = match self.engine.policy().login_entries().next() {
            Some(_) => "nobody whose login is limited can log in",
            None => "time without input earns as well",
        };
        Some(format!("{fault}; until it answers, {consequence}"))
    }

    fn policy_check(&self) -> HealthCheck {
        let path = self.policy.path.display();
        let rejection = self.policy.rejected.as_ref().map(|rejected| &rejected.rejection);
        let entry_count = self.engine.policy().entries().len();
        let noun = if entry_count == 1 { "entry" } else { "entries" };
        match (&self.policy.source, rejection) {
            (Some(_), None) => health_check("policy", true, format!("{entry_count} {noun} from {path}")),
            (Some(_), Some(rejection)) => health_check(
                "policy",
                true,
                format!("the old rules apply ({entry_count} {noun}): {rejection}"),
            ),
            (None, Some(rejection)) => {
                health_check("policy", false, format!("every launch is denied: {rejection}"))
            }
            (None, None) => health_check("policy", false, format!("{path} has not been read")),
        }
    }

    fn rejected_policy(&self) -> Option<RejectedPolicyView> {
        let RejectedPolicyFile { rejection, since } = self.policy.rejected.as_ref()?;
        Some(RejectedPolicyView {
            path: self.policy.path.display().to_string(),
            since: *since,
            fault_count: rejection.fault_count,
            sentence: rejection.sentence.clone(),
        })
    }

    fn host_check(&self) -> HealthCheck {
        let capabilities = self.engine.capabilities();
        let kinds: Vec<&str> = capabilities.spawn_kinds_supported.iter().map(String::as_str).collect();
        let able = capabilities.can_kill_forcefully && capabilities.can_observe_exit && !kinds.is_empty();
        if let Some(fault) = &self.launch_fault {
            return health_check("host", false, format!("no program can be launched: {fault}"));
        }
        health_check("host", able, format!("can run {}", kinds.join(", ")))
    }

    fn store_check(&self) -> HealthCheck {
        match self.engine.store_trouble() {
            None => health_check("store", true, "usage is recorded".to_owned()),
            Some(trouble) => health_check(
                "store",
                false,
                format!("every launch is denied until usage can be recorded: {trouble} (retrying)"),
            ),
        }
    }

    fn heartbeat_check(&self) -> HealthCheck {
        match &self.heartbeat_error {
            None => health_check(
                "heartbeat",
                true,
                "after a power cut, at most 30 extra seconds are charged".to_owned(),
            ),
            Some(trouble) => health_check(
                "heartbeat",
                false,
                format!("after a power cut, all the remaining time is charged: {trouble}"),
            ),
        }
    }

    fn clock_check(&self, now: ClockReading) -> HealthCheck {
        if self.engine.is_clock_trusted(now) {
            health_check("clock", true, "trusted".to_owned())
        } else {
            let help = "correct the clock or, if it is right, run `shepherd clock confirm`";
            health_check("clock", false, format!("set back, so nothing can be launched; {help}"))
        }
    }

    pub(super) fn metrics_text(&self) -> String {
        self.metrics.update_transport_counts(&self.clients.counts(), crate::log::lost_line_count());
        let sessions = self.engine.sessions().len();
        self.metrics.session_running.set(i64::try_from(sessions).unwrap_or(i64::MAX));
        self.metrics.entries.set(i64::try_from(self.engine.policy().entries().len()).unwrap_or(i64::MAX));
        self.metrics.encode_text()
    }
}

fn health_check(name: &str, passed: bool, detail: String) -> HealthCheck {
    HealthCheck { name: name.to_owned(), passed, detail }
}
