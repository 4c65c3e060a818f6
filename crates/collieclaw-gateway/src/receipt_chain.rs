//! The status of the receipt chain. The chain is verified again only if the files have changed, and in the background
//! if that takes long.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collieclaw_agent::config::ReceiptSettings;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::receipts::{self, Receipt, ReceiptError, ReceiptSigning};
use jiff::Timestamp;
use serde::Serialize;
use ward_ledger::verify::{LedgerVerifyError, LogAuthenticity, LogCompleteness};

/// The receipt log and its last known status.
pub(super) struct ChainMonitor {
    path: Option<PathBuf>,
    signing: ReceiptSigning,
    last_check: Mutex<Option<CachedCheck>>,
    /// Held during a check.
    check_lock: Mutex<()>,
    /// True while a background check is running.
    background_running: AtomicBool,
}

/// The result of a check of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ChainStatus {
    /// True if every link holds and the end is not cut.
    pub(super) valid: bool,
    /// The number of receipts.
    pub(super) records: u64,
    /// The sequence number of the first broken receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) broken_at: Option<u64>,
    /// A summary in words.
    pub(super) detail: String,
    /// The time of the check.
    pub(super) checked: Timestamp,
}

struct CachedCheck {
    stamps: Vec<FileStamp>,
    status: ChainStatus,
    checked: Instant,
    duration: Duration,
}

/// The file metadata by which a change is noticed: inode, length and time of the last change.
type FileStamp = (std::ffi::OsString, u64, u64, i64, i64);

/// The maximum share of time spent on checks, so that a long and growing log isn't read without end.
const CHECK_INTERVAL_FACTOR: u32 = 20;

/// The longest time that a request waits for a check, except for the first check.
const MAX_FOREGROUND_CHECK: Duration = Duration::from_millis(50);

impl ChainMonitor {
    pub(super) fn new(receipts: &ReceiptSettings, home: &AgentHome) -> Self {
        Self {
            path: receipts.enabled.then(|| receipts.path.clone()),
            signing: receipts.signing(home),
            last_check: Mutex::default(),
            check_lock: Mutex::default(),
            background_running: AtomicBool::new(false),
        }
    }

    /// Returns the status of the chain, possibly an older one while a long log is checked in the background. Must run
    /// on a thread that may block.
    pub(super) fn status(self: &Arc<Self>) -> ChainStatus {
        let Some(path) = &self.path else { return ChainStatus::empty("receipts are switched off") };
        let files = stamp_files(path);
        let long_known = self.lock_last_check().as_ref().and_then(|known| {
            match known.stamps == files || known.is_recent() {
                true => Some((known.status.clone(), false)),
                false if known.duration > MAX_FOREGROUND_CHECK => Some((known.status.clone(), true)),
                false => None,
            }
        });
        match long_known {
            None => self.check(path),
            Some((state, false)) => state,
            Some((state, true)) => {
                self.check_in_background(path.clone());
                state
            }
        }
    }

    fn lock_last_check(&self) -> MutexGuard<'_, Option<CachedCheck>> {
        self.last_check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one check at a time; callers that waited for another check get its result.
    fn check(&self, path: &Path) -> ChainStatus {
        let _one = self.check_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let files = stamp_files(path);
        if let Some(known) = self.lock_last_check().as_ref().filter(|known| known.stamps == files) {
            return known.status.clone();
        }
        let started = Instant::now();
        let state = verify_chain(path, &self.signing);
        let took = started.elapsed();
        *self.lock_last_check() = Some(CachedCheck {
            stamps: files,
            status: state.clone(),
            checked: Instant::now(),
            duration: took,
        });
        state
    }

    /// Starts a background check for all callers, unless one is running.
    fn check_in_background(self: &Arc<Self>, path: PathBuf) {
        if self.background_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let beside = BackgroundCheck { chain: Arc::clone(self) };
        let check = move || {
            // The status may be fresh by now if another check has just finished.
            if !beside.chain.lock_last_check().as_ref().is_some_and(CachedCheck::is_recent) {
                beside.chain.check(&path);
            }
        };
        // If no thread can be started, the next caller tries again.
        let _ = std::thread::Builder::new().name("check".to_owned()).spawn(check);
    }

    /// Returns the last receipts before a sequence number, newest first.
    pub(super) fn read_page(&self, before: Option<u64>, limit: usize) -> Result<Vec<Receipt>, ReceiptError> {
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return Ok(Vec::new()) };
        let records = ward_ledger::read_records_reversed(path, &receipts::ledger_format(), before)
            .map_err(|error| ReceiptError::Read(Box::new(error)))?;
        // Unreadable receipts are left to the check.
        Ok(records.map_while(Result::ok).take(limit).map(|(_, record)| Receipt { record }).collect())
    }
}

