//! Tables for the terminal: columns are as wide as their content, and the last column wraps.

use crate::output::{TextTone, paint_optional};
use crate::text;

/// Spaces between two columns.
const COLUMN_GAP: usize = 2;

/// Least width of a column that is cut.
const MIN_COLUMN_WIDTH: usize = 10;

/// An escaped field of a table.
pub(crate) struct TableCell {
    text: String,
    tone: Option<TextTone>,
}

impl TableCell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self { text: text::escape_unsafe(text.as_ref()), tone: None }
    }

    pub(crate) fn with_tone(tone: TextTone, text: impl AsRef<str>) -> Self {
        Self { text: text::escape_unsafe(text.as_ref()), tone: Some(tone) }
    }
}

/// A table with a header. Columns whose title ends with `~` may be cut, and the last column wraps. Other columns are
/// shown in full, because people type their content into commands.
pub(crate) struct ConsoleTable {
    titles: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
}

impl ConsoleTable {
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        Self { titles: titles.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn push_row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the table in lines of at most this width, unless columns that can't be cut are wider.
    pub(crate) fn render_lines(&self, width: usize) -> Vec<String> {
        let widths = self.widths(width);
        let mut lines = Vec::new();
        let head: Vec<TableCell> = self
            .titles
            .iter()
            .map(|title| TableCell::with_tone(TextTone::Faint, title.trim_end_matches('~')))
            .collect();
        if self.titles.iter().any(|title| !title.is_empty()) {
            lines.extend(row_lines(&head, &widths));
        }
        for row in &self.rows {
            lines.extend(row_lines(row, &widths));
        }
        lines
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let wanted = |column: usize| {
            let cells =
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(&cell.text));
            let title = self.titles.get(column).map_or(0, |title| text::width(title.trim_end_matches('~')));
            cells.chain([title]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.titles.len()).map(wanted).collect();
        let room = width.saturating_sub(COLUMN_GAP * self.titles.len().saturating_sub(1));
        let Some(last) = widths.len().checked_sub(1) else { return widths };
        while widths.iter().sum::<usize>() > room {
            let can_be_cut = |column: usize| {
                column == last || self.titles.get(column).is_some_and(|title| title.ends_with('~'))
            };
            let wide = widths.iter_mut().enumerate();
            let widest = wide.filter(|(column, wide)| can_be_cut(*column) && **wide > MIN_COLUMN_WIDTH);
            let Some((_, widest)) = widest.max_by_key(|(_, wide)| **wide) else { break };
            *widest -= 1;
        }
        widths
    }
}

fn row_lines(row: &[TableCell], widths: &[usize]) -> Vec<String> {
    let Some((last, before)) = row.split_last() else { return Vec::new() };
    let last_width = widths.get(before.len()).copied().unwrap_or(MIN_COLUMN_WIDTH);
    let mut start = String::new();
    let mut indent = 0;
    for (cell, width) in before.iter().zip(widths) {
        let fitted = text::pad_or_truncate(&cell.text, *width);
        start.push_str(&paint_optional(cell.tone, &fitted));
        start.extend(std::iter::repeat_n(' ', COLUMN_GAP));
        indent += width + COLUMN_GAP;
    }
    let wrapped = text::wrap(&last.text, last_width);
    let mut lines = Vec::new();
    for part in wrapped {
        let line = format!("{start}{}", paint_optional(last.tone, &part));
        lines.push(line.trim_end().to_owned());
        start = " ".repeat(indent);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ConsoleTable {
        let mut table = ConsoleTable::new(&["", "Entry~", "Id", "Now"]);
        table.push_row([
            TableCell::new("✓"),
            TableCell::new("数学の練習"),
            TableCell::new("maths"),
            TableCell::new("up to 45 minutes"),
        ]);
        table.push_row([
            TableCell::new("✗"),
            TableCell::new("A label that goes on and on\x1b[2J"),
            TableCell::new("on-and-on"),
            TableCell::new("Not allowed at this time. Opens Sat 10:00."),
        ]);
        table
    }

    fn shown(width: usize) -> String {
        let lines = sample().render_lines(width).join("\n");
        anstream::adapter::strip_str(&lines).to_string()
    }

    #[test]
    fn columns_are_aligned_for_wide_characters_and_escapes() {
        insta::assert_snapshot!(shown(120), @r"
           Entry                                 Id         Now
        ✓  数学の練習                            maths      up to 45 minutes
        ✗  A label that goes on and on\u{1b}[2J  on-and-on  Not allowed at this time. Opens Sat 10:00.
        ");
    }

    #[test]
    fn a_narrow_screen_cuts_labels_and_wraps_the_last_column() {
        insta::assert_snapshot!(shown(50), @r"
           Entry              Id         Now
        ✓  数学の練習         maths      up to 45 minutes
        ✗  A label that goe…  on-and-on  Not allowed at
                                         this time. Opens
                                         Sat 10:00.
        ");
        assert!(shown(50).lines().all(|line| text::width(line) <= 50));
    }
}
