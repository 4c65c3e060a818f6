//! Measures files that are crafted to be slow to read: the largest allowed size against a quarter of it.

use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};
use ward_diag::{MAX_SOURCE_BYTES, ReportStyle, SourceText, read};

const ROUNDS: usize = 9;

/// The highest allowed ratio of the two times. A linear reader has 4, a quadratic reader 16.
const MAX_RATIO: f64 = 8.0;

const KINDS: &[(&str, &str)] = &[
    ("hidden keys in headers", "token]"),
    ("hidden keys in one line", "token = \"a\", "),
    ("lines without a key", "=\n"),
    ("quotes that never close", "a=\"\n"),
    ("one key over and over", "a=1\n"),
    ("brackets that never close", "["),
    ("lists that never close", "token = [\n"),
];

fn main() -> std::io::Result<()> {
    for (kind, unit) in KINDS {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            small.push(time_of(unit, MAX_SOURCE_BYTES / 4));
            large.push(time_of(unit, MAX_SOURCE_BYTES));
        }
        report(&BenchmarkRow {
            bench: format!("diag: 1 MiB of {kind}"),
            unit: "ms".into(),
            figure: median(&mut large),
            baseline: Some(BenchmarkBaseline { name: "a quarter of it".into(), figure: median(&mut small) }),
            bar: BenchmarkLimit::RatioAtMost(MAX_RATIO),
        })?;
    }
    Ok(())
}

fn time_of(unit: &str, bytes: usize) -> f64 {
    let source = SourceText::new("a.toml", unit.repeat(bytes / unit.len())).hide_values_of(["token"]);
    let (shown, time) = timed(|| match read(source, |root| root.required::<u8>("number")) {
        Ok(_) => 0,
        Err(report) => report.render(ReportStyle::Plain).len(),
    });
    assert!(shown > 0, "the file must be rejected");
    millis(time)
}
