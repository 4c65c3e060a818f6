//! The receipts, and whether their chain holds: checked again only when the files have changed.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use ward_ledger::verify::{Authenticity, Completeness, VerifyError};

use crate::config::ReceiptFile;
use crate::home::Home;
use crate::receipts::{self, Receipt, ReceiptError, Signing};

/// The log, and what was last known of it.
pub(super) struct Chain {
    path: Option<PathBuf>,
    signing: Signing,
    known: Mutex<Option<Known>>,
}

/// What is known of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct State {
    /// Every link holds, and the end is not cut.
    pub(super) valid: bool,
    /// How many receipts there are.
    pub(super) records: u64,
    /// Which receipt breaks the chain, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) broken_at: Option<u64>,
    /// In words.
    pub(super) detail: String,
}

struct Known {
    files: Vec<Trace>,
    state: State,
    checked: Instant,
    took: Duration,
}

/// What a change leaves on a file: its number, its length, and when it last changed.
type Trace = (std::ffi::OsString, u64, u64, i64, i64);

/// A check may take this part of the time at most: a log that is long and grows is not read without an end.
const SHARE: u32 = 20;

impl Chain {
    pub(super) fn new(receipts: &ReceiptFile, home: &Home) -> Self {
        Self {
            path: receipts.enabled.then(|| receipts.path.clone()),
            signing: receipts.signing(home),
            known: Mutex::default(),
        }
    }

    /// Whether the chain holds. It reads the whole log when that has changed, so it belongs on a thread that may wait.
    pub(super) fn state(&self) -> State {
        let Some(path) = &self.path else {
            return State {
                valid: true,
                records: 0,
                broken_at: None,
                detail: "receipts are switched off".to_owned(),
            };
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let files = traces(path);
        if let Some(known) = &*known
            && (known.files == files || known.checked.elapsed() < known.took * SHARE)
        {
            return known.state.clone();
        }
        let started = Instant::now();
        let state = checked(path, &self.signing);
        let took = started.elapsed();
        *known = Some(Known { files, state: state.clone(), checked: Instant::now(), took });
        state
    }

    /// The last receipts before a number, newest first.
    pub(super) fn page(&self, before: Option<u64>, limit: usize) -> Result<Vec<Receipt>, ReceiptError> {
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return Ok(Vec::new()) };
        let records = ward_ledger::read(path, &receipts::format())
            .map_err(|error| ReceiptError::Read(Box::new(error)))?;
        let mut last = VecDeque::new();
        // What is no record is for the check to name.
        for entry in records.flatten().filter(|entry| before.is_none_or(|before| entry.sequence < before)) {
            last.push_front(Receipt { record: entry.record });
            last.truncate(limit);
        }
        Ok(last.into())
    }
}

/// A key that can't be used is no reason not to look at the links.
fn checked(path: &std::path::Path, signing: &Signing) -> State {
    let key = signing.key();
    let report =
        match ward_ledger::verify(path, &receipts::format(), key.as_ref().ok().and_then(Option::as_ref)) {
            Err(VerifyError::NoLog { .. }) => {
                return State {
                    valid: true,
                    records: 0,
                    broken_at: None,
                    detail: "no receipts yet".to_owned(),
                };
            }
            Err(error) => {
                return State { valid: false, records: 0, broken_at: None, detail: error.to_string() };
            }
            Ok(report) => report,
        };
    let complete = matches!(report.completeness, Completeness::Complete { .. });
    let ours = key.is_ok()
        && !matches!(report.authenticity, Authenticity::NoKey { .. } | Authenticity::NotSigned { .. });
    let broken_at = report.broken.as_ref().map(|broken| broken.sequence);
    let detail = match (broken_at, ours, complete) {
        (Some(at), ..) => format!("the chain is invalid at receipt {at}"),
        (None, false, _) => "every link holds, but no key of ours has signed them".to_owned(),
        (None, true, true) => "every link holds, and the head vouches for the end".to_owned(),
        (None, true, false) => "every link holds, but nothing vouches for the end".to_owned(),
    };
    State { valid: report.is_sound() && ours && complete, records: report.records, broken_at, detail }
}

/// Of the log, its head and its segments.
fn traces(path: &std::path::Path) -> Vec<Trace> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ours =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()));
    let mut traces: Vec<Trace> = ours
        .filter_map(|entry| {
            let known = entry.metadata().ok()?;
            Some((entry.file_name(), known.ino(), known.len(), known.ctime(), known.ctime_nsec()))
        })
        .collect();
    traces.sort();
    traces
}
