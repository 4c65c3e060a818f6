//! Splits Rust source into words, marks and string literals, so that comments and the content of literals aren't
//! mistaken for code.

/// A token of Rust source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'source> {
    /// An identifier, keyword or number.
    Word(&'source str),
    /// The text between the quotes of a string literal, with its escapes.
    Text(&'source str),
    /// Any character that belongs to no other kind.
    Mark(char),
}

/// A token with the line it begins on, starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceToken<'source> {
    pub(super) kind: TokenKind<'source>,
    pub(super) line: usize,
}

/// Splits a source into tokens. Unterminated literals and comments are not reported; the compiler does that.
pub(super) fn tokens(source: &str) -> Vec<SourceToken<'_>> {
    let mut lexer = RustLexer { rest: source, line: 1 };
    std::iter::from_fn(|| lexer.next_token()).collect()
}

struct RustLexer<'source> {
    rest: &'source str,
    line: usize,
}

impl<'source> RustLexer<'source> {
    fn next_token(&mut self) -> Option<SourceToken<'source>> {
        self.skip_blank();
        let line = self.line;
        let first = self.rest.chars().next()?;
        let piece = if first == '"' {
            self.string()
        } else if first == '\'' {
            self.quote()
        } else if is_word(first) {
            self.word()
        } else {
            self.take(first.len_utf8());
            TokenKind::Mark(first)
        };
        Some(SourceToken { kind: piece, line })
    }

    fn take(&mut self, length: usize) -> &'source str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Consumes the text up to and including `end`, and returns the part before `end`.
    fn take_through(&mut self, end: &str) -> &'source str {
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let taken = self.take(length);
        self.take(end.len().min(self.rest.len()));
        taken
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if self.rest.starts_with("//") {
                self.take_through("\n");
            } else if self.rest.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    /// Skips a block comment, which may contain others.
    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(next) = self.rest.chars().next() {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
                if depth == 0 {
                    return;
                }
            } else {
                self.take(next.len_utf8());
            }
        }
    }

    fn string(&mut self) -> TokenKind<'source> {
        self.take(1);
        let inside = quoted_length(self.rest, '"');
        let text = self.take(inside);
        self.take(1);
        TokenKind::Text(text)
    }

    /// Reads a character literal, or the quote of a lifetime.
    fn quote(&mut self) -> TokenKind<'source> {
        self.take(1);
        let mut after = self.rest.chars();
        let (first, second) = (after.next(), after.next());
        if first == Some('\\') || second == Some('\'') {
            let inside = quoted_length(self.rest, '\'');
            let text = self.take(inside);
            self.take(1);
            return TokenKind::Text(text);
        }
        TokenKind::Mark('\'')
    }

    fn word(&mut self) -> TokenKind<'source> {
        let length = self.rest.find(|character| !is_word(character)).unwrap_or(self.rest.len());
        let word = self.take(length);
        match word {
            "b" | "c" if self.rest.starts_with('"') => self.string(),
            "b" if self.rest.starts_with('\'') => self.quote(),
            "r" | "br" | "cr" => self.raw(word),
            _ => TokenKind::Word(word),
        }
    }

    /// Reads what follows `r`: a raw string, a raw identifier, or an ordinary identifier.
    fn raw(&mut self, word: &'source str) -> TokenKind<'source> {
        let hashes = self.rest.chars().take_while(|character| *character == '#').count();
        let after = self.rest.get(hashes..).and_then(|rest| rest.chars().next());
        match after {
            Some('"') => {
                self.take(hashes + 1);
                TokenKind::Text(self.take_through(&format!("\"{}", "#".repeat(hashes))))
            }
            Some(character) if hashes == 1 && is_word(character) => {
                self.take(1);
                self.word()
            }
            _ => TokenKind::Word(word),
        }
    }
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Returns the length of a literal's content, up to the first unescaped `quote`.
fn quoted_length(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in inside.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return index;
        }
    }
    inside.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code words of a source, joined by blanks; texts in angle brackets.
    fn check(source: &str, expected: &str) {
        let pieces: Vec<_> = tokens(source)
            .iter()
            .map(|token| match token.kind {
                TokenKind::Word(word) => word.to_owned(),
                TokenKind::Text(text) => format!("<{text}>"),
                TokenKind::Mark(mark) => mark.to_string(),
            })
            .collect();
        assert_eq!(pieces.join(" "), expected, "{source}");
    }

    #[test]
    fn comments_and_literals_hide_code() {
        check("a // mod b;\nc", "a c");
        check("a /* x /* mod y; */ z */ b", "a b");
        check(r#"f("mod x; \" // \\") g"#, r#"f ( <mod x; \" // \\> ) g"#);
        check(r###"r#"a "quoted" // mod"# b br"\" c"###, r#"<a "quoted" // mod> b <\> c"#);
        check(
            "b\"x\" c\"y\" b'\\'' '\"' '\\\\' '\\u{1F600}' end",
            "<x> <y> <\\'> <\"> <\\\\> <\\u{1F600}> end",
        );
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_words() {
        check("fn f<'a>(x: &'a str) {}", "fn f < ' a > ( x : & ' a str ) { }");
        check("'outer: loop {} r#mod r", "' outer : loop { } mod r");
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let source = "/* 1\n2 */ \"3\n\" // x\nfound";
        assert_eq!(tokens(source).last(), Some(&SourceToken { kind: TokenKind::Word("found"), line: 4 }));
    }

    #[test]
    fn an_unfinished_source_ends() {
        for source in ["\"abc", "/* abc", "r#\"abc", "'", "'\\", "r#", "b'"] {
            tokens(source);
        }
    }
}
