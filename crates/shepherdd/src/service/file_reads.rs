//! Reads files on a short-lived thread, one after the other, so that the loop waits for no disk and an older read
//! can't overtake a newer one.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::ApiError;
use shepherd_ipc::SystemAccounts;
use shepherd_util::{Clock, SystemClock};
use tokio::sync::mpsc::UnboundedSender;

use super::DaemonService;
use super::policy::{PolicyOrigin, PolicyReadResult, PolicyRequester};
use crate::login_accounts::LoginAccounts;
use crate::policy_copy::PolicyCopy;
use crate::policy_source::{self, POLICY_MODE, PolicyRejection, PolicyWithSource, RejectedPolicyFile};

/// Clients that may wait for a policy at a time. Only a disk that hangs makes as many wait.
const MAX_PENDING_READS: usize = 32;

/// The delay after which a client that was turned away may ask again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reads that are still to come, in order.
pub(crate) struct FileReadQueue {
    pending: VecDeque<FileReadRequest>,
    is_reading: bool,
    results: UnboundedSender<FileReadResult>,
}

pub(super) enum FileReadRequest {
    Policy {
        requester: PolicyRequester,
        input: PolicyInput,
    },
    /// The system's time zone.
    Zone,
    /// The users and groups of the machine.
    Accounts,
    /// Not a read, but in the same order: the accounts of an older policy must not replace those of a newer one.
    SaveLoginAccounts(LoginAccounts),
}

/// The source of a policy.
pub(super) enum PolicyInput {
    /// The policy file.
    File,
    /// A text that replaces the policy file.
    Text(String),
}

impl PolicyInput {
    fn origin(&self) -> PolicyOrigin {
        match self {
            Self::File => PolicyOrigin::File,
            Self::Text(_) => PolicyOrigin::SentText,
        }
    }
}

pub(crate) enum FileReadResult {
    Policy(Box<PolicyReadResult>),
    Zone(TimeZone),
    /// `None` if the accounts could not be read.
    Accounts(Option<SystemAccounts>),
    /// The reason why the accounts could not be saved, if they could not.
    LoginAccountsSaved(Result<(), String>),
}

impl FileReadQueue {
    pub(crate) fn new(results: UnboundedSender<FileReadResult>) -> Self {
        Self { pending: VecDeque::new(), is_reading: false, results }
    }

    /// Returns whether an equivalent read is still to come: it will see the same file.
    fn has_equivalent(&self, request: &FileReadRequest) -> bool {
        self.pending.iter().any(|other| match (other, request) {
            (FileReadRequest::Zone, FileReadRequest::Zone)
            | (FileReadRequest::Accounts, FileReadRequest::Accounts) => true,
            (FileReadRequest::Policy { requester: other, .. }, FileReadRequest::Policy { requester, .. }) => {
                matches!(
                    (other, requester),
                    (PolicyRequester::Signal, PolicyRequester::Signal)
                        | (PolicyRequester::FileChange, PolicyRequester::FileChange)
                )
            }
            (
                FileReadRequest::Zone
                | FileReadRequest::Accounts
                | FileReadRequest::Policy { .. }
                | FileReadRequest::SaveLoginAccounts(_),
                _,
            ) => false,
        })
    }
}

impl DaemonService {
    pub(super) fn request_file_read(&mut self, request: FileReadRequest) {
        if self.file_reads.has_equivalent(&request) {
            return;
        }
        if let FileReadRequest::Policy { requester: PolicyRequester::Client { to, .. }, .. } = &request
            && self.file_reads.pending.len() >= MAX_PENDING_READS
        {
            let sentence = "Too many clients are waiting for the policy to be read.";
            return self.respond(to, Err(ApiError::rate_limited(sentence, RETRY_AFTER.into())));
        }
        self.file_reads.pending.push_back(request);
        self.start_next_read();
    }

    pub(super) fn handle_file_read(&mut self, read: FileReadResult, now: shepherd_util::ClockReading) {
        self.file_reads.is_reading = false;
        match read {
            FileReadResult::Policy(read) => self.handle_policy_read(*read, now),
            FileReadResult::Zone(zone) => self.apply_time_zone(zone, now),
            FileReadResult::Accounts(accounts) => {
                accounts.into_iter().for_each(|accounts| self.apply_accounts(&accounts, now));
            }
            FileReadResult::LoginAccountsSaved(outcome) => self.policy.login_fault = outcome.err(),
        }
        self.start_next_read();
    }

