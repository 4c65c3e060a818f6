//! A memory with 1,000,000 turns: the time of a search, a new turn and a start (issue 5, "Bars").

mod corpus;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;

use collieclaw_agent::memory::ConversationMemory;
use tempfile::TempDir;
use ward_bench::{
    BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, percentile, report, timed,
};

use corpus::CorpusGenerator;

const TURNS: usize = 1_000_000;
const SEARCH_ROUNDS: usize = 12;
const GREP_ROUNDS: usize = 1;
const PERSIST_ROUNDS: usize = 300;
const OPEN_ROUNDS: usize = 100;
const BEST: usize = 20;

/// Queries of each kind that the index has to answer, including expensive ones.
const QUERIES: &[(&str, &str)] = &[
    ("rare word", "aardvark"),
    ("rare word, accents typed otherwise", "CREME-brulée"),
    ("very common word", "the"),
    ("two common words", "the and"),
    ("common and rare word", "the zebrafish"),
    ("beginning of a word", "zebraf"),
    ("piece of a word", "ardvar"),
    ("piece of many words", "ing"),
    ("two words of the middle", "kubernetes deployment"),
    ("not there", "xylophonist"),
    ("not there, of common letters", "thentionand"),
    ("two letters", "qu"),
    ("two letters of no word", "zq"),
    ("one letter", "a"),
    ("ideographs", "新幹線"),
    ("one ideograph", "駅"),
    ("two ideographs", "京都"),
    ("name of a file", "src/memory/search.rs"),
    ("a question", "how do I find the kubernetes deployment"),
    ("two rare words, never together", "zebrafish adapters"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = TempDir::new()?;
    let path = folder.path().join("memory.db");
    let text = folder.path().join("turns.txt");
    let (bytes, took) = timed(|| build_database(&path, &text));
    let bytes = bytes?;
    print_note(&format!("built in {:.1} s, {:.0} MB of text", took.as_secs_f64(), megabytes(bytes)))?;
    bench_size(&path, bytes)?;
    let memory = ConversationMemory::open(&path)?;
    bench_persist(&memory, folder.path())?;
    bench_search(&memory, &text)?;
    drop(memory);
    bench_open(&path)
}

/// Fills a memory, and a text file with one line per turn for `grep`. Returns the size of the text.
fn build_database(path: &Path, text: &Path) -> Result<u64, Box<dyn Error>> {
    let memory = ConversationMemory::open(path)?;
    let mut library = CorpusGenerator::new();
    let mut lines = BufWriter::new(File::create(text)?);
    let mut turns = 0;
    while turns < TURNS {
        let exchange = library.exchange(5_000);
        for turn in &exchange.turns {
            writeln!(lines, "{}", turn.content)?;
        }
        turns += exchange.turns.len();
        memory.persist(&exchange)?;
    }
    lines.flush()?;
    Ok(fs::metadata(text)?.len())
}

fn bench_size(path: &Path, bytes: u64) -> Result<(), Box<dyn Error>> {
    report(&BenchmarkRow {
        bench: "memory: 1,000,000 turns with their indices".into(),
        unit: "MB".into(),
        figure: megabytes(fs::metadata(path)?.len()),
        baseline: Some(BenchmarkBaseline { name: "their text alone".into(), figure: megabytes(bytes) }),
        bar: BenchmarkLimit::RatioAtMost(4.0),
    })?;
    Ok(())
}

fn bench_open(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut samples = Vec::new();
    for _ in 0..OPEN_ROUNDS {
        let (opened, took) = timed(|| ConversationMemory::open(path));
        drop(opened?);
        samples.push(millis(took));
    }
    report(&BenchmarkRow {
        bench: "memory: open".into(),
        unit: "ms".into(),
        figure: median(&mut samples),
        baseline: None,
        bar: BenchmarkLimit::AtMost(2.0),
    })?;
    Ok(())
}

fn bench_search(memory: &ConversationMemory, text: &Path) -> Result<(), Box<dyn Error>> {
    let (mut all, mut medians, mut greps) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, query) in QUERIES {
        let mut samples = Vec::new();
        let mut hits = 0;
        for _ in 0..SEARCH_ROUNDS {
            let (found, took) = timed(|| memory.search(query, BEST));
            hits = found?.len();
            samples.push(millis(took));
        }
        let mut grep = Vec::new();
        for _ in 0..GREP_ROUNDS {
            let (counted, took) = timed(|| {
                // Not `/dev/null`: `grep` would stop at the first match.
                Command::new("grep").args(["-ciF", "--", query]).arg(text).output()
            });
            counted?;
            grep.push(millis(took));
        }
        all.extend_from_slice(&samples);
        medians.push(median(&mut samples));
        greps.push(median(&mut grep));
        let (figure, baseline) = (median(&mut samples), median(&mut grep));
        print_note(&format!("{kind} ({query}): {hits} in {figure:.2} ms; grep {baseline:.0} ms"))?;
    }
    report(&BenchmarkRow {
        bench: "memory: the 20 best of 1,000,000 turns, p95 of 20 kinds of query".into(),
        unit: "ms".into(),
        figure: percentile(&mut all, 95.0),
        baseline: None,
        bar: BenchmarkLimit::AtMost(20.0),
    })?;
    report(&BenchmarkRow {
        bench: "memory: the 20 best of 1,000,000 turns".into(),
        unit: "ms".into(),
        figure: mean(&medians),
        baseline: Some(BenchmarkBaseline {
            name: "`grep -ciF` over the same text".into(),
            figure: mean(&greps),
        }),
        bar: BenchmarkLimit::RatioAtMost(0.02),
    })?;
    Ok(())
}

/// Measures storing a question and an answer. The time spent waiting for the disk is measured separately and subtracted.
fn bench_persist(memory: &ConversationMemory, folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut library = CorpusGenerator::new();
    library.skip_to(TURNS + 1);
    let mut beside = File::create(folder.join("beside"))?;
    let (mut samples, mut syncs) = (Vec::new(), Vec::new());
    for _ in 0..PERSIST_ROUNDS {
        let exchange = library.exchange(2);
        let (kept, took) = timed(|| memory.persist(&exchange));
        kept?;
        samples.push(millis(took));
        let (synced, took) = timed(|| beside.write_all(&[0; 40_960]).and_then(|()| beside.sync_data()));
        synced?;
        syncs.push(millis(took));
    }
    let sync = median(&mut syncs);
    let (half, most) = (median(&mut samples), percentile(&mut samples, 95.0));
    print_note(&format!("an exchange: median {half:.2} ms, p95 {most:.2} ms, of which sync {sync:.2} ms"))?;
    report(&BenchmarkRow {
        bench: "memory: an exchange kept among 1,000,000 turns, without the sync".into(),
        unit: "ms".into(),
        figure: (half - sync).max(0.0),
        baseline: None,
        bar: BenchmarkLimit::AtMost(5.0),
    })?;
    Ok(())
}

/// Prints a line beside the results, to standard error.
fn print_note(line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{line}")
}

#[expect(clippy::cast_precision_loss, reason = "sizes of files are exact in an f64")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "there are few")]
fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}
