//! Benchmarks of the store: a start with five years of usage, a batch compared with a bare durable transaction, and the
//! audit log compared with a plain ledger.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use shepherd_core::StoreWrite;
use shepherd_store::conformance::sample;
use shepherd_store::{
    AuditCheck, SqliteStore, Store, audit_format, audit_log_path, event_to_record, read_audit_log,
};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};
use ward_ledger::{Sha256Hash, seal, verify};

type StoreBenchResult<T> = Result<T, Box<dyn Error>>;

const PROFILES: [&str; 2] = ["ada", "bob"];
const COUNTERS: usize = 30;
/// The days of usage in the store: five years.
const DAYS: i32 = 1_826;
const LOAD_ROUNDS: usize = 15;
const BATCH_ROUNDS: usize = 300;
const EVENTS: u64 = 100_000;
const EVENTS_A_BATCH: u64 = 2_500;
const VERIFY_ROUNDS: usize = 9;
const PAGE_ROUNDS: usize = 100;
const PAGE: u32 = 100;

fn main() -> StoreBenchResult<()> {
    let folder = tempfile::tempdir()?;
    bench_load(&folder.path().join("usage"))?;
    bench_apply(folder.path())?;
    bench_verify(folder.path())?;
    bench_pages(&folder.path().join("audit"))
}

fn bench_load(folder: &Path) -> StoreBenchResult<()> {
    let (mut store, _) = SqliteStore::open(folder, sample::timestamp(0))?;
    let mut rows = 0;
    for day in 0..DAYS {
        let mut writes = Vec::new();
        for profile in PROFILES {
            for number in 0..COUNTERS {
                let key = sample::usage_key(
                    profile,
                    sample::entry_counter(&format!("entry-{number:02}")),
                    19_000 + day,
                );
                writes.push(StoreWrite::AddUsage { key, amount: Duration::from_micros(1_234_567_891) });
            }
        }
        rows += writes.len();
        store.apply(&writes)?;
    }
    drop(store);
    let (mut loads, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..LOAD_ROUNDS {
        let (opened, opening) = timed(|| SqliteStore::open(folder, sample::timestamp(0)));
        let (store, _) = opened?;
        let (state, loading) = timed(|| store.load());
        assert_eq!(state?.usage.len(), rows);
        loads.push(millis(loading));
        starts.push(millis(opening + loading));
    }
    for (what, samples) in [("load", &mut loads), ("open, check and load", &mut starts)] {
        report(&BenchmarkRow {
            bench: format!("store: {what} five years of usage"),
            unit: "ms".into(),
            figure: median(samples),
            baseline: None,
            bar: BenchmarkLimit::AtMost(200.0),
        })?;
    }
    Ok(())
}

/// Measures a batch without an event, compared with a transaction of SQLite, and a batch with an event, compared with a
/// transaction and a synced append.
fn bench_apply(folder: &Path) -> StoreBenchResult<()> {
    let (mut store, _) = SqliteStore::open(&folder.join("apply"), sample::timestamp(0))?;
    let bare = Connection::open(folder.join("bare.db"))?;
    bare.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (id INTEGER PRIMARY KEY, x)",
    )?;
    let key = sample::usage_key("ada", sample::entry_counter("chess"), 20_000);
    let content = serde_json::to_string(&sample::snapshot(1))?;
    let mut log = OpenOptions::new().append(true).create(true).open(folder.join("bare.log"))?;
    let line = [b'x'; 300];
    let (mut batches, mut without) = (Vec::new(), Vec::new());
    let (mut transactions, mut both) = (Vec::new(), Vec::new());
    for number in 0..BATCH_ROUNDS {
        let batch = sample::batch(number as u64, &key);
        let (applied, took) = timed(|| store.apply(&batch));
        applied?;
        batches.push(millis(took));
        let (applied, took) = timed(|| store.apply(batch.get(..3).unwrap_or_default()));
        applied?;
        without.push(millis(took));
        let (done, took) = timed(|| bare.execute("INSERT OR REPLACE INTO t VALUES (1, ?1)", [&content]));
        done?;
        transactions.push(millis(took));
        let (written, append) = timed(|| log.write_all(&line).and_then(|()| log.sync_data()));
        written?;
        both.push(millis(took + append));
    }
    for (what, samples, name, baseline, bar) in [
        (
            "a batch with an event",
            &mut batches,
            "a bare transaction and a bare synced append",
            &mut both,
            3.0,
        ),
        (
            "a batch without an event",
            &mut without,
            "a bare synced transaction of one row",
            &mut transactions,
            2.0,
        ),
    ] {
        report(&BenchmarkRow {
            bench: format!("store: apply {what}"),
            unit: "ms".into(),
            figure: median(samples),
            baseline: Some(BenchmarkBaseline { name: name.into(), figure: median(baseline) }),
            bar: BenchmarkLimit::RatioAtMost(bar),
        })?;
    }
    Ok(())
}

