//! Stores for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};
use shepherd_api::AuditEvent;
use shepherd_core::{StoreWrite, StoredState, UsageKey};
use shepherd_store::conformance::sample;
use shepherd_store::{SqliteStore, Store, StoreOpenError, audit_format, audit_log_path, record_to_event};
use tempfile::TempDir;
use ward_ledger::{VerificationReport, verify};

pub(crate) fn now() -> jiff::Timestamp {
    sample::timestamp(1_800_000_000)
}

pub(crate) fn key() -> UsageKey {
    sample::usage_key("ada", sample::entry_counter("chess"), 20_000)
}

/// Returns the batch with this number.
pub(crate) fn batch(number: u64) -> Vec<StoreWrite> {
    sample::batch(number, &key())
}

/// A temporary folder with a store.
pub(crate) struct TestStore {
    _parent: TempDir,
    pub(crate) folder: PathBuf,
}

impl TestStore {
    /// Returns a folder without a store.
    pub(crate) fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        Self { _parent: parent, folder }
    }

    /// Returns a folder without a store, in memory if the system has such a file system. Writes of a process survive
    /// its kill there as on a disk, and the tests don't wait for a disk.
    pub(crate) fn in_memory() -> Self {
        let Ok(parent) = tempfile::tempdir_in("/dev/shm") else { return Self::new() };
        let folder = parent.path().join("data");
        Self { _parent: parent, folder }
    }

    /// Returns a store with batches 1 to `batches`. The last one is only in the write-ahead log, as after a kill.
    pub(crate) fn killed_after(batches: u64) -> Self {
        let place = Self::in_memory();
        let mut store = place.open();
        (1..=batches).for_each(|number| store.apply(&batch(number)).unwrap());
        // Copies of files in use look like the files after a crash.
        let copy = Self::in_memory();
        copy_folder(&place.folder, &copy.folder);
        copy
    }

    pub(crate) fn try_open(&self) -> Result<SqliteStore, StoreOpenError> {
        SqliteStore::open(&self.folder, now()).map(|(store, _)| store)
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    pub(crate) fn load(&self) -> StoredState {
        self.open().load().unwrap()
    }

    /// Returns the error of opening the store, as people see it.
    pub(crate) fn open_error_text(&self) -> String {
        error_chain(&self.try_open().unwrap_err())
    }

    pub(crate) fn file_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn file_names(&self) -> Vec<String> {
        file_names(&self.folder)
    }

    pub(crate) fn verify(&self) -> VerificationReport {
        verify(&audit_log_path(&self.folder), &audit_format(), None).unwrap()
    }

    /// Returns the events of the audit log, without the ledger's own records.
    pub(crate) fn events(&self) -> Vec<AuditEvent> {
        let text = fs::read_to_string(audit_log_path(&self.folder)).unwrap_or_default();
        let records = text.lines().map(|line| serde_json::from_str::<Map<String, Value>>(line).unwrap());
        records
            .filter(|record| record.contains_key("event"))
            .map(|record| record_to_event(record).unwrap())
            .collect()
    }
}

pub(crate) fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700).create(to).unwrap();
    for name in file_names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// Returns an error with all its causes.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Returns the path of a test program of this crate.
pub(crate) fn helper_program(name: &str) -> PathBuf {
    let built = match name {
        "fake-daemon" => env!("CARGO_BIN_EXE_fake-daemon"),
        "fake-household" => env!("CARGO_BIN_EXE_fake-household"),
        _ => panic!("there is no program {name}"),
    };
    [name.to_owned(), name.replace('-', "_")]
        .iter()
        .find_map(|name| std::env::var_os(format!("NEXTEST_BIN_EXE_{name}")))
        .map_or_else(|| PathBuf::from(built), PathBuf::from)
}

/// Returns the command of the program that keeps a store in its own process.
pub(crate) fn fake_daemon() -> PathBuf {
    helper_program("fake-daemon")
}

pub(crate) fn fake_daemon_command(folder: &Path, batches: &str) -> Command {
    let mut command = Command::new(fake_daemon());
    command.arg(folder).arg(batches);
    command
}

/// A pseudo-random generator with the same numbers in every run (xorshift64).
pub(crate) struct XorshiftRng(u64);

impl XorshiftRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
