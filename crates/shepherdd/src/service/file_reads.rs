//! Reads files on a short-lived thread, one after the other, so that the loop waits for no disk and an older read
//! can't overtake a newer one.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::ApiError;
use shepherd_ipc::SystemAccounts;
use tokio::sync::mpsc::UnboundedSender;

use super::DaemonService;
use super::policy::{PolicyReadResult, PolicyRequester};
use crate::policy_source::{self, PolicyRejection, PolicyWithSource};

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
}

/// The source of a policy.
pub(super) enum PolicyInput {
    /// The policy file.
    File,
    /// A text that replaces the policy file.
    Text(String),
}

pub(crate) enum FileReadResult {
    Policy(Box<PolicyReadResult>),
    Zone(TimeZone),
}

impl FileReadQueue {
    pub(crate) fn new(results: UnboundedSender<FileReadResult>) -> Self {
        Self { pending: VecDeque::new(), is_reading: false, results }
    }

    /// Returns whether an equivalent read is still to come: it will see the same file.
    fn has_equivalent(&self, request: &FileReadRequest) -> bool {
        self.pending.iter().any(|other| match (other, request) {
            (FileReadRequest::Zone, FileReadRequest::Zone) => true,
            (FileReadRequest::Policy { requester: other, .. }, FileReadRequest::Policy { requester, .. }) => {
                matches!(
                    (other, requester),
                    (PolicyRequester::Signal, PolicyRequester::Signal)
                        | (PolicyRequester::FileChange, PolicyRequester::FileChange)
                )
            }
            (FileReadRequest::Zone, FileReadRequest::Policy { .. })
            | (FileReadRequest::Policy { .. }, FileReadRequest::Zone) => false,
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
        }
        self.start_next_read();
    }

    fn start_next_read(&mut self) {
        if self.file_reads.is_reading {
            return;
        }
        let Some(request) = self.file_reads.pending.pop_front() else { return };
        self.file_reads.is_reading = true;
        let (path, results) = (self.policy.path.clone(), self.file_reads.results.clone());
        let requester = match &request {
            FileReadRequest::Policy { requester, .. } => Some(requester.clone()),
            FileReadRequest::Zone => None,
        };
        let started = std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            results.send(read_requested(&path, request)).ok();
        });
        if let Err(error) = started {
            let read = match requester {
                Some(requester) => {
                    let sentence = format!("could not read the policy: {error}");
                    let result = Err(PolicyRejection::from_sentence(sentence));
                    let (accounts, exposed) = (SystemAccounts::default(), self.policy.exposed.clone());
                    let read = PolicyReadResult { requester, result, accounts, exposed };
                    FileReadResult::Policy(Box::new(read))
                }
                None => FileReadResult::Zone(self.zone.clone()),
            };
            self.file_reads.results.send(read).ok();
        }
    }
}

fn read_requested(path: &Path, request: FileReadRequest) -> FileReadResult {
    match request {
        FileReadRequest::Policy { requester, input } => {
            let result = load_policy_input(path, input);
            let (accounts, exposed) = (read_accounts(), policy_source::policy_exposure_warnings(path));
            FileReadResult::Policy(Box::new(PolicyReadResult { requester, result, accounts, exposed }))
        }
        FileReadRequest::Zone => FileReadResult::Zone(crate::zone::read_system_zone()),
    }
}

fn load_policy_input(path: &Path, input: PolicyInput) -> Result<PolicyWithSource, PolicyRejection> {
    match input {
        PolicyInput::File => policy_source::read_file(path),
        PolicyInput::Text(text) => {
            let loaded = policy_source::check_text("the new policy", text.as_bytes())?;
            policy_source::replace_file(path, &text).map_err(|error| {
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
