//! What the operator has said yes to for good: exactly this call, in this workspace, under these rules (C7.7).
//!
//! A file for each, in a folder of the home that no tool can reach. Its name is the hash of all that the yes was about,
//! so that another call, another workspace, another rule or another meaning of the same line is another name, and asks.
//! It answers only what the gate would ask; what the gate denies stays denied.

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

/// All that a yes is about. A difference in any of it is another question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSubject {
    /// How the rest is written; a file of before there was a number has none.
    #[serde(default)]
    version: u32,
    /// The tool.
    pub tool: String,
    /// What the tool says of itself: one that has changed is another.
    pub tool_hash: String,
    /// Its arguments, all of them.
    pub arguments: Value,
    /// Where.
    pub workspace: PathBuf,
    /// The rules that were in force.
    pub policy_hash: String,
    /// What the gate said.
    pub verdict: Value,
    /// What a shell line would run, with its patterns resolved.
    pub plan_hash: String,
}

/// A yes that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// `approval-` and 32 hex digits of the subject's hash.
    pub id: String,
    /// When it was given.
    pub granted: Timestamp,
    /// To what.
    pub subject: ApprovalSubject,
}

/// What stands in the folder.
#[derive(Debug)]
pub struct ListedApproval {
    /// Its name.
    pub id: String,
    /// What it is, or why it can't be trusted.
    pub approval: Result<Approval, ApprovalError>,
}

/// Why an approval can't be used. Then the operator is asked as ever.
#[derive(Debug, Error)]
pub enum ApprovalError {
    /// The system refused.
    #[error("can't {step} {}", .path.display())]
    File {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others could have written it, or did.
    #[error("{} is not a file of yours with mode 0600, so nothing is approved by it", .path.display())]
    UntrustedOwner {
        /// The file or folder.
        path: PathBuf,
    },
    /// It is not what its name says.
    #[error("{} was changed or damaged, so nothing is approved by it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// It was kept by a program that wrote such things in other words.
    #[error("{} was kept by another version of CollieClaw: you are asked again", .path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
    },
    /// There is none of this name.
    #[error("there is no approval `{id}`")]
    Unknown {
        /// The name.
        id: String,
    },
}

const PREFIX: &str = "approval-";

/// Of what a yes is about. With another one every approval has another name, so whoever was asked is asked again.
const SUBJECT_VERSION: u32 = 2;

/// Of a file. A call with more than this is asked about each time.
const MAX_FILE_BYTES: usize = 1 << 20;

impl ApprovalSubject {
    /// Of a question that the gate asks. `None` for what can't be remembered.
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

    /// The name of the approval of exactly this.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        let hash = hash_json(&serde_json::to_value(self).ok()?).ok()?;
        hash.get(..32).map(|digits| format!("{PREFIX}{digits}"))
    }
}

/// A call, as far as a yes to it is bound to it.
#[derive(Debug, Clone)]
pub struct ApprovalCall<'s> {
    /// The tool.
    pub tool: &'s str,
    /// The hash of what it says of itself.
    pub tool_hash: String,
    /// Its arguments.
    pub arguments: &'s Value,
    /// Where.
    pub workspace: &'s Path,
    /// The hash of the rules.
    pub policy_hash: &'s str,
}

impl ApprovalStore {
    /// In a folder of the home, which need not be there.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The approval of exactly this, if there is one.
    ///
    /// # Errors
    /// When there is one that can't be trusted.
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

    /// Remembers a yes. Whoever was remembered before stays as it was.
    ///
    /// # Errors
    /// When it can't be kept.
    pub fn remember(&self, subject: ApprovalSubject) -> Result<Approval, ApprovalError> {
        let unnamed = || ApprovalError::Unknown { id: subject.tool.clone() };
        let id = subject.id().ok_or_else(unnamed)?;
        let path = self.path(&id);
        let failed = |step| file_error(step, &path);
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(file_error("make", &self.folder)(error));
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

    /// All of them, each with its name; those that can't be trusted say why.
    ///
    /// # Errors
    /// When the folder can't be read.
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

    /// Takes a yes back.
    ///
    /// # Errors
    /// When there is none, or it can't be removed.
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
        folder.map_err(file_error("make durable", &self.folder))
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
            _ if fs::symlink_metadata(&path).is_ok_and(|known| known.is_symlink()) => {
                ApprovalError::UntrustedOwner { path: path.clone() }
            }
            _ => file_error("open", &path)(source),
        })?;
        self.check_folder_ownership()?;
        let known = file.metadata().map_err(file_error("look at", &path))?;
        if !known.is_file() || known.mode() & 0o7777 != 0o600 || known.uid() != effective_uid() {
            return Err(ApprovalError::UntrustedOwner { path });
        }
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES as u64).read_to_end(&mut text).map_err(file_error("read", &path))?;
        let approval: Option<Approval> = serde_json::from_slice(&text).ok();
        if approval.as_ref().is_some_and(|approval| approval.subject.version != SUBJECT_VERSION) {
            return Err(ApprovalError::OtherVersion { path });
        }
        // Its name is the hash of what is in it.
        let sound = |approval: &Approval| approval.id == id && approval.subject.id().as_deref() == Some(id);
        approval.filter(sound).ok_or(ApprovalError::Changed { path })
    }

    fn check_folder_ownership(&self) -> Result<(), ApprovalError> {
        let known = fs::symlink_metadata(&self.folder).map_err(file_error("look at", &self.folder))?;
        let ours = known.is_dir() && known.mode() & 0o022 == 0 && known.uid() == effective_uid();
        if ours { Ok(()) } else { Err(ApprovalError::UntrustedOwner { path: self.folder.clone() }) }
    }
}

fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn file_error(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ApprovalError {
    let path = path.to_owned();
    move |source| ApprovalError::File { step, path, source }
}
