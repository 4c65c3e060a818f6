//! The operator's permanent approvals. Each one is for exactly one call, in one workspace, under one set of
//! rules (C7.7).
//!
//! Every approval is a file in a folder of the home that no tool can reach. The name of the file is the hash
//! of everything that was approved, so another call, workspace, rule or meaning of the same line has another
//! name and is asked about again. An approval only answers questions of the gate; denied calls stay denied.

mod plan_json;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use collieclaw_gate::ApprovalQuestion;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::receipts::hash_json;

/// The folder of approvals.
#[derive(Debug, Clone)]
pub struct ApprovalStore {
    folder: PathBuf,
}

/// Everything that an approval depends on. If any part differs, the operator is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSubject {
    /// The version of this format; 0 in files that were written before it had a number.
    #[serde(default)]
    version: u32,
    pub tool: String,
    /// The hash of the tool's description. A tool with a changed description needs a new approval.
    pub tool_hash: String,
    pub arguments: Value,
    pub workspace: PathBuf,
    /// The hash of the rules at the time of the approval.
    pub policy_hash: String,
    /// The verdict of the gate.
    pub verdict: Value,
    /// The hash of what a shell line would run, with its patterns expanded.
    pub plan_hash: String,
}

/// A permanent approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// `approval-` followed by 32 hex digits of the subject's hash.
    pub id: String,
    pub granted: Timestamp,
    pub subject: ApprovalSubject,
}

/// An entry of the approval folder.
#[derive(Debug)]
pub struct ListedApproval {
    pub id: String,
    /// The approval, or the reason why it isn't trusted.
    pub approval: Result<Approval, ApprovalError>,
}

/// An error of the approval store. The operator is asked as usual.
#[derive(Debug, Error)]
pub enum ApprovalError {
    #[error("could not {step} {}", .path.display())]
    File {
        /// The failed operation, as a verb.
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Other users could have written the file.
    #[error("{} is not your own file with mode 0600, so its approval doesn't count", .path.display())]
    UntrustedOwner {
        /// The file or folder.
        path: PathBuf,
    },
    /// The content doesn't match the name.
    #[error("{} was changed or damaged, so its approval doesn't count", .path.display())]
    Changed { path: PathBuf },
    /// The file has the format of another version.
    #[error("{} was written by another version of CollieClaw, so you will be asked again", .path.display())]
    OtherVersion { path: PathBuf },
    #[error("no such approval `{id}`")]
    Unknown { id: String },
}

const PREFIX: &str = "approval-";

/// The version of the format. A new version changes the names of all approvals, so every call is asked about
/// again.
const SUBJECT_VERSION: u32 = 2;

/// The maximum size of a file. Larger calls are asked about each time.
const MAX_FILE_BYTES: usize = 1 << 20;

impl ApprovalSubject {
    /// Creates the subject of a question of the gate, or `None` if the call can't be remembered.
    #[must_use]
    pub fn from_question(question: &ApprovalQuestion, call: &ApprovalCall<'_>) -> Option<Self> {
        let plan_hash =
            question.plan().map(|plan| hash_json(&plan_json::plan_to_json(plan.lists()))).transpose().ok()?;
        let subject = Self {
            version: SUBJECT_VERSION,
            tool: call.tool.to_owned(),
            tool_hash: call.tool_hash.clone(),
            arguments: call.arguments.clone(),
            workspace: call.workspace.to_owned(),
            policy_hash: call.policy_hash.to_owned(),
            verdict: serde_json::to_value(question.verdict()).ok()?,
            plan_hash: plan_hash.unwrap_or_default(),
        };
        let length = serde_json::to_vec(&subject).ok()?.len();
        (length < MAX_FILE_BYTES / 2).then_some(subject)
    }

    /// Returns the id of an approval of this subject.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        let hash = hash_json(&serde_json::to_value(self).ok()?).ok()?;
        hash.get(..32).map(|digits| format!("{PREFIX}{digits}"))
    }
}

/// The parts of a call that an approval depends on.
#[derive(Debug, Clone)]
pub struct ApprovalCall<'s> {
    pub tool: &'s str,
    /// The hash of the tool's description.
    pub tool_hash: String,
    pub arguments: &'s Value,
    pub workspace: &'s Path,
    pub policy_hash: &'s str,
}

