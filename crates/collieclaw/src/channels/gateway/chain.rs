//! The receipts, and whether their chain holds: checked again only when the files have changed, and beside the answers
//! where that takes long.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
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
    /// Held by whoever checks.
    checking: Mutex<()>,
    /// Whether somebody checks beside the answers.
    beside: AtomicBool,
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
    /// When it was looked at.
    pub(super) checked: Timestamp,
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

/// Nobody waits longer for a check than this, but for the first one.
const QUICK: Duration = Duration::from_millis(50);

impl Chain {
    pub(super) fn new(receipts: &ReceiptFile, home: &Home) -> Self {
        Self {
            path: receipts.enabled.then(|| receipts.path.clone()),
            signing: receipts.signing(home),
            known: Mutex::default(),
            checking: Mutex::default(),
            beside: AtomicBool::new(false),
        }
    }

    /// Whether the chain holds, or held when it was last looked at: a long log is read beside the answer. It belongs on a
    /// thread that may wait.
    pub(super) fn state(self: &Arc<Self>) -> State {
        let Some(path) = &self.path else { return State::of_none("receipts are switched off") };
        let files = traces(path);
        let long_known =
            self.known().as_ref().and_then(|known| match known.files == files || known.may_last() {
                true => Some((known.state.clone(), false)),
                false if known.took > QUICK => Some((known.state.clone(), true)),
                false => None,
            });
        match long_known {
            None => self.check(path),
            Some((state, false)) => state,
            Some((state, true)) => {
                self.check_beside(path.clone());
                state
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One at a time; whoever waited for another's check has its result.
    fn check(&self, path: &Path) -> State {
        let _one = self.checking.lock().unwrap_or_else(PoisonError::into_inner);
        let files = traces(path);
        if let Some(known) = self.known().as_ref().filter(|known| known.files == files) {
            return known.state.clone();
        }
        let started = Instant::now();
        let state = checked(path, &self.signing);
        let took = started.elapsed();
        *self.known() = Some(Known { files, state: state.clone(), checked: Instant::now(), took });
        state
    }

    /// One does it for all who ask meanwhile.
    fn check_beside(self: &Arc<Self>, path: PathBuf) {
        if self.beside.swap(true, Ordering::AcqRel) {
            return;
        }
        let beside = Beside { chain: Arc::clone(self) };
        let check = move || {
            // Whoever asked may have looked before another's check was done.
            if !beside.chain.known().as_ref().is_some_and(Known::may_last) {
                beside.chain.check(&path);
            }
        };
        // Without a thread the next one who asks tries again.
        let _ = std::thread::Builder::new().name("check".to_owned()).spawn(check);
    }

    /// The last receipts before a number, newest first.
    pub(super) fn page(&self, before: Option<u64>, limit: usize) -> Result<Vec<Receipt>, ReceiptError> {
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return Ok(Vec::new()) };
        let records = ward_ledger::read_back(path, &receipts::format(), before)
            .map_err(|error| ReceiptError::Read(Box::new(error)))?;
        // What can't be read is for the check to name.
        Ok(records.map_while(Result::ok).take(limit).map(|(_, record)| Receipt { record }).collect())
    }
}

impl Known {
    /// Whether it is too soon to look again, whatever has changed.
    fn may_last(&self) -> bool {
        self.checked.elapsed() < self.took * SHARE
    }
}

/// A check beside the answers. Dropped, also without having begun, the next may begin.
struct Beside {
    chain: Arc<Chain>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.chain.beside.store(false, Ordering::Release);
    }
}

impl State {
    /// Of a log without receipts, as it should be.
    fn of_none(detail: &str) -> Self {
        let detail = detail.to_owned();
        Self { valid: true, records: 0, broken_at: None, detail, checked: Timestamp::now() }
    }

    fn unusable(detail: &str) -> Self {
        Self { valid: false, ..Self::of_none(detail) }
    }
}

/// A key that can't be used is no reason not to look at the links.
fn checked(path: &Path, signing: &Signing) -> State {
    let now = Timestamp::now();
    let key = signing.key();
    let given = key.as_ref().ok().and_then(Option::as_ref);
    let report = match ward_ledger::verify(path, &receipts::format(), given) {
        Err(VerifyError::NoLog { .. }) => {
            return match signing.never_begun(path) {
                Ok(()) => State::of_none("no receipts yet"),
                Err(gone) => State::unusable(&gone.to_string()),
            };
        }
        Err(error) => return State::unusable(&error.to_string()),
        Ok(report) => report,
    };
    let complete = matches!(report.completeness, Completeness::Complete { .. });
    let signed = !matches!(report.authenticity, Authenticity::NoKey { .. } | Authenticity::NotSigned { .. });
    let broken_at = report.broken.as_ref().map(|broken| broken.sequence);
    let valid = report.is_sound() && key.is_ok() && signed && complete;
    let detail = match (broken_at, &key, signed, complete) {
        (None, Ok(_), ..) if valid && report.records == 0 => "no receipts yet".to_owned(),
        (Some(at), ..) => format!("the chain is invalid at receipt {at}"),
        (None, Err(error), ..) => format!("every link holds, but {error}"),
        (None, Ok(_), false, _) => "every link holds, but no key of ours has signed them".to_owned(),
        (None, Ok(_), true, true) => "every link holds, and the head vouches for the end".to_owned(),
        (None, Ok(_), true, false) => "every link holds, but nothing vouches for the end".to_owned(),
    };
    State { valid, records: report.records, broken_at, detail, checked: now }
}

/// Of the log, its head and its segments.
fn traces(path: &Path) -> Vec<Trace> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;
    use ward_ledger::{Ledger, Options};

    #[test]
    fn a_long_log_is_checked_beside_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let path = folder.path().join("log");
        let receipts = ReceiptFile { enabled: true, path: path.clone(), signed: false };
        let chain = Arc::new(Chain::new(&receipts, &home));
        let (mut log, _) = Ledger::open(&path, Options::new(receipts::format())).unwrap();
        log.append(Map::new()).unwrap();
        assert_eq!(chain.state().records, 1, "the first one is waited for");

        // As if it had taken long, and long ago.
        let long = Duration::from_secs(1);
        if let Some(known) = &mut *chain.known() {
            (known.took, known.checked) = (long, known.checked.checked_sub(long * SHARE).unwrap());
        }
        log.append(Map::new()).unwrap();
        let busy = chain.checking.lock().unwrap();
        let answered = chain.state();
        assert_eq!(answered.records, 1, "nobody waits");
        assert_eq!((chain.state().records, chain.state().records), (1, 1));
        assert_eq!(Arc::strong_count(&chain), 2, "one thread looks for all who ask");
        drop(busy);
        let patience = Instant::now() + Duration::from_secs(60);
        while chain.state().records == 1 {
            assert!(Instant::now() < patience, "it is never checked");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(chain.state().checked > answered.checked);
    }
}
