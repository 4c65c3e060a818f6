//! What a benchmark reports: a figure, its baseline from the same run, and the bar.
//!
//! A benchmark is a `benches/*.rs` file with `harness = false` that calls [`report`] once for each
//! [`BenchmarkRow`]. `cargo xtask bench` runs them all and draws one table. The machine is shared and noisy,
//! so a bar is a ratio to a baseline of the same run wherever one makes sense.

#![warn(missing_docs)]

use std::io::Write;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkRow {
    /// What was measured, as a short phrase: `ledger: verify 1,000,000 records`.
    pub bench: String,
    /// Unit of `figure` and of the baseline: `ms`, `MB/s`, `MB`.
    pub unit: String,
    /// The measured value.
    pub figure: f64,
    /// What it is compared with, measured in the same run.
    pub baseline: Option<BenchmarkBaseline>,
    /// What was promised.
    pub bar: BenchmarkLimit,
}

/// The yardstick of a [`BenchmarkRow`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkBaseline {
    /// What the yardstick is: `sha256sum of the same file`.
    pub name: String,
    /// Its value, in the row's unit.
    pub figure: f64,
}

/// The promise, either on the ratio to the baseline or on the figure itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchmarkLimit {
    /// `figure / baseline` is at most this.
    RatioAtMost(f64),
    /// `figure / baseline` is at least this.
    RatioAtLeast(f64),
    /// `figure` is at most this.
    AtMost(f64),
    /// `figure` is at least this.
    AtLeast(f64),
}

impl BenchmarkRow {
    /// `figure / baseline`, where there is a baseline other than zero.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let baseline = self.baseline.as_ref()?.figure;
        (baseline != 0.0).then(|| self.figure / baseline)
    }

    /// Whether the promise was kept. A ratio that can't be formed keeps no promise.
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

/// Hands a row to `cargo xtask bench`: one JSON object a line on standard output.
///
/// # Errors
/// When standard output can't be written.
pub fn report(row: &BenchmarkRow) -> std::io::Result<()> {
    let line = serde_json::to_string(row)?;
    writeln!(std::io::stdout().lock(), "{line}")
}

/// The middle of the samples; `NaN` of none.
#[must_use]
pub fn median(samples: &mut [f64]) -> f64 {
    percentile(samples, 50.0)
}

/// The sample below which `percent` of all samples lie (nearest rank); `NaN` of none.
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

/// How long `work` took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// Milliseconds with their fraction.
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
            baseline: baseline.map(|figure| BenchmarkBaseline { name: "yardstick".into(), figure }),
            bar,
        }
    }

    #[test]
    fn a_bar_is_met_on_its_own_side_only() {
        assert!(row(4.0, Some(2.0), BenchmarkLimit::RatioAtMost(2.0)).is_met());
        assert!(!row(4.1, Some(2.0), BenchmarkLimit::RatioAtMost(2.0)).is_met());
        assert!(row(1.0, Some(3.0), BenchmarkLimit::RatioAtLeast(0.33)).is_met());
        assert!(!row(1.0, Some(4.0), BenchmarkLimit::RatioAtLeast(0.33)).is_met());
        assert!(row(5.0, None, BenchmarkLimit::AtMost(5.0)).is_met());
        assert!(!row(5.0, None, BenchmarkLimit::AtLeast(6.0)).is_met());
    }

    #[test]
    fn a_ratio_without_a_baseline_keeps_no_promise() {
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
