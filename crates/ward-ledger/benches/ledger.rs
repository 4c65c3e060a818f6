//! Benchmarks of the ledger: verifying a log compared with `sha256sum` of the same file, the memory that
//! verifying needs, and appending compared with a plain synced write.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};
use ward_ledger::{Ledger, LedgerFormat, LedgerKey, LedgerOptions, Sha256Hash, seal, verify};

type LedgerBenchResult<T> = Result<T, Box<dyn Error>>;

const RECORDS: u64 = 1_000_000;
const VERIFY_ROUNDS: usize = 7;
const APPEND_ROUNDS: usize = 300;
const WRITERS: usize = 8;
const APPENDS_EACH: u64 = 50;
/// The argument for the child process that measures its own memory.
const CHILD: &str = "verify-and-print-memory";

fn main() -> LedgerBenchResult<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let kinds = [("", None), (" signed", Some(LedgerKey::from_bytes(&[7; 32])))];
    if let [_, command, kind, log] = arguments.as_slice()
        && command == CHILD
    {
        let (_, key) = kinds.iter().find(|(name, _)| name.trim() == kind).ok_or("no such kind of log")?;
        return print_peak_memory(Path::new(log), key.as_ref());
    }
    let folder = tempfile::tempdir()?;
    for (name, key) in kinds {
        let log = folder.path().join(format!("receipts{}.jsonl", name.trim()));
        write_log(&log, key.as_ref())?;
        bench_verify(&log, name, key.as_ref())?;
        bench_memory(&log, name)?;
        fs::remove_file(&log)?;
    }
    bench_append(folder.path())?;
    bench_writers(folder.path())
}

fn format() -> LedgerFormat {
    LedgerFormat::new("receipt_hash").expect("a good name")
}

/// Returns a receipt of typical size.
fn receipt(number: u64) -> Map<String, Value> {
    let digest = Sha256Hash::of(&[&number.to_le_bytes()]).to_string();
    let Value::Object(receipt) = json!({
        "id": format!("receipt-{number:012}"),
        "timestamp": "2026-11-15T21:40:18.123Z",
        "conversation_id": "conversation-7f3a",
        "tool": "file_read",
        "args_hash": digest,
        "result_hash": digest,
        "status": "allowed",
        "risk": "low",
    }) else {
        unreachable!("an object was written")
    };
    receipt
}

fn write_log(log: &Path, key: Option<&LedgerKey>) -> LedgerBenchResult<()> {
    let mut file = std::io::BufWriter::new(File::create(log)?);
    let mut previous = Sha256Hash::GENESIS;
    for sequence in 1..=RECORDS {
        let sealed = seal(&format(), key, (sequence, previous), receipt(sequence))?;
        file.write_all(&sealed.line)?;
        previous = sealed.hash;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}

fn bench_verify(log: &Path, name: &str, key: Option<&LedgerKey>) -> LedgerBenchResult<()> {
    let megabytes = fs::metadata(log)?.len() as f64 / 1e6;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..VERIFY_ROUNDS {
        let (found, took) = timed(|| verify(log, &format(), key));
        assert_eq!(found?.records, RECORDS);
        ours.push(megabytes / took.as_secs_f64());
        let (status, took) = timed(|| Command::new("sha256sum").arg(log).stdout(Stdio::null()).status());
        assert!(status?.success());
        theirs.push(megabytes / took.as_secs_f64());
    }
    report(&BenchmarkRow {
        bench: format!("ledger: verify 1,000,000{name} records"),
        unit: "MB/s".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline {
            name: "sha256sum of the same file".into(),
            figure: median(&mut theirs),
        }),
        bar: BenchmarkLimit::RatioAtLeast(1.0 / 3.0),
    })?;
    Ok(())
}

fn bench_memory(log: &Path, name: &str) -> LedgerBenchResult<()> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(name.trim()).arg(log).output()?;
    assert!(output.status.success());
    let kilobytes: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    report(&BenchmarkRow {
        bench: format!("ledger: memory of verifying 1,000,000{name} records"),
        unit: "MB".into(),
        figure: kilobytes / 1e3,
        baseline: None,
        bar: BenchmarkLimit::AtMost(32.0),
    })?;
    Ok(())
}

fn print_peak_memory(log: &Path, key: Option<&LedgerKey>) -> LedgerBenchResult<()> {
    let found = verify(log, &format(), key)?;
    // The log has no head, so a signed log isn't reported as sound.
    assert!(found.broken.is_none() && found.records == RECORDS, "{found}");
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    writeln!(std::io::stdout(), "{}", peak.trim().trim_end_matches(" kB"))?;
    Ok(())
}

/// Measures an append, which syncs twice: the log and its head.
fn bench_append(folder: &Path) -> LedgerBenchResult<()> {
    let (mut ledger, _) = Ledger::open(&folder.join("append.jsonl"), LedgerOptions::new(format()))?;
    let mut bare = OpenOptions::new().append(true).create(true).open(folder.join("bare.jsonl"))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..APPEND_ROUNDS {
        let record = receipt(number as u64);
        let line = seal(&format(), None, (1, Sha256Hash::GENESIS), record.clone())?.line;
        let (appended, took) = timed(|| ledger.append(record));
        appended?;
        ours.push(millis(took));
        let (written, took) = timed(|| bare.write_all(&line).and_then(|()| bare.sync_data()));
        written?;
        theirs.push(millis(took));
    }
    report(&BenchmarkRow {
        bench: "ledger: append one durable record".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline {
            name: "write + fdatasync of the same bytes".into(),
            figure: median(&mut theirs),
        }),
        bar: BenchmarkLimit::RatioAtMost(3.0),
    })?;
    Ok(())
}

fn bench_writers(folder: &Path) -> LedgerBenchResult<()> {
    let alone = folder.join("alone.jsonl");
    let (status, one) = timed(|| writer(&alone, APPENDS_EACH * WRITERS as u64)?.wait());
    assert!(status?.success());
    let shared = folder.join("shared.jsonl");
    let (children, eight): (LedgerBenchResult<()>, Duration) = timed(|| {
        let children: Result<Vec<Child>, _> = (0..WRITERS).map(|_| writer(&shared, APPENDS_EACH)).collect();
        for mut child in children? {
            assert!(child.wait()?.success());
        }
        Ok(())
    });
    children?;
    let found = verify(&shared, &format(), None)?;
    assert!(found.is_sound() && found.records == APPENDS_EACH * WRITERS as u64, "{found}");
    report(&BenchmarkRow {
        bench: "ledger: 400 appends by 8 processes at once".into(),
        unit: "ms".into(),
        figure: millis(eight),
        baseline: Some(BenchmarkBaseline { name: "the same by one process".into(), figure: millis(one) }),
        bar: BenchmarkLimit::RatioAtMost(2.0),
    })?;
    Ok(())
}

fn writer(log: &Path, count: u64) -> std::io::Result<Child> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_ledger-writer"));
    Command::new(program).arg(log).args(["bench", &count.to_string()]).stdout(Stdio::null()).spawn()
}
