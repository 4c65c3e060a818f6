//! Files that are crafted to be slow to read must still take linear time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use ward_diag::{MAX_SOURCE_BYTES, ReportStyle, SourceText, read};

/// The smaller of the two sizes. It suits an unoptimised build; the benchmark uses the largest allowed file.
const QUARTER: usize = MAX_SOURCE_BYTES / 16;

/// Returns the CPU time of reading a file, which doesn't depend on the load of the machine.
fn time_of(unit: &str, bytes: usize) -> Duration {
    let text = unit.repeat(bytes / unit.len());
    let source = SourceText::new("a.toml", text).hide_values_of(["token"]);
    let started = clock_gettime(ClockId::ThreadCPUTime);
    let report = read(source, |root| root.required::<u8>("number")).unwrap_err();
    assert!(!report.render(ReportStyle::Plain).is_empty());
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - started).unwrap()
}

/// Checks that four times the text takes less than eight times as long. Linear time would be a factor of
/// four, with some tolerance for a busy machine. Takes the best of up to 40 rounds.
fn check(unit: &str) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..40 {
        best = (best.0.min(time_of(unit, QUARTER)), best.1.min(time_of(unit, 4 * QUARTER)));
        if best.1 < 8 * best.0 {
            return;
        }
    }
    panic!("{unit:?}: {:?} for a quarter, {:?} for the whole", best.0, best.1);
}

#[test]
fn many_hidden_keys_in_headers_take_linear_time() {
    check("token]");
    check("token = \"a\", ");
}

#[test]
fn many_empty_keys_take_linear_time() {
    check("=\n");
}

#[test]
fn many_unclosed_quotes_take_linear_time() {
    check("a=\"\n");
    check("a='''\n");
}

#[test]
fn one_repeated_key_takes_linear_time() {
    check("a=1\n");
}

#[test]
fn many_unclosed_brackets_take_linear_time() {
    check("[");
    check("x=[\n");
    check("token = [\n");
}

#[test]
fn large_broken_files_get_fewer_faults_and_say_so() {
    let faults_in = |broken: usize, bytes: usize| {
        let broken = "= 1\n".repeat(broken);
        let text = format!("{broken}{}", "#\n".repeat((bytes - broken.len()) / 2));
        let report = read(SourceText::new("a.toml", text), |_| Some(())).unwrap_err();
        assert!(report.to_string().contains("there are more syntax errors from here on"), "{report}");
        report.faults().len() - 1
    };
    assert_eq!(faults_in(30, 1_000), ward_diag::MAX_SYNTAX_FAULTS);
    assert_eq!(faults_in(30, MAX_SOURCE_BYTES / 4), 14);
    assert_eq!(faults_in(30, MAX_SOURCE_BYTES), 2);
    // Each parser error counts against the budget too.
    assert_eq!(faults_in(20_000, MAX_SOURCE_BYTES / 4), 1);
}
