//! Another policy (S7.3): read and checked beside the loop, applied whole or not at all.

use shepherd_api::{ApiError, CommandReply, ErrorCode};
use shepherd_core::policy::ReloadOnChange;
use shepherd_ipc::SystemAccounts;
use shepherd_util::ClockReading;

use super::effects::CommandEffects;
use super::file_reads::{FileReadRequest, PolicyInput};
use super::{DaemonService, RequestAddress};
use crate::policy_source::{PolicyRejection, PolicyWithSource};

/// Who wants it.
#[derive(Clone, Debug)]
pub(crate) enum PolicyRequester {
    /// Whoever sent SIGHUP.
    Signal,
    /// The file has changed.
    FileChange,
    /// A client, who waits for the answer.
    Client {
        /// The client's request.
        to: RequestAddress,
        /// Who that is, for the audit log.
        actor: String,
    },
}

impl PolicyRequester {
    fn actor(&self) -> &str {
        match self {
            Self::Signal => "SIGHUP",
            Self::FileChange => "file change",
            Self::Client { actor, .. } => actor,
        }
    }
}

/// A policy that was read.
pub(crate) struct PolicyReadResult {
    pub(super) requester: PolicyRequester,
    pub(super) result: Result<PolicyWithSource, PolicyRejection>,
    /// The accounts of the machine at that time.
    pub(super) accounts: SystemAccounts,
    /// Who else can change the file, in sentences.
    pub(super) exposed: Vec<String>,
}

impl DaemonService {
    /// Reads the file again, without making anybody wait.
    pub(super) fn request_policy_read(&mut self, asked: PolicyRequester) {
        self.request_file_read(FileReadRequest::Policy { requester: asked, input: PolicyInput::File });
    }

    /// Replaces the file by a text that is a policy.
    pub(super) fn set_policy(&mut self, text: String, asked: PolicyRequester) {
        self.request_file_read(FileReadRequest::Policy { requester: asked, input: PolicyInput::Text(text) });
    }

    pub(super) fn policy_file_changed(&mut self) {
        // While there is none, any file may be the one that is missed.
        if self.policy.source.is_none()
            || self.engine.policy().rules().reload_on_change == ReloadOnChange::Yes
        {
            self.request_policy_read(PolicyRequester::FileChange);
        }
    }

    pub(super) fn handle_policy_read(&mut self, read: PolicyReadResult, now: ClockReading) {
        let PolicyReadResult { requester: asked, result, accounts, exposed } = read;
        if exposed != self.policy.exposed {
            exposed.iter().for_each(|sentence| tracing::warn!("{sentence}"));
            self.policy.exposed = exposed;
        }
        match result {
            Ok(loaded) => self.apply_policy(loaded, &accounts, &asked, now),
            Err(rejected) => self.reject_policy(rejected, &asked, now),
        }
        crate::sys::release_free_memory();
    }

    fn apply_policy(
        &mut self,
        loaded: PolicyWithSource,
        accounts: &SystemAccounts,
        asked: &PolicyRequester,
        now: ClockReading,
    ) {
        let PolicyWithSource { policy, source } = loaded;
        let unchanged = self.policy.source.as_ref().is_some_and(|known| known.digest == source.digest);
        if matches!(asked, PolicyRequester::FileChange) && unchanged && self.policy.rejected.is_none() {
            return;
        }
        let entry_count = policy.entries().len();
        let digest = Some(source.digest.clone());
        self.host.apply_policy(&policy);
        let events = self.engine.reload(policy, digest, asked.actor(), now);
        tracing::info!(entry_count, digest = source.digest, "policy applied");
        self.policy.source = Some(source);
        self.policy.rejected = None;
        self.refresh_authority(accounts, now);
        match asked {
            PolicyRequester::Client { to, .. } => {
                let outcome = CommandEffects::new(CommandReply::PolicyApplied { entry_count }, events);
                self.commit_effects(to.clone(), outcome, now);
            }
            PolicyRequester::Signal | PolicyRequester::FileChange => self.apply_events(events, now),
        }
    }

    fn reject_policy(&mut self, rejected: PolicyRejection, asked: &PolicyRequester, now: ClockReading) {
        let kept = match self.policy.source {
            Some(_) => "the one before stays in force",
            None => "there is none before it, and everything stays refused",
        };
        tracing::warn!(faults = ?rejected.faults, "{rejected}; {kept}");
        self.engine.reload_failed(rejected.faults.clone(), asked.actor(), now);
        self.apply_events(Vec::new(), now);
        if let PolicyRequester::Client { to, .. } = asked {
            let sentence = format!("{rejected}; {kept}");
            let error = ApiError::policy_rejected(sentence, rejected.faults.clone());
            self.respond(to, Err(ApiError { code: ErrorCode::PolicyRejected, ..error }));
        }
        self.policy.rejected = Some(rejected);
    }
}