    fn start_next_read(&mut self) {
        if self.file_reads.is_reading {
            return;
        }
        let Some(request) = self.file_reads.pending.pop_front() else { return };
        self.file_reads.is_reading = true;
        let (path, copy) = (self.policy.path.clone(), self.policy.copy.clone());
        let data = self.data_folder.clone();
        let results = self.file_reads.results.clone();
        let policy_request = match &request {
            FileReadRequest::Policy { requester, input } => Some((requester.clone(), input.origin())),
            FileReadRequest::Zone | FileReadRequest::Accounts | FileReadRequest::SaveLoginAccounts(_) => None,
        };
        let unread = match &request {
            FileReadRequest::Accounts => FileReadResult::Accounts(None),
            FileReadRequest::Zone | FileReadRequest::Policy { .. } => FileReadResult::Zone(self.zone.clone()),
            FileReadRequest::SaveLoginAccounts(_) => {
                FileReadResult::LoginAccountsSaved(Err("could not start a thread".to_owned()))
            }
        };
        let started = std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            results.send(read_requested((&path, &data), &copy, request)).ok();
        });
        if let Err(error) = started {
            let read = match policy_request {
                Some((requester, origin)) => {
                    let sentence = format!("could not read the policy: {error}");
                    let rejection = PolicyRejection::from_sentence(sentence);
                    let since = self.clock.now().wall;
                    FileReadResult::Policy(Box::new(PolicyReadResult {
                        requester,
                        origin,
                        result: Err(RejectedPolicyFile { rejection, since }),
                        copy_fault: None,
                        accounts: SystemAccounts::default(),
                        exposed: self.policy.exposed.clone(),
                    }))
                }
                None => unread,
            };
            self.file_reads.results.send(read).ok();
        }
    }
}

fn read_requested(
    (path, data): (&Path, &Path),
    copy: &PolicyCopy,
    request: FileReadRequest,
) -> FileReadResult {
    match request {
        FileReadRequest::Policy { requester, input } => {
            let origin = input.origin();
            let result = load_policy_input(path, input);
            let now = SystemClock.now().wall;
            let result = result.map_err(|rejection| {
                let since = match origin {
                    PolicyOrigin::File => copy.record_rejection(now),
                    PolicyOrigin::SentText => now,
                };
                RejectedPolicyFile { rejection, since }
            });
            let copy_fault = result.as_ref().ok().and_then(|loaded| copy.keep(&loaded.source, now).err());
            FileReadResult::Policy(Box::new(PolicyReadResult {
                requester,
                origin,
                result,
                copy_fault: copy_fault.map(|error| error.to_string()),
                accounts: read_accounts(),
                exposed: policy_source::policy_exposure_warnings(path),
            }))
        }
        FileReadRequest::Zone => FileReadResult::Zone(crate::zone::read_system_zone()),
        FileReadRequest::Accounts => {
            let accounts = SystemAccounts::read();
            FileReadResult::Accounts(
                accounts.inspect_err(|error| tracing::warn!("could not read the accounts: {error}")).ok(),
            )
        }
        FileReadRequest::SaveLoginAccounts(accounts) => {
            let outcome = accounts.save(data).map_err(|error| {
                format!(
                    "could not write down whose log-ins are limited: {error}; while Shepherd doesn't run, everybody can \
                     log in"
                )
            });
            FileReadResult::LoginAccountsSaved(outcome)
        }
    }
}

fn load_policy_input(path: &Path, input: PolicyInput) -> Result<PolicyWithSource, PolicyRejection> {
    match input {
        PolicyInput::File => policy_source::read_file(path),
        PolicyInput::Text(text) => {
            let loaded = policy_source::check_text("the new policy", text.as_bytes())?;
            policy_source::replace_file(path, &text, POLICY_MODE).map_err(|error| {
                PolicyRejection::from_sentence(format!("could not write {}: {error}", path.display()))
            })?;
            Ok(loaded)
        }
    }
}

/// Reads the accounts of the machine; there are none if that fails.
pub(crate) fn read_accounts() -> SystemAccounts {
    SystemAccounts::read().unwrap_or_else(|error| {
        tracing::warn!("could not read the accounts, so only numeric ids in `access` apply: {error}");
        SystemAccounts::default()
    })
}
