//! Benchmark results: a figure, its baseline from the same run, and the limit it must keep.
//!
//! A benchmark is a `benches/*.rs` file with `harness = false` that calls [`report`] once for each
//! [`BenchmarkRow`]. `cargo xtask bench` runs all benchmarks and draws one table. The machine is shared and noisy,
//! so a limit is a ratio to a baseline of the same run wherever a baseline makes sense.

#![warn(missing_docs)]

use std::io::Write;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A line of the benchmark table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkRow {
    /// Name of the measurement, as a short phrase: `ledger: verify 1,000,000 records`.
    pub bench: String,
    /// Unit of `figure` and of the baseline, such as `ms`, `MB/s` or `MB`.
    pub unit: String,
    /// Measured value, in `unit`.
    pub figure: f64,
    /// Value that the figure is compared with, measured in the same run.
    pub baseline: Option<BenchmarkBaseline>,
    /// Limit that the figure has to keep.
    pub bar: BenchmarkLimit,
}

/// The value that the figure of a [`BenchmarkRow`] is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkBaseline {
    /// Name of the baseline: `sha256sum of the same file`.
    pub name: String,
    /// Value of the baseline, in the row's unit.
    pub figure: f64,
}

/// A limit on a benchmark, either on the ratio to the baseline or on the figure itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchmarkLimit {
    /// Largest value of `figure / baseline`.
    RatioAtMost(f64),
    /// Smallest value of `figure / baseline`.
    RatioAtLeast(f64),
    /// Largest value of `figure`.
    AtMost(f64),
    /// Smallest value of `figure`.
    AtLeast(f64),
}

impl BenchmarkRow {
    /// Returns `figure / baseline`, or `None` if there is no baseline or the baseline is zero.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let baseline = self.baseline.as_ref()?.figure;
        (baseline != 0.0).then(|| self.figure / baseline)
    }

    /// Returns true if the figure is within the limit. A limit on a ratio is missed if there is no ratio.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.bar {
            BenchmarkLimit::RatioAtMost(limit) => self.ratio().is_some_and(|ratio| ratio <= limit),
            BenchmarkLimit::RatioAtLeast(limit) => self.ratio().is_some_and(|ratio| ratio >= limit),
            BenchmarkLimit::AtMost(limit) => self.figure <= limit,
            BenchmarkLimit::AtLeast(limit) => self.figure >= limit,
        }
    }
}

/// Writes a row to standard output as one line of JSON, where `cargo xtask bench` reads it.
///
/// # Errors
/// Fails if standard output can't be written.
pub fn report(row: &BenchmarkRow) -> std::io::Result<()> {
    let line = serde_json::to_string(row)?;
    writeln!(std::io::stdout().lock(), "{line}")
}

/// Sorts the samples and returns the middle one, or `NaN` if the slice is empty.
#[must_use]
pub fn median(samples: &mut [f64]) -> f64 {
    percentile(samples, 50.0)
}

/// Sorts the samples and returns the percentile by nearest rank, or `NaN` if the slice is empty.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rank among at most millions of samples is exact in an f64"
)]
pub fn percentile(samples: &mut [f64], percent: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * samples.len() as f64).ceil() as usize;
    samples.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// Runs `work` and returns its result with the time it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// Converts a duration to milliseconds with a fraction.
#[must_use]
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: f64, baseline: Option<f64>, bar: BenchmarkLimit) -> BenchmarkRow {
        BenchmarkRow {
            bench: "b".into(),
            unit: "ms".into(),
            figure,
            baseline: baseline.map(|figure| BenchmarkBaseline { name: "baseline".into(), figure }),
            bar,
        }
    }

    #[test]
    fn limits_include_their_boundary_and_exclude_the_other_side() {
        assert!(row(4.0, Some(2.0), BenchmarkLimit::RatioAtMost(2.0)).is_met());
        assert!(!row(4.1, Some(2.0), BenchmarkLimit::RatioAtMost(2.0)).is_met());
        assert!(row(1.0, Some(3.0), BenchmarkLimit::RatioAtLeast(0.33)).is_met());
        assert!(!row(1.0, Some(4.0), BenchmarkLimit::RatioAtLeast(0.33)).is_met());
        assert!(row(5.0, None, BenchmarkLimit::AtMost(5.0)).is_met());
        assert!(!row(5.0, None, BenchmarkLimit::AtLeast(6.0)).is_met());
    }

    #[test]
    fn a_limit_on_a_ratio_is_missed_without_a_usable_baseline() {
        assert!(!row(1.0, None, BenchmarkLimit::RatioAtMost(9.0)).is_met());
        assert!(!row(1.0, Some(0.0), BenchmarkLimit::RatioAtLeast(0.0)).is_met());
    }

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let mut samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&mut samples), 3.0);
        assert_eq!(percentile(&mut samples, 99.0), 5.0);
        assert!(median(&mut []).is_nan());
    }
}