fn bench_verify(folder: &Path) -> StoreBenchResult<()> {
    let store_folder = folder.join("audit");
    let (mut store, _) = SqliteStore::open(&store_folder, sample::timestamp(0))?;
    for batch in 0..EVENTS / EVENTS_A_BATCH {
        let numbers = batch * EVENTS_A_BATCH..(batch + 1) * EVENTS_A_BATCH;
        let writes: Vec<StoreWrite> =
            numbers.map(|number| StoreWrite::AppendAudit(Box::new(sample::note_event(number)))).collect();
        store.apply(&writes)?;
    }
    drop(store);
    let plain = folder.join("plain.log");
    let mut file = BufWriter::new(File::create(&plain)?);
    let mut previous = Sha256Hash::GENESIS;
    for sequence in 1..=EVENTS {
        let sealed = seal(
            &audit_format(),
            None,
            (sequence, previous),
            event_to_record(&sample::note_event(sequence - 1))?,
        )?;
        file.write_all(&sealed.line)?;
        previous = sealed.hash;
    }
    drop(file);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..VERIFY_ROUNDS {
        for (path, samples) in [(&audit_log_path(&store_folder), &mut ours), (&plain, &mut theirs)] {
            let (found, took) = timed(|| verify(path, &audit_format(), None));
            let found = found?;
            assert!(found.records == EVENTS && found.is_sound(), "{found}");
            samples.push(millis(took));
        }
    }
    report(&BenchmarkRow {
        bench: "store: verify 100,000 audit events".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline {
            name: "a plain ledger of the same events".into(),
            figure: median(&mut theirs),
        }),
        bar: BenchmarkLimit::RatioAtMost(1.2),
    })?;
    Ok(())
}

/// Measures a start that verifies the whole log, and reading pages of it. A page takes the same time wherever it is.
fn bench_pages(folder: &Path) -> StoreBenchResult<()> {
    let (mut starts, mut verified) = (Vec::new(), Vec::new());
    for _ in 0..VERIFY_ROUNDS {
        let (found, took) = timed(|| verify(&audit_log_path(folder), &audit_format(), None));
        assert!(found?.is_sound());
        verified.push(millis(took));
        let (opened, took) = timed(|| SqliteStore::open(folder, sample::timestamp(0)));
        assert_eq!(opened?.1.audit_check, AuditCheck::Whole { records: EVENTS });
        starts.push(millis(took));
    }
    report(&BenchmarkRow {
        bench: "store: open with 100,000 audit events".into(),
        unit: "ms".into(),
        figure: median(&mut starts),
        baseline: Some(BenchmarkBaseline {
            name: "verifying them alone".into(),
            figure: median(&mut verified),
        }),
        bar: BenchmarkLimit::RatioAtMost(2.5),
    })?;
    let (mut middle, mut first) = (Vec::new(), Vec::new());
    for _ in 0..PAGE_ROUNDS {
        for (after, samples) in [(EVENTS / 2, &mut middle), (0, &mut first)] {
            let (page, took) = timed(|| read_audit_log(folder, Some(after), PAGE));
            assert_eq!(page?.first().map(|record| record.sequence), Some(after + 1));
            samples.push(millis(took));
        }
    }
    report(&BenchmarkRow {
        bench: "store: 100 audit lines out of the middle of 100,000".into(),
        unit: "ms".into(),
        figure: median(&mut middle),
        baseline: Some(BenchmarkBaseline { name: "the first 100".into(), figure: median(&mut first) }),
        bar: BenchmarkLimit::RatioAtMost(3.0),
    })?;
    Ok(())
}
