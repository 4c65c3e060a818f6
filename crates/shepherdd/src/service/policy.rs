//! Another policy (S7.3): read and checked on a thread of its own, applied whole or not at all.

use shepherd_api::{ApiError, ErrorCode, Reply};
use shepherd_core::policy::Watch;
use shepherd_util::Now;

use super::carry_out::Granted;
use super::{RequestAddress, Service};
use crate::policy_source::{self, Rejected, Source};

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
    result: Result<Source, Rejected>,
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
            let source = policy_source::check("the new policy", text.as_bytes())?;
            let failed = |error: std::io::Error| {
                let sentence = format!("can't write {}: {error}", path.display());
                Rejected { faults: vec![sentence.clone()], sentence }
            };
            policy_source::replace(&path, &text).map_err(failed)?;
            Ok(source)
        });
    }

    fn off_the_loop(&self, asked: Asked, read: impl FnOnce() -> Result<Source, Rejected> + Send + 'static) {
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
        let source = self.policy.source.as_ref();
        // While there is none, any file may be the one that is missed.
        if source.is_none_or(|source| source.policy.rules().watch == Watch::Yes) {
            self.read_policy(Asked::Change);
        }
    }

    pub(super) fn policy_read(&mut self, read: PolicyRead, now: Now) {
        let PolicyRead { asked, result } = read;
        match result {
            Ok(source) => self.apply_policy(source, &asked, now),
            Err(rejected) => self.reject_policy(rejected, &asked, now),
        }
    }

    fn apply_policy(&mut self, source: Source, asked: &Asked, now: Now) {
        let unchanged = self.policy.source.as_ref().is_some_and(|known| known.digest == source.digest);
        if matches!(asked, Asked::Change) && unchanged && self.policy.rejected.is_none() {
            return;
        }
        let entry_count = source.policy.entries().len();
        let digest = Some(source.digest.clone());
        self.host.policy_changed(&source.policy);
        let events = self.engine.reload(source.policy.clone(), digest, asked.actor(), now);
        tracing::info!(entry_count, digest = source.digest, "policy applied");
        self.policy.source = Some(source);
        self.policy.rejected = None;
        self.renew_authority(now);
        match asked {
            Asked::Client { to, .. } => {
                let reply = Reply::PolicyApplied { entry_count };
                self.carry_out_for(to.clone(), reply, Granted::Nothing, events, Vec::new(), now);
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
