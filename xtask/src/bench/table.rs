//! The table of figures, at most [`WIDTH`] columns wide.

use ward_bench::{BenchmarkLimit, BenchmarkRow};

use crate::terminal;

/// The width of the table, which fits a terminal beside an editor and a printed page.
const WIDTH: usize = 100;

/// The number of spaces between two columns.
const GAP: usize = 2;

const TITLES: [&str; 6] = ["benchmark", "figure", "baseline", "ratio", "bar", "met"];

/// The columns with text, which are wrapped if the table is too wide. The other columns have numbers and are
/// right-aligned, except for the last.
const PROSE: [usize; 2] = [0, 2];

/// The smallest width of a wrapped column, so that a word fits.
const MIN_PROSE_WIDTH: usize = 16;

/// Draws the table with its titles.
pub(super) fn draw(rows: &[BenchmarkRow]) -> String {
    let cells: Vec<_> = rows.iter().map(cells).collect();
    let widths = widths(&cells);
    let mut lines = vec![terminal::heading(&format_line(&TITLES.map(str::to_owned), &widths))];
    for (row, cells) in rows.iter().zip(&cells) {
        let text =
            wrap_row(cells, &widths).iter().map(|cells| format_line(cells, &widths)).collect::<Vec<_>>();
        let paint = if row.is_met() { str::to_owned } else { terminal::failure };
        lines.extend(text.iter().map(|line| paint(line)));
    }
    lines.join("\n") + "\n"
}

fn cells(row: &BenchmarkRow) -> [String; 6] {
    let with_unit = |figure| format!("{} {}", number(figure), row.unit);
    let baseline =
        row.baseline.as_ref().map(|baseline| format!("{}: {}", with_unit(baseline.figure), baseline.name));
    let bar = match row.bar {
        BenchmarkLimit::RatioAtMost(limit) => format!("≤ {}×", number(limit)),
        BenchmarkLimit::RatioAtLeast(limit) => format!("≥ {}×", number(limit)),
        BenchmarkLimit::AtMost(limit) => format!("≤ {}", with_unit(limit)),
        BenchmarkLimit::AtLeast(limit) => format!("≥ {}", with_unit(limit)),
    };
    [
        row.bench.clone(),
        with_unit(row.figure),
        baseline.unwrap_or_else(|| "-".to_owned()),
        row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{}×", number(ratio))),
        bar,
        if row.is_met() { "yes" } else { "NO" }.to_owned(),
    ]
}

/// Formats a number with three significant digits and separated thousands.
fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size >= 99.95 {
        group_thousands(&format!("{value:.0}"))
    } else if size >= 9.995 {
        trim_zeros(&format!("{value:.1}"))
    } else if size >= 0.1 {
        trim_zeros(&format!("{value:.2}"))
    } else {
        trim_zeros(&format!("{value:.4}"))
    }
}

fn trim_zeros(decimal: &str) -> String {
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn group_thousands(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the widths of the columns. Text columns are narrowed if the table would be too wide.
fn widths(rows: &[[String; 6]]) -> [usize; 6] {
    let mut widths = TITLES.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    while widths.iter().sum::<usize>() + GAP * (TITLES.len() - 1) > WIDTH {
        let prose = widths.iter_mut().enumerate().filter(|(column, _)| PROSE.contains(column));
        match prose.map(|(_, width)| width).max_by_key(|width| **width) {
            Some(widest) if *widest > MIN_PROSE_WIDTH => *widest -= 1,
            _ => break,
        }
    }
    widths
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Splits a row into lines. Text is wrapped; all other cells are in the first line.
fn wrap_row(cells: &[String; 6], widths: &[usize; 6]) -> Vec<[String; 6]> {
    let mut lines: Vec<[String; 6]> = Vec::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        for (index, part) in wrap(cell, *width).into_iter().enumerate() {
            if lines.len() <= index {
                lines.push(Default::default());
            }
            if let Some(place) = lines.get_mut(index).and_then(|line| line.get_mut(column)) {
                *place = part;
            }
        }
    }
    lines
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn format_line(cells: &[String; 6], widths: &[usize; 6]) -> String {
    let last = TITLES.len() - 1;
    let padded: Vec<_> = cells
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, width))| {
            if PROSE.contains(&column) || column == last {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        })
        .collect();
    padded.join(&" ".repeat(GAP)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use ward_bench::BenchmarkBaseline;

    use super::*;

    fn row(bench: &str, figure: f64, baseline: Option<(&str, f64)>, bar: BenchmarkLimit) -> BenchmarkRow {
        let baseline = baseline.map(|(name, figure)| BenchmarkBaseline { name: name.to_owned(), figure });
        BenchmarkRow { bench: bench.to_owned(), unit: "ms".to_owned(), figure, baseline, bar }
    }

    #[test]
    fn a_small_table_is_as_wide_as_its_content() {
        let rows = [
            row("spawn", 1.25, Some(("posix_spawn", 1.0)), BenchmarkLimit::RatioAtMost(2.0)),
            row("memory", 40.0, None, BenchmarkLimit::AtMost(32.0)),
        ];
        let expected = "\
benchmark   figure  baseline           ratio      bar  met
spawn      1.25 ms  1 ms: posix_spawn  1.25×     ≤ 2×  yes
memory       40 ms  -                      -  ≤ 32 ms  NO
";
        assert_eq!(draw(&rows), expected);
    }

    #[test]
    fn a_wide_table_is_wrapped_and_loses_no_word() {
        let bench = "ledger: verify a chain of 1,000,000 records across twelve segments with a key";
        let yardstick = "sha256sum of the same file in the same run, from a warm cache";
        let table =
            draw(&[row(bench, 1234.5, Some((yardstick, 1000.0)), BenchmarkLimit::RatioAtLeast(0.333))]);
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        for word in bench.split(' ').chain(yardstick.split(' ')) {
            assert!(table.contains(word), "{word} is not in\n{table}");
        }
    }

    #[test]
    fn numbers_keep_three_digits_that_matter() {
        let shown: Vec<_> =
            [0.0, 0.01234, 0.333, 1.0, 9.876, 99.9, 1_234_567.8, -1234.0].map(number).to_vec();
        assert_eq!(shown, ["0", "0.0123", "0.33", "1", "9.88", "99.9", "1,234,568", "-1,234"]);
    }
}
