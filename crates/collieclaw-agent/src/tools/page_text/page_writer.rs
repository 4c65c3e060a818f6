//! Writes the text of a page line by line.

/// The maximum indentation of nested lists, in levels.
const MAX_LIST_INDENT: usize = 8;

/// A list that the page is in.
struct OpenList {
    /// The number of the next element; `None` for a list without numbers.
    next_number: Option<usize>,
}

/// The text so far.
#[derive(Default)]
pub(super) struct PageWriter {
    text: String,
    /// The line that is being written, without its indentation.
    line: String,
    /// The mark at the beginning of the line, such as `- `.
    mark: String,
    lists: Vec<OpenList>,
    /// The target of the link that the page is in.
    link: Option<String>,
    /// The number of open `pre` elements.
    preformatted: usize,
    /// True if a space is due before the next word.
    space_due: bool,
    /// True if the cell that follows is not the first one of its row.
    row_has_cells: bool,
}

impl PageWriter {
    pub(super) fn write_title(&mut self, title: &str) {
        self.write_text(title);
        self.end_paragraph();
    }

    /// Writes text. Runs of whitespace become one space, except in `pre`.
    pub(super) fn write_text(&mut self, text: &str) {
        if self.preformatted > 0 {
            for (number, line) in text.split('\n').enumerate() {
                if number > 0 {
                    self.end_line();
                }
                self.line.push_str(line.trim_end_matches('\r'));
            }
            return;
        }
        for letter in text.chars() {
            if letter.is_whitespace() {
                self.space_due = !self.line.is_empty();
            } else {
                if std::mem::take(&mut self.space_due) {
                    self.line.push(' ');
                }
                self.line.push(letter);
            }
        }
    }

    /// Writes the effect of an opening or closing tag.
    pub(super) fn write_element(
        &mut self,
        name: &str,
        closes: bool,
        href: Option<&str>,
        alternative: Option<&str>,
    ) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_paragraph();
                let level = name.bytes().next_back().map_or(1, |digit| usize::from(digit - b'0'));
                if !closes {
                    self.mark = format!("{} ", "#".repeat(level));
                }
            }
            "ul" | "menu" | "dl" => self.write_list(closes, None),
            "ol" => self.write_list(closes, Some(1)),
            "li" if !closes => self.begin_list_element(),
            "br" | "li" | "dt" | "dd" | "div" | "section" | "article" | "header" | "footer" | "nav"
            | "main" | "aside" | "form" | "option" | "summary" | "details" | "figcaption" | "address" => {
                self.end_line();
            }
            "hr" | "p" | "blockquote" | "figure" | "fieldset" | "table" => self.end_paragraph(),
            "tr" => {
                self.end_line();
                self.row_has_cells = false;
            }
            "td" | "th" if !closes => self.begin_cell(),
            "pre" => self.write_preformatted(closes),
            "a" => self.write_link(closes, href),
            "img" => {
                if let Some(alternative) = alternative.filter(|text| !text.trim().is_empty()) {
                    self.write_text(&format!("[image: {}]", alternative.trim()));
                }
            }
            _ => {}
        }
    }

    fn write_list(&mut self, closes: bool, first: Option<usize>) {
        if self.lists.is_empty() {
            self.end_paragraph();
        } else {
            self.end_line();
        }
        if closes {
            self.lists.pop();
            if self.lists.is_empty() {
                self.end_paragraph();
            }
        } else {
            self.lists.push(OpenList { next_number: first });
        }
    }

    fn begin_cell(&mut self) {
        if std::mem::replace(&mut self.row_has_cells, true) {
            self.space_due = false;
            self.line.push_str(" | ");
        }
    }

    fn begin_list_element(&mut self) {
        self.end_line();
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_LIST_INDENT));
        self.mark = match self.lists.last_mut().and_then(|list| list.next_number.as_mut()) {
            Some(number) => {
                *number += 1;
                format!("{indent}{}. ", *number - 1)
            }
            None => format!("{indent}- "),
        };
    }

    fn write_preformatted(&mut self, closes: bool) {
        self.end_paragraph();
        self.preformatted = if closes { self.preformatted.saturating_sub(1) } else { self.preformatted + 1 };
    }

    fn write_link(&mut self, closes: bool, href: Option<&str>) {
        if let Some(target) = self.link.take() {
            let is_shown = self.line.ends_with(&target);
            if !is_shown {
                self.line.push_str(&format!(" ({target})"));
            }
        }
        let leads_somewhere = |target: &&str| {
            let target = target.trim();
            !(target.is_empty()
                || target.starts_with('#')
                || target.to_ascii_lowercase().starts_with("javascript:"))
        };
        if !closes {
            self.link = href.filter(leads_somewhere).map(|target| target.trim().to_owned());
        }
    }

    fn end_line(&mut self) {
        self.space_due = false;
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end();
        if line.is_empty() {
            // Empty lines matter only inside of `pre`.
            if self.preformatted > 0 {
                self.text.push('\n');
            }
            return;
        }
        self.text.push_str(&std::mem::take(&mut self.mark));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn end_paragraph(&mut self) {
        self.end_line();
        if !(self.text.is_empty() || self.text.ends_with("\n\n")) {
            self.text.push('\n');
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.write_link(true, None);
        self.end_line();
        let mut text = self.text.trim_end().to_owned();
        text.push('\n');
        text
    }
}
