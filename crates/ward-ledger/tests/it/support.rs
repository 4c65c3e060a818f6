//! Helpers that create logs for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use ward_ledger::{Ledger, LedgerFormat, LedgerKey, LedgerOptions, VerificationReport, read, verify};

pub(crate) fn format() -> LedgerFormat {
    LedgerFormat::new("receipt_hash").unwrap()
}

pub(crate) fn options() -> LedgerOptions {
    LedgerOptions::new(format())
}

pub(crate) fn key() -> LedgerKey {
    LedgerKey::from_bytes(&[42; 32])
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("not an object: {value}") };
    object
}

pub(crate) fn receipt(number: u64) -> Map<String, Value> {
    object(json!({
        "id": format!("receipt-{number}"),
        "tool": "file_read",
        "status": "allowed",
        "reason": "inside the \"workspace\"\n\u{1}é€😀",
        "sizes": [number, -1, 0],
        "nested": {"b": null, "a": true},
    }))
}

/// A log in a temporary folder.
pub(crate) struct TestLog {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) options: LedgerOptions,
    pub(crate) key: Option<LedgerKey>,
}

impl TestLog {
    pub(crate) fn new(options: LedgerOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("receipts.jsonl");
        Self { folder, path, options, key: None }
    }

    pub(crate) fn signed() -> Self {
        Self { key: Some(key()), ..Self::new(options().with_key(key())) }
    }

    pub(crate) fn with_records(records: u64) -> Self {
        let log = Self::new(options());
        log.append(records);
        log
    }

    pub(crate) fn signed_with_records(records: u64) -> Self {
        let log = Self::signed();
        log.append(records);
        log
    }

    pub(crate) fn open(&self) -> Ledger {
        Ledger::open(&self.path, self.options.clone()).unwrap().0
    }

    pub(crate) fn append(&self, records: u64) {
        self.open().append_all((1..=records).map(receipt).collect()).unwrap();
    }

    pub(crate) fn verify(&self) -> VerificationReport {
        verify(&self.path, &format(), self.key.as_ref()).unwrap()
    }

    /// Returns the number and content of each recovery record.
    pub(crate) fn recovery_records(&self) -> Vec<(u64, Value)> {
        let entries = read(&self.path, &format()).unwrap().map(Result::unwrap);
        entries.filter_map(|entry| Some((entry.sequence, entry.recovery()?.clone()))).collect()
    }

    pub(crate) fn sibling_path(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    }

    pub(crate) fn lines(&self) -> Vec<Vec<u8>> {
        fs::read(&self.path).unwrap().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    pub(crate) fn write_lines(&self, lines: &[Vec<u8>]) {
        fs::write(&self.path, lines.concat()).unwrap();
    }

    pub(crate) fn file_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Returns the path of the `ledger-writer` program, which appends from a separate process.
pub(crate) fn writer() -> PathBuf {
    std::env::var_os("NEXTEST_BIN_EXE_ledger-writer")
        .or_else(|| std::env::var_os("NEXTEST_BIN_EXE_ledger_writer"))
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ledger-writer")), PathBuf::from)
}

pub(crate) fn writer_command(log: &Path, tag: &str, count: u64) -> Command {
    let mut command = Command::new(writer());
    command.arg(log).args([tag, &count.to_string()]);
    command
}
