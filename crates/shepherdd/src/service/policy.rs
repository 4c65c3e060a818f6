//! Another policy (S7.3): read and checked on a thread of its own, applied whole or not at all.

use shepherd_api::{ApiError, ErrorCode, Reply};
use shepherd_core::policy::Watch;
use shepherd_util::Now;

use super::carry_out::Outcome;
use super::{RequestAddress, Service};
use crate::policy_source::{self, Loaded, Rejected};

/// Who wants it.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// Whoever sent SIGHUP.
    Signal,
    /// The file has changed.
    Change,
    /// A client, who waits for the answer.
    Client {
        /// The client's request.
        to: RequestAddress,
        /// Who that is, for the audit log.
        actor: String,
    },
}

impl Asked {
    fn actor(&self) -> &str {
        match self {
            Self::Signal => "SIGHUP",
            Self::Change => "file change",
            Self::Client { actor, .. } => actor,
        }
    }
}

/// A policy that was read.
pub(crate) struct PolicyRead {
    asked: Asked,
    result: Result<Loaded, Rejected>,
}

impl Service {
    /// Reads the file again, without making anybody wait.
    pub(super) fn read_policy(&mut self, asked: Asked) {
        let path = self.policy.path.clone();
        self.off_the_loop(asked, move || policy_source::read(&path));
    }

    /// Replaces the file by a text that is a policy.
    pub(super) fn set_policy(&mut self, text: String, asked: Asked) {
        let path = self.policy.path.clone();
        self.off_the_loop(asked, move || {
            let loaded = policy_source::check("the new policy", text.as_bytes())?;
            let failed = |error: std::io::Error| {
                let sentence = format!("can't write {}: {error}", path.display());
                Rejected { faults: vec![sentence.clone()], sentence }
            };
            policy_source::replace(&path, &text).map_err(failed)?;
            Ok(loaded)
        });
    }

    fn off_the_loop(&self, asked: Asked, read: impl FnOnce() -> Result<Loaded, Rejected> + Send + 'static) {
        let (reader, refused) = (self.policy.reader.clone(), asked.clone());
        let started = std::thread::Builder::new().name("policy".to_owned()).spawn(move || {
            reader.send(PolicyRead { asked, result: read() }).ok();
        });
        if let Err(error) = started {
            let sentence = format!("can't read the policy now: {error}");
            let result = Err(Rejected { faults: vec![sentence.clone()], sentence });
            self.policy.reader.send(PolicyRead { asked: refused, result }).ok();
        }
    }

    pub(super) fn policy_file_changed(&mut self) {
        // While there is none, any file may be the one that is missed.
        if self.policy.source.is_none() || self.engine.policy().rules().watch == Watch::Yes {
            self.read_policy(Asked::Change);
        }
    }

    pub(super) fn policy_read(&mut self, read: PolicyRead, now: Now) {
        let PolicyRead { asked, result } = read;
        match result {
            Ok(loaded) => self.apply_policy(loaded, &asked, now),
            Err(rejected) => self.reject_policy(rejected, &asked, now),
        }
        crate::sys::give_memory_back();
    }

    fn apply_policy(&mut self, loaded: Loaded, asked: &Asked, now: Now) {
        let Loaded { policy, source } = loaded;
        let unchanged = self.policy.source.as_ref().is_some_and(|known| known.digest == source.digest);
        if matches!(asked, Asked::Change) && unchanged && self.policy.rejected.is_none() {
            return;
        }
        let entry_count = policy.entries().len();
        let digest = Some(source.digest.clone());
        self.host.policy_changed(&policy);
        let events = self.engine.reload(policy, digest, asked.actor(), now);
        tracing::info!(entry_count, digest = source.digest, "policy applied");
        self.policy.source = Some(source);
        self.policy.rejected = None;
        self.renew_authority(now);
        match asked {
            Asked::Client { to, .. } => {
                let outcome = Outcome::new(Reply::PolicyApplied { entry_count }, events);
                self.carry_out_for(to.clone(), outcome, now);
            }
            Asked::Signal | Asked::Change => self.carry_out(events, now),
        }
    }

    fn reject_policy(&mut self, rejected: Rejected, asked: &Asked, now: Now) {
        tracing::warn!(faults = ?rejected.faults, "{rejected}");
        self.engine.reload_failed(rejected.faults.clone(), asked.actor(), now);
        self.carry_out(Vec::new(), now);
        if let Asked::Client { to, .. } = asked {
            let error = ApiError::policy_rejected(rejected.sentence.clone(), rejected.faults.clone());
            self.respond(to, Err(ApiError { code: ErrorCode::PolicyRejected, ..error }));
        }
        self.policy.rejected = Some(rejected);
    }
}
