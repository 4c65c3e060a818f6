//! Collects the matching lines of a search, within the limits of one result.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use crate::tools::ToolResult;
use crate::tools::file_list::escape_path;

/// The maximum length of a line in a result. Longer lines are shown around the match.
const MAX_SHOWN_CHARS: usize = 300;

/// The part of a long line that is shown before the match.
const CHARS_BEFORE_MATCH: usize = 60;

/// Space for the facts about the search.
const NOTE_BYTES: usize = 256;

/// The matching lines of all files so far.
pub(super) struct MatchCollector {
    output: String,
    /// The path of the current file.
    path: PathBuf,
    /// The path as text, once the file has a line to show.
    shown_path: Option<String>,
    /// The number of matching lines to skip.
    offset: usize,
    seen: usize,
    shown: usize,
    limit: usize,
    max_bytes: usize,
    files_searched: usize,
    files_with_matches: usize,
    files_skipped: usize,
    /// True if there are more matching lines than the result has room for.
    full: bool,
    file_has_match: bool,
}

impl MatchCollector {
    pub(super) fn new(offset: usize, limit: usize, max_bytes: usize) -> Self {
        Self {
            output: String::new(),
            path: PathBuf::new(),
            shown_path: None,
            offset,
            seen: 0,
            shown: 0,
            limit,
            max_bytes: max_bytes.saturating_sub(NOTE_BYTES),
            files_searched: 0,
            files_with_matches: 0,
            files_skipped: 0,
            full: false,
            file_has_match: false,
        }
    }

    pub(super) fn begin_file(&mut self, path: PathBuf) {
        self.path = path;
        self.shown_path = None;
        self.files_searched += 1;
        self.file_has_match = false;
    }

    /// Counts a file that could not be searched to its end.
    pub(super) fn skip_file(&mut self) {
        self.files_skipped += 1;
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Adds a line. Returns false if the result has no room for it; the first line always has.
    fn add_line(&mut self, line: Option<u64>, mark: char, text: &str) -> bool {
        let before = self.output.len();
        // Most files have no line to show.
        let path = self.shown_path.get_or_insert_with(|| escape_path(&self.path));
        let _ = writeln!(self.output, "{path}{mark}{}{mark}{text}", line.unwrap_or_default());
        let fits = self.output.len() <= self.max_bytes || before == 0;
        if !fits {
            self.output.truncate(before);
        }
        fits
    }

    /// Adds a line around a match. Returns false if the result is full.
    fn add_context(&mut self, line: Option<u64>, text: &str) -> bool {
        let fits = self.add_line(line, '-', text);
        // Without a match, the next call would have to begin at the same place.
        self.full |= !fits && self.shown > 0;
        !self.full
    }

    fn add_match(&mut self, line: Option<u64>, text: &str) -> bool {
        if !self.file_has_match {
            self.file_has_match = true;
            self.files_with_matches += 1;
        }
        if self.seen < self.offset {
            self.seen += 1;
            return true;
        }
        if self.shown == self.limit {
            self.full = true;
            return false;
        }
        let mut fits = self.add_line(line, ':', text);
        if !fits && self.shown == 0 {
            // The lines before the first match have taken its place.
            self.output.clear();
            fits = self.add_line(line, ':', text);
        }
        if fits {
            self.seen += 1;
            self.shown += 1;
        }
        self.full = !fits;
        fits
    }

    pub(super) fn into_result(self, incomplete: bool) -> ToolResult {
        let output = if self.shown == 0 && !self.full { "no matches\n".to_owned() } else { self.output };
        let mut result = ToolResult::done(output)
            .with_metadata("matches", self.shown)
            .with_metadata("files_with_matches", self.files_with_matches)
            .with_metadata("files_searched", self.files_searched)
            .with_metadata("truncated", self.full);
        if self.files_skipped > 0 {
            result = result.with_metadata("files_skipped", self.files_skipped);
        }
        if incomplete {
            let note = "there are too many files; search a subfolder or set `glob`";
            result = result.with_metadata("incomplete", note);
        }
        if self.full {
            let next = self.offset + self.shown;
            result = result.with_metadata("next_offset", next).with_metadata(
                "rest",
                format!("for more matches, call again with `offset` set to {next}, or narrow the search"),
            );
        }
        result
    }
}

/// Receives the lines of one file.
pub(super) struct MatchSink<'s> {
    matcher: &'s RegexMatcher,
    found: &'s mut MatchCollector,
}

impl<'s> MatchSink<'s> {
    pub(super) fn new(matcher: &'s RegexMatcher, found: &'s mut MatchCollector) -> Self {
        Self { matcher, found }
    }
}

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = matched.bytes();
        let start = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
        Ok(self.found.add_match(matched.line_number(), &shown_line(line, start)))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.found.seen < self.found.offset {
            return Ok(true);
        }
        Ok(self.found.add_context(context.line_number(), &shown_line(context.bytes(), 0)))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.found.shown > 0 && self.found.seen >= self.found.offset {
            self.found.output.push_str("--\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        if finish.binary_byte_offset().is_some() {
            self.found.skip_file();
        }
        Ok(())
    }
}

/// Returns a line as text, with control characters escaped. A long line is shown around the byte `at`.
fn shown_line(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let before = String::from_utf8_lossy(line.get(..at).unwrap_or_default()).chars().count();
    let text = String::from_utf8_lossy(line);
    let length = text.chars().count();
    let from = if length > MAX_SHOWN_CHARS { before.saturating_sub(CHARS_BEFORE_MATCH) } else { 0 };
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    for letter in text.chars().skip(from).take(MAX_SHOWN_CHARS) {
        if letter.is_control() && letter != '\t' {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    if from + MAX_SHOWN_CHARS < length {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let line = format!("{}needle{}\r\n", "a".repeat(1000), "b".repeat(1000));
        let shown = shown_line(line.as_bytes(), 1000);
        assert!(shown.starts_with("…aaa") && shown.contains("needle") && shown.ends_with("b…"), "{shown}");
        assert_eq!(shown_line(b"x\x1b[2J\ty\n", 0), "x\\u{1b}[2J\ty");
    }

    #[test]
    fn a_result_has_a_match_even_if_the_lines_before_it_are_too_long() {
        let mut found = MatchCollector::new(0, 10, NOTE_BYTES + 40);
        found.begin_file("file".into());
        for line in 1..=3 {
            assert!(found.add_context(Some(line), &"context ".repeat(3)));
        }
        assert!(found.add_match(Some(4), "the match"));
        assert!(!found.add_match(Some(5), &"another match ".repeat(3)));
        let result = found.into_result(false);
        assert_eq!(result.output, "file:4:the match\n");
        assert_eq!(result.metadata["next_offset"], 1);
    }
}
