//! Another policy (S7.3): read and checked beside the loop, applied whole or not at all.

use shepherd_api::{ApiError, ErrorCode, Reply};
use shepherd_core::policy::Watch;
use shepherd_ipc::Accounts;
use shepherd_util::Now;

use super::carry_out::Outcome;
use super::files::{From, Wanted};
use super::{RequestAddress, Service};
use crate::policy_source::{Loaded, Rejected};

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
    pub(super) asked: Asked,
    pub(super) result: Result<Loaded, Rejected>,
    /// The accounts of the machine at that time.
    pub(super) accounts: Accounts,
    /// Who else can change the file, in sentences.
    pub(super) exposed: Vec<String>,
}

impl Service {
    /// Reads the file again, without making anybody wait.
    pub(super) fn read_policy(&mut self, asked: Asked) {
        self.want(Wanted::Policy { asked, from: From::File });
    }

    /// Replaces the file by a text that is a policy.
    pub(super) fn set_policy(&mut self, text: String, asked: Asked) {
        self.want(Wanted::Policy { asked, from: From::Text(text) });
    }

    pub(super) fn policy_file_changed(&mut self) {
        // While there is none, any file may be the one that is missed.
        if self.policy.source.is_none() || self.engine.policy().rules().watch == Watch::Yes {
            self.read_policy(Asked::Change);
        }
    }

    pub(super) fn policy_read(&mut self, read: PolicyRead, now: Now) {
        let PolicyRead { asked, result, accounts, exposed } = read;
        if exposed != self.policy.exposed {
            exposed.iter().for_each(|sentence| tracing::warn!("{sentence}"));
            self.policy.exposed = exposed;
        }
        match result {
            Ok(loaded) => self.apply_policy(loaded, &accounts, &asked, now),
            Err(rejected) => self.reject_policy(rejected, &asked, now),
        }
        crate::sys::give_memory_back();
    }

    fn apply_policy(&mut self, loaded: Loaded, accounts: &Accounts, asked: &Asked, now: Now) {
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
        self.renew_authority(accounts, now);
        match asked {
            Asked::Client { to, .. } => {
                let outcome = Outcome::new(Reply::PolicyApplied { entry_count }, events);
                self.carry_out_for(to.clone(), outcome, now);
            }
            Asked::Signal | Asked::Change => self.carry_out(events, now),
        }
    }

    fn reject_policy(&mut self, rejected: Rejected, asked: &Asked, now: Now) {
        let kept = match self.policy.source {
            Some(_) => "the one before stays in force",
            None => "there is none before it, and everything stays refused",
        };
        tracing::warn!(faults = ?rejected.faults, "{rejected}; {kept}");
        self.engine.reload_failed(rejected.faults.clone(), asked.actor(), now);
        self.carry_out(Vec::new(), now);
        if let Asked::Client { to, .. } = asked {
            let sentence = format!("{rejected}; {kept}");
            let error = ApiError::policy_rejected(sentence, rejected.faults.clone());
            self.respond(to, Err(ApiError { code: ErrorCode::PolicyRejected, ..error }));
        }
        self.policy.rejected = Some(rejected);
    }
}
