//! Scripts of `sed`, which can also run commands and read and write files.

/// Longer scripts are refused; people don't write them on a command line.
const MAX_SCRIPT_BYTES: usize = 4096;

/// Returns the effect of a `sed` script beyond editing the text it prints, as a verb phrase. Commands that
/// aren't known to be harmless count as an effect.
pub(super) fn find_side_effect(script: &str) -> Option<&'static str> {
    const UNREAD: Option<&str> = Some("run a script that the gate can't read");
    if script.len() > MAX_SCRIPT_BYTES {
        return Some("run a script that is too long to check");
    }
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
        let Some(behind) = after_addresses(rest) else { return UNREAD };
        rest = behind.trim_start_matches([' ', '\t', '!']);
        let mut letters = rest.chars();
        let command = letters.next()?;
        rest = letters.as_str();
        match command {
            '{' => continue,
            'p' | 'd' | 'D' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z' | 'F' | '}' => {}
            ':' | 'b' | 't' | 'T' => {
                rest = rest.trim_start_matches([' ', '\t']).trim_start_matches(is_in_name);
            }
            'q' | 'Q' | 'l' => {
                rest = rest.trim_start_matches(|letter: char| letter == ' ' || letter.is_ascii_digit());
            }
            's' => match after_substitution(rest) {
                Some(after) => rest = after,
                None => return Some("run a script that may run a command or write a file"),
            },
            'y' => match after_transliteration(rest) {
                Some(after) => rest = after,
                None => return UNREAD,
            },
            '#' => rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default(),
            'a' | 'i' | 'c' => rest = after_text(rest),
            'e' => return Some("run a command"),
            'w' | 'W' => return Some("write another file"),
            'r' | 'R' => return Some("read another file"),
            _ => return UNREAD,
        }
        let ended = rest.trim_start_matches([' ', '\t']);
        if ended.is_empty() {
            return None;
        }
        if !ended.starts_with([';', '\n', '}', '#']) {
            return UNREAD;
        }
    }
}

/// Returns the text after addresses such as `1,5`, `$`, `0~3`, `\,x,` or `/x/I,+2`; `None` if the end of an
/// address isn't certain.
fn after_addresses(mut text: &str) -> Option<&str> {
    loop {
        text = text.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || matches!(letter, '$' | ',' | '~' | '+' | ' ' | '\t')
        });
        let pattern = match text.chars().next() {
            Some('/') => text,
            Some('\\') => text.get(1..)?,
            _ => return Some(text),
        };
        let (delimiter, pattern) = split_delimiter(pattern)?;
        text = after_pattern(pattern, delimiter)?.trim_start_matches(['I', 'M', ' ', '\t']);
    }
}

/// Returns the text after the argument of `a`, `i` or `c`, which ends with its line unless the line ends with
/// a backslash.
fn after_text(mut text: &str) -> &str {
    loop {
        let Some((line, after)) = text.split_once('\n') else { return "" };
        // An escaped backslash is text and doesn't continue the line.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        if backslashes % 2 == 0 {
            // Keep the newline, which ends the command.
            return text.get(line.len()..).unwrap_or_default();
        }
        text = after;
    }
}

/// Returns the text after `s/a/b/flags`; `None` if a flag runs a command or writes a file.
fn after_substitution(text: &str) -> Option<&str> {
    let (delimiter, pattern) = split_delimiter(text)?;
    let after = after_plain(after_pattern(pattern, delimiter)?, delimiter)?;
    let flags = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).len();
    let harmless =
        |letter: char| letter.is_ascii_digit() || matches!(letter, 'g' | 'p' | 'i' | 'I' | 'm' | 'M');
    after.get(..flags)?.chars().all(harmless).then(|| after.get(flags..))?
}

/// Returns the text after `y/abc/xyz/`.
fn after_transliteration(text: &str) -> Option<&str> {
    let (delimiter, letters) = split_delimiter(text)?;
    after_plain(after_plain(letters, delimiter)?, delimiter)
}

/// Splits off the delimiter at the beginning of a text.
fn split_delimiter(text: &str) -> Option<(char, &str)> {
    let delimiter = text.chars().next()?;
    let usual = delimiter.is_ascii_punctuation() && !matches!(delimiter, '\\' | '[' | ']');
    usual.then(|| Some((delimiter, text.get(1..)?)))?
}

/// Returns the text after the next delimiter that isn't escaped by a backslash.
fn after_plain(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\\' => _ = letters.next(),
            // A newline can't stand between delimiters.
            '\n' => return None,
            letter if letter == delimiter => return text.get(place + 1..),
            _ => {}
        }
    }
    None
}

/// Returns the text after a pattern; `None` if a delimiter is in brackets, where only some versions of
/// `sed` end the pattern.
fn after_pattern(mut text: &str, delimiter: char) -> Option<&str> {
    loop {
        let mut letters = text.chars();
        match letters.next()? {
            '\\' => _ = letters.next().filter(|letter| *letter != '\n')?,
            '\n' => return None,
            '[' => {
                let after = after_brackets(letters.as_str())?;
                let inside = text.get(..text.len() - after.len())?;
                // An escaped delimiter never ends the pattern, so it is harmless in brackets.
                if after_plain(inside, delimiter).is_some() {
                    return None;
                }
                letters = after.chars();
            }
            letter if letter == delimiter => return Some(letters.as_str()),
            _ => {}
        }
        text = letters.as_str();
    }
}

/// Returns the text after a bracket expression, given from after its `[`; `None` if programs could disagree
/// about its end.
fn after_brackets(text: &str) -> Option<&str> {
    let text = text.strip_prefix('^').unwrap_or(text);
    // A `]` in first place belongs to the set, but not every program agrees.
    let begins_closed = text.starts_with(']');
    let mut text = text.strip_prefix(']').unwrap_or(text);
    loop {
        let mut letters = text.chars();
        match letters.next()? {
            ']' => return Some(letters.as_str()),
            '\n' => return None,
            // Some programs treat the backslash as an escape here, others as a member of the set.
            '\\' => _ = letters.next().filter(|letter| !matches!(letter, '[' | ']' | '\n'))?,
            '[' if begins_closed => return None,
            '[' if letters.as_str().starts_with([':', '.', '=']) => {
                let (name, after) = letters.as_str().strip_prefix(':')?.split_once(":]")?;
                letters = name.chars().all(|letter| letter.is_ascii_lowercase()).then(|| after.chars())?;
            }
            _ => {}
        }
        text = letters.as_str();
    }
}

fn is_in_name(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}
