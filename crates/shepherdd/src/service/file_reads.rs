//! Files are read on a thread beside the loop, one after the other: nobody waits for a disk, and nothing that was read
//! earlier overtakes what was read later.

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

/// How many may wait for a file at a time. Nobody waits long unless the disk hangs, and nobody needs so many.
const MAX_PENDING_READS: usize = 32;

/// When whoever was turned away may ask again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What is to be read when what is being read is.
pub(crate) struct FileReadQueue {
    pending: VecDeque<FileReadRequest>,
    is_reading: bool,
    results: UnboundedSender<FileReadResult>,
}

/// What is to be read.
pub(super) enum FileReadRequest {
    /// A policy.
    Policy {
        /// Who wants it.
        requester: PolicyRequester,
        /// Where it comes from.
        input: PolicyInput,
    },
    /// The system's time zone.
    Zone,
}

/// Where a policy comes from.
pub(super) enum PolicyInput {
    /// The file, as it is by then.
    File,
    /// This text, which replaces the file.
    Text(String),
}

/// What was read.
pub(crate) enum FileReadResult {
    /// A policy.
    Policy(Box<PolicyReadResult>),
    /// The system's time zone.
    Zone(TimeZone),
}

impl FileReadQueue {
    /// Nothing is wanted yet; what was read comes back there.
    pub(crate) fn new(done: UnboundedSender<FileReadResult>) -> Self {
        Self { pending: VecDeque::new(), is_reading: false, results: done }
    }

    /// Whether the same is going to be read anyway: what is still to be read is as new as any.
    fn has_equivalent(&self, wanted: &FileReadRequest) -> bool {
        self.pending.iter().any(|other| match (other, wanted) {
            (FileReadRequest::Zone, FileReadRequest::Zone) => true,
            (
                FileReadRequest::Policy { requester: other, .. },
                FileReadRequest::Policy { requester: asked, .. },
            ) => {
                matches!(
                    (other, asked),
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
    pub(super) fn request_file_read(&mut self, wanted: FileReadRequest) {
        if self.file_reads.has_equivalent(&wanted) {
            return;
        }
        if let FileReadRequest::Policy { requester: PolicyRequester::Client { to, .. }, .. } = &wanted
            && self.file_reads.pending.len() >= MAX_PENDING_READS
        {
            let sentence = "Too many wait for a policy to be read.";
            return self.respond(to, Err(ApiError::rate_limited(sentence, RETRY_AFTER.into())));
        }
        self.file_reads.pending.push_back(wanted);
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
        let Some(wanted) = self.file_reads.pending.pop_front() else { return };
        self.file_reads.is_reading = true;
        let (path, done) = (self.policy.path.clone(), self.file_reads.results.clone());
        let asker = match &wanted {
            FileReadRequest::Policy { requester: asked, .. } => Some(asked.clone()),
            FileReadRequest::Zone => None,
        };
        let started = std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            done.send(read_requested(&path, wanted)).ok();
        });
        if let Err(error) = started {
            let read = match asker {
                Some(asked) => {
                    let result =
                        Err(PolicyRejection::from_sentence(format!("can't read the policy now: {error}")));
                    let (accounts, exposed) = (SystemAccounts::default(), self.policy.exposed.clone());
                    FileReadResult::Policy(Box::new(PolicyReadResult {
                        requester: asked,
                        result,
                        accounts,
                        exposed,
                    }))
                }
                None => FileReadResult::Zone(self.zone.clone()),
            };
            self.file_reads.results.send(read).ok();
        }
    }
}

fn read_requested(path: &Path, wanted: FileReadRequest) -> FileReadResult {
    match wanted {
        FileReadRequest::Policy { requester: asked, input: from } => {
            let result = load_policy_input(path, from);
            let (accounts, exposed) = (read_accounts(), policy_source::policy_exposure_warnings(path));
            FileReadResult::Policy(Box::new(PolicyReadResult { requester: asked, result, accounts, exposed }))
        }
        FileReadRequest::Zone => FileReadResult::Zone(crate::zone::read_system_zone()),
    }
}

fn load_policy_input(path: &Path, from: PolicyInput) -> Result<PolicyWithSource, PolicyRejection> {
    match from {
        PolicyInput::File => policy_source::read_file(path),
        PolicyInput::Text(text) => {
            let loaded = policy_source::check_text("the new policy", text.as_bytes())?;
            policy_source::replace_file(path, &text).map_err(|error| {
                PolicyRejection::from_sentence(format!("can't write {}: {error}", path.display()))
            })?;
            Ok(loaded)
        }
    }
}

/// The accounts of the machine, as far as they can be read.
pub(crate) fn read_accounts() -> SystemAccounts {
    SystemAccounts::read().unwrap_or_else(|error| {
        tracing::warn!(%error, "only numbers in `access` count");
        SystemAccounts::default()
    })
}
