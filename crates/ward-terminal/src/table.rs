//! Rows in columns that are as wide as their content.

use crate::escape::{escape_label, escape_line};
use crate::layout::{display_width, pad_or_truncate, wrap};
use crate::tone::{TextTone, paint_optional};

/// Spaces between two columns.
const COLUMN_GAP: usize = 2;

/// Least width of a column that is made narrower.
const MIN_COLUMN_WIDTH: usize = 10;

/// A field of a table. Its text is escaped as a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCell {
    text: String,
    tone: Option<TextTone>,
}

impl TableCell {
    /// Creates a cell without a colour.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { text: escape_label(text.as_ref()), tone: None }
    }

    /// Creates a cell in a colour.
    pub fn with_tone(tone: TextTone, text: impl AsRef<str>) -> Self {
        Self { text: escape_label(text.as_ref()), tone: Some(tone) }
    }
}

#[derive(Clone, Debug)]
struct TableColumn {
    title: &'static str,
    may_shrink: bool,
}

/// A table with a line of titles. If it is too wide, [shrinkable](Self::shrinkable) columns are cut and the last column
/// wraps. The other columns are shown in full, because people type their content into commands.
#[derive(Clone, Debug)]
pub struct ConsoleTable {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
}

impl ConsoleTable {
    /// Creates a table without rows, with a column for each title.
    #[must_use]
    pub fn new(titles: &[&'static str]) -> Self {
        let columns = titles.iter().map(|&title| TableColumn { title, may_shrink: false }).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Lets the columns with these titles be cut if the table is too wide.
    #[must_use]
    pub fn shrinkable(mut self, titles: &[&str]) -> Self {
        for column in &mut self.columns {
            column.may_shrink |= titles.contains(&column.title);
        }
        self
    }

    /// Adds a row. Cells beyond the last column are not aligned.
    pub fn push_row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the table in lines of at most this width, unless the columns that can't be cut are wider. The line of titles
    /// is left out if all of them are empty.
    #[must_use]
    pub fn render_lines(&self, width: usize) -> Vec<String> {
        let widths = self.column_widths(width);
        let titles = self.columns.iter().map(|column| TableCell::with_tone(TextTone::Faint, column.title));
        let titles: Vec<TableCell> = titles.collect();
        let has_titles = titles.iter().any(|title| !title.text.is_empty());
        let head = has_titles.then_some(&titles);
        head.into_iter().chain(&self.rows).flat_map(|row| render_row(row, &widths)).collect()
    }

    fn column_widths(&self, width: usize) -> Vec<usize> {
        let content_width = |(index, column): (usize, &TableColumn)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let title = display_width(column.title);
            cells.map(|cell| display_width(&cell.text)).chain([title]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(content_width).collect();
        let Some(last) = widths.len().checked_sub(1) else { return widths };
        let available = width.saturating_sub(COLUMN_GAP * last);
        while widths.iter().sum::<usize>() > available {
            let can_shrink = |(index, width): &(usize, &mut usize)| {
                let may_shrink = self.columns.get(*index).is_some_and(|column| column.may_shrink);
                (may_shrink || *index == last) && **width > MIN_COLUMN_WIDTH
            };
            let widest = widths.iter_mut().enumerate().filter(can_shrink).max_by_key(|(_, width)| **width);
            let Some((_, widest)) = widest else { break };
            *widest -= 1;
        }
        widths
    }
}

/// Renders a row. The last cell continues on further lines if it is wider than its column.
fn render_row(row: &[TableCell], widths: &[usize]) -> Vec<String> {
    let Some((last, before)) = row.split_last() else { return Vec::new() };
    let last_width = widths.get(before.len()).copied().unwrap_or(MIN_COLUMN_WIDTH);
    let mut start = String::new();
    let mut indent = 0;
    for (cell, width) in before.iter().zip(widths) {
        let fitted = pad_or_truncate(&cell.text, *width);
        start.push_str(&paint_optional(cell.tone, &fitted));
        start.extend(std::iter::repeat_n(' ', COLUMN_GAP));
        indent += width + COLUMN_GAP;
    }
    // Wrapping would reduce several spaces to one, so a text that fits is kept as it is.
    let fits = display_width(&last.text) <= last_width;
    let parts = if fits { vec![last.text.clone()] } else { wrap(&last.text, last_width) };
    let mut lines = Vec::new();
    for part in parts {
        let line = format!("{start}{}", paint_optional(last.tone, &part));
        lines.push(line.trim_end().to_owned());
        start = " ".repeat(indent);
    }
    lines
}

/// Formats rows in aligned columns of any width, without titles. The cells are escaped.
#[must_use]
pub fn align_columns(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut table = ConsoleTable::new(&vec![""; columns]);
    for row in rows {
        table.push_row(row.iter().map(|cell| TableCell { text: escape_line(cell), tone: None }));
    }
    table.render_lines(usize::MAX).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ConsoleTable {
        let mut table = ConsoleTable::new(&["", "Entry", "Id", "Now"]).shrinkable(&["Entry"]);
        table.push_row(["✓", "数学の練習", "maths", "up to 45 minutes"].map(TableCell::new));
        table.push_row(
            [
                "✗",
                "A label that goes on and on\x1b[2J",
                "on-and-on",
                "Not allowed at this time. Opens Sat 10:00.",
            ]
            .map(TableCell::new),
        );
        table
    }

    /// Renders the sample without the colour of its titles.
    fn shown(width: usize) -> String {
        sample().render_lines(width).join("\n").replace("\x1b[2m", "").replace("\x1b[0m", "")
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
        assert!(shown(50).lines().all(|line| display_width(line) <= 50));
    }

    #[test]
    fn a_cell_keeps_its_tone() {
        let mut table = ConsoleTable::new(&["", ""]);
        table.push_row([TableCell::with_tone(TextTone::Good, "✓"), TableCell::new("done")]);
        assert_eq!(table.render_lines(80), ["\x1b[32m✓\x1b[0m  done"]);
    }

    #[test]
    fn rows_without_titles_are_aligned_and_keep_their_spaces() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let rows =
            [row(&["数学", "2", "two  spaces"]), row(&["a", "20"]), row(&["long name", "", "\x1b[2J"])];
        assert_eq!(
            align_columns(&rows),
            "数学       2   two  spaces\na          20\nlong name      \\u{1b}[2J"
        );
        assert_eq!(align_columns(&[]), "");
    }
}