impl CachedCheck {
    /// Returns whether it is too early for another check, even if the files have changed.
    fn is_recent(&self) -> bool {
        self.checked.elapsed() < self.duration * CHECK_INTERVAL_FACTOR
    }
}

/// The right to run a background check; dropping it lets the next one start.
struct BackgroundCheck {
    chain: Arc<ChainMonitor>,
}

impl Drop for BackgroundCheck {
    fn drop(&mut self) {
        self.chain.background_running.store(false, Ordering::Release);
    }
}

impl ChainStatus {
    /// Returns the status of a log without receipts.
    fn empty(detail: &str) -> Self {
        let detail = detail.to_owned();
        Self { valid: true, records: 0, broken_at: None, detail, checked: Timestamp::now() }
    }

    fn unusable(detail: &str) -> Self {
        Self { valid: false, ..Self::empty(detail) }
    }
}

/// Verifies the chain. An unusable key doesn't prevent the check of the links.
fn verify_chain(path: &Path, signing: &ReceiptSigning) -> ChainStatus {
    let now = Timestamp::now();
    let key = signing.key();
    let given = key.as_ref().ok().and_then(Option::as_ref);
    let report = match ward_ledger::verify(path, &receipts::ledger_format(), given) {
        Err(LedgerVerifyError::NoLog { .. }) => {
            return match signing.check_never_started(path) {
                Ok(()) => ChainStatus::empty("no receipts yet"),
                Err(gone) => ChainStatus::unusable(&gone.to_string()),
            };
        }
        Err(error) => return ChainStatus::unusable(&error.to_string()),
        Ok(report) => report,
    };
    let complete = matches!(report.completeness, LogCompleteness::Complete { .. });
    let signed =
        !matches!(report.authenticity, LogAuthenticity::NoKey { .. } | LogAuthenticity::NotSigned { .. });
    let broken_at = report.broken.as_ref().map(|broken| broken.sequence);
    let valid = report.is_sound() && key.is_ok() && signed && complete;
    let detail = match (broken_at, &key, signed, complete) {
        (None, Ok(_), ..) if valid && report.records == 0 => "no receipts yet".to_owned(),
        (Some(at), ..) => format!("the chain is invalid at receipt {at}"),
        (None, Err(error), ..) => format!("every link holds, but {error}"),
        (None, Ok(_), false, _) => {
            "every link holds, but the receipts are not signed with our key".to_owned()
        }
        (None, Ok(_), true, true) => "every link holds, and the head confirms the last receipt".to_owned(),
        (None, Ok(_), true, false) => {
            "every link holds, but the head doesn't confirm the last receipt".to_owned()
        }
    };
    ChainStatus { valid, records: report.records, broken_at, detail, checked: now }
}

/// Returns the metadata of the log, its head and its segments.
fn stamp_files(path: &Path) -> Vec<FileStamp> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ours =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()));
    let mut traces: Vec<FileStamp> = ours
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
    use ward_ledger::{Ledger, LedgerOptions};

    #[test]
    fn a_long_log_is_checked_beside_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let home = AgentHome::new(folder.path());
        let path = folder.path().join("log");
        let receipts = ReceiptSettings { enabled: true, path: path.clone(), signed: false };
        let chain = Arc::new(ChainMonitor::new(&receipts, &home));
        let (mut log, _) = Ledger::open(&path, LedgerOptions::new(receipts::ledger_format())).unwrap();
        log.append(Map::new()).unwrap();
        assert_eq!(chain.status().records, 1, "the first one is waited for");

        // Simulates a check that took long and happened long ago.
        let long = Duration::from_secs(1);
        if let Some(known) = &mut *chain.lock_last_check() {
            (known.duration, known.checked) =
                (long, known.checked.checked_sub(long * CHECK_INTERVAL_FACTOR).unwrap());
        }
        log.append(Map::new()).unwrap();
        let busy = chain.check_lock.lock().unwrap();
        let answered = chain.status();
        assert_eq!(answered.records, 1, "nobody waits");
        assert_eq!((chain.status().records, chain.status().records), (1, 1));
        assert_eq!(Arc::strong_count(&chain), 2, "one thread looks for all who ask");
        drop(busy);
        let deadline = Instant::now() + Duration::from_secs(60);
        while chain.status().records == 1 {
            assert!(Instant::now() < deadline, "waited 60 s until the log is checked again");
            // The interval between two looks: the checking thread wakes nobody.
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(chain.status().checked > answered.checked);
    }
}
