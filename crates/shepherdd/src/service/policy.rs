//! Reloads the policy (S7.3). Another thread reads and checks it; the loop applies it as a whole or not at all.

use shepherd_api::{ApiError, CommandReply};
use shepherd_core::policy::ReloadOnChange;
use shepherd_ipc::SystemAccounts;
use shepherd_util::ClockReading;

use super::file_reads::{FileReadRequest, PolicyInput};
use super::{DaemonService, RequestAddress};
use crate::policy_source::{PolicyWithSource, RejectedPolicyFile};

/// The cause of a reload.
#[derive(Clone, Debug)]
pub(crate) enum PolicyRequester {
    /// SIGHUP.
    Signal,
    /// A change of the file.
    FileChange,
    /// A command of a client, which waits for the reply. The actor is the client's name in the audit log.
    Client { to: RequestAddress, actor: String },
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

/// The origin of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyOrigin {
    /// The policy file.
    File,
    /// A text that a client sent. It replaces the file if it is valid.
    SentText,
}

/// The outcome of reading a policy.
pub(crate) struct PolicyReadResult {
    pub(super) requester: PolicyRequester,
    pub(super) origin: PolicyOrigin,
    pub(super) result: Result<PolicyWithSource, RejectedPolicyFile>,
    /// The reason why no copy of a valid policy could be kept.
    pub(super) copy_fault: Option<String>,
    /// The accounts of the machine at that time.
    pub(super) accounts: SystemAccounts,
    /// Sentences about other users who can change the file.
    pub(super) exposed: Vec<String>,
}

impl DaemonService {
    /// Has the policy file read again on another thread.
    pub(super) fn request_policy_read(&mut self, requester: PolicyRequester) {
        self.request_file_read(FileReadRequest::Policy { requester, input: PolicyInput::File });
    }

    /// Has the policy file replaced by a text, if the text is a valid policy.
    pub(super) fn set_policy(&mut self, text: String, requester: PolicyRequester) {
        self.request_file_read(FileReadRequest::Policy { requester, input: PolicyInput::Text(text) });
    }

    pub(super) fn policy_file_changed(&mut self) {
        // Without a policy, any change may be the missing file.
        if self.policy.source.is_none()
            || self.engine.policy().rules().reload_on_change == ReloadOnChange::Yes
        {
            self.request_policy_read(PolicyRequester::FileChange);
        }
    }

    pub(super) fn handle_policy_read(&mut self, read: PolicyReadResult, now: ClockReading) {
        let PolicyReadResult { requester, origin, result, copy_fault, accounts, exposed } = read;
        if exposed != self.policy.exposed {
            exposed.iter().for_each(|sentence| tracing::warn!("{sentence}"));
            self.policy.exposed = exposed;
        }
        match result {
            Ok(loaded) => {
                copy_fault.iter().for_each(|sentence| tracing::warn!("{sentence}"));
                self.policy.copy_fault = copy_fault;
                self.apply_policy(loaded, &accounts, &requester, now);
            }
            Err(rejected) => self.reject_policy(rejected, origin, &requester, now),
        }
        crate::sys::release_free_memory();
    }

    fn apply_policy(
        &mut self,
        loaded: PolicyWithSource,
        accounts: &SystemAccounts,
        requester: &PolicyRequester,
        now: ClockReading,
    ) {
        let PolicyWithSource { policy, source } = loaded;
        let unchanged = self.policy.source.as_ref().is_some_and(|known| known.digest == source.digest);
        if matches!(requester, PolicyRequester::FileChange) && unchanged && self.policy.rejected.is_none() {
            return;
        }
        let entry_count = policy.entries().len();
        let digest = Some(source.digest.clone());
        self.host.apply_policy(&policy);
        let effects = self.engine.reload(policy, digest, requester.actor(), now);
        tracing::info!(entry_count, digest = source.digest, "policy applied");
        self.policy.source = Some(source);
        self.policy.rejected = None;
        let faults = self.refresh_authority(accounts, now);
        match requester {
            PolicyRequester::Client { to, .. } => {
                self.carry_out_and_reply(effects, to, CommandReply::PolicyApplied { entry_count }, now);
            }
            PolicyRequester::Signal | PolicyRequester::FileChange => self.carry_out(effects, now),
        }
        self.record_access_faults(faults, now);
        self.watch_logins();
        self.check_logins(now);
    }

    fn reject_policy(
        &mut self,
        rejected: RejectedPolicyFile,
        origin: PolicyOrigin,
        requester: &PolicyRequester,
        now: ClockReading,
    ) {
        let RejectedPolicyFile { rejection, since } = rejected;
        let consequence = self.policy.consequence();
        tracing::warn!(faults = ?rejection.faults, "{rejection}; {consequence}");
        let effects = self.engine.reload_failed(rejection.faults.clone(), requester.actor(), now);
        self.carry_out(effects, now);
        if let PolicyRequester::Client { to, .. } = requester {
            let sentence = format!("{rejection}; {consequence}");
            self.respond(to, Err(ApiError::policy_rejected(sentence, rejection.faults.clone())));
        }
        // A text that was sent and refused leaves the file as it is.
        if origin == PolicyOrigin::File {
            let since = self.policy.rejected.as_ref().map_or(since, |earlier| earlier.since);
            self.policy.rejected = Some(RejectedPolicyFile { rejection, since });
        }
    }
}