impl ApprovalStore {
    /// Creates a store in a folder of the home. The folder doesn't have to exist.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the approval of this subject, if there is one.
    ///
    /// # Errors
    /// Fails if there is an approval that isn't trusted.
    pub fn find(&self, subject: &ApprovalSubject) -> Result<Option<Approval>, ApprovalError> {
        let Some(id) = subject.id() else { return Ok(None) };
        match self.read(&id) {
            Err(ApprovalError::Unknown { .. }) => Ok(None),
            Ok(approval) if approval.subject != *subject => {
                Err(ApprovalError::Changed { path: self.path(&id) })
            }
            read => read.map(Some),
        }
    }

    /// Stores an approval. An existing approval of the same subject is replaced.
    ///
    /// # Errors
    /// Fails if the approval can't be stored.
    pub fn remember(&self, subject: ApprovalSubject) -> Result<Approval, ApprovalError> {
        let unnamed = || ApprovalError::Unknown { id: subject.tool.clone() };
        let id = subject.id().ok_or_else(unnamed)?;
        let path = self.path(&id);
        let failed = |step| file_error(step, &path);
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file_error("create", &self.folder)(error));
            }
            _ => self.check_folder_ownership()?,
        }
        let approval = Approval { id, granted: Timestamp::now(), subject };
        let text = serde_json::to_vec_pretty(&approval).map_err(|error| failed("write")(error.into()))?;
        let draft = self.folder.join(crate::ids::random_id("new"));
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(&self.folder)?.sync_all()
        })();
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.map_err(failed("write")).map(|()| approval)
    }

    /// Returns all approvals with their ids. Untrusted ones have the reason instead.
    ///
    /// # Errors
    /// Fails if the folder can't be read.
    pub fn list(&self) -> Result<Vec<ListedApproval>, ApprovalError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(file_error("list", &self.folder))?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(file_error("list", &self.folder))?.file_name();
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned));
        }
        ids.sort();
        Ok(ids.into_iter().map(|id| ListedApproval { approval: self.read(&id), id }).collect())
    }

    /// Revokes an approval.
    ///
    /// # Errors
    /// Fails if there is no such approval, or if it can't be removed.
    pub fn revoke(&self, id: &str) -> Result<(), ApprovalError> {
        let is_name =
            !id.is_empty() && id.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        let unknown = || ApprovalError::Unknown { id: id.to_owned() };
        if !is_name {
            return Err(unknown());
        }
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unknown()),
            removed => removed.map_err(file_error("remove", &path))?,
        }
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(file_error("sync", &self.folder))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id).with_extension("json")
    }

    fn read(&self, id: &str) -> Result<Approval, ApprovalError> {
        let path = self.path(id);
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let opened = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(&path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ApprovalError::Unknown { id: id.to_owned() },
            _ if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) => {
                ApprovalError::UntrustedOwner { path: path.clone() }
            }
            _ => file_error("open", &path)(source),
        })?;
        self.check_folder_ownership()?;
        let metadata = file.metadata().map_err(file_error("inspect", &path))?;
        if !metadata.is_file() || metadata.mode() & 0o7777 != 0o600 || metadata.uid() != effective_uid() {
            return Err(ApprovalError::UntrustedOwner { path });
        }
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES as u64).read_to_end(&mut text).map_err(file_error("read", &path))?;
        let approval: Option<Approval> = serde_json::from_slice(&text).ok();
        if approval.as_ref().is_some_and(|approval| approval.subject.version != SUBJECT_VERSION) {
            return Err(ApprovalError::OtherVersion { path });
        }
        // The id is the hash of the content.
        let is_intact =
            |approval: &Approval| approval.id == id && approval.subject.id().as_deref() == Some(id);
        approval.filter(is_intact).ok_or(ApprovalError::Changed { path })
    }

    fn check_folder_ownership(&self) -> Result<(), ApprovalError> {
        let metadata = fs::symlink_metadata(&self.folder).map_err(file_error("inspect", &self.folder))?;
        let is_ours = metadata.is_dir() && metadata.mode() & 0o022 == 0 && metadata.uid() == effective_uid();
        if is_ours { Ok(()) } else { Err(ApprovalError::UntrustedOwner { path: self.folder.clone() }) }
    }
}

fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn file_error(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ApprovalError {
    let path = path.to_owned();
    move |source| ApprovalError::File { step, path, source }
}
