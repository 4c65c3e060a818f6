//! Scripts of `sed`, which can run and write, too.

/// No script that anyone writes in a line is longer.
const LONGEST: usize = 4096;

/// What a script of `sed` does beyond editing what it prints, if anything. It is read narrowly: what isn't known to be
/// harmless isn't.
pub(super) fn does(script: &str) -> Option<&'static str> {
    if script.len() > LONGEST {
        return Some("follow a script that is too long to be read");
    }
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        rest = after_address(rest).trim_start_matches([' ', '\t', '!', '{']);
        let mut letters = rest.chars();
        let command = letters.next()?;
        rest = letters.as_str();
        match command {
            'p' | 'd' | 'D' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z' | 'F' | '}' => {}
            ':' | 'b' | 't' | 'T' => {
                rest = rest.trim_start_matches([' ', '\t']).trim_start_matches(is_in_name);
            }
            'q' | 'Q' | 'l' => {
                rest = rest.trim_start_matches(|letter: char| letter == ' ' || letter.is_ascii_digit());
            }
            's' => match after_substitution(rest) {
                Some(after) => rest = after,
                None => return Some("run or write something"),
            },
            'y' => match after_delimited(rest, 2) {
                Some(after) => rest = after,
                None => return Some("do something that can't be read off its script"),
            },
            '#' => rest = rest.split_once('\n').map_or("", |(_, after)| after),
            'a' | 'i' | 'c' => rest = after_text(rest),
            'e' => return Some("run a command"),
            'w' | 'W' => return Some("write another file"),
            'r' | 'R' => return Some("read another file"),
            _ => return Some("do something that can't be read off its script"),
        }
        let ended = rest.trim_start_matches([' ', '\t']);
        if ended.is_empty() {
            return None;
        }
        if !ended.starts_with([';', '\n', '}']) {
            return Some("do something that can't be read off its script");
        }
    }
}

/// Behind an address such as `1,5`, `$` or `/x/,/y/`.
fn after_address(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || matches!(letter, '$' | ',' | '~' | '+' | ' ' | '\t')
        });
        match text.chars().next() {
            Some('/') => {
                text = after_delimited(text, 1)
                    .unwrap_or(text.get(1..).unwrap_or_default())
                    .trim_start_matches(['I', 'M']);
            }
            _ => return text,
        }
    }
}

/// Behind the text of `a`, `i` or `c`: it goes to the end of its line, and on if that ends with a backslash.
fn after_text(mut text: &str) -> &str {
    loop {
        let Some((line, after)) = text.split_once('\n') else { return "" };
        // Two backslashes are one that is text.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        if backslashes % 2 == 0 {
            // The newline ends the command.
            return text.get(line.len()..).unwrap_or_default();
        }
        text = after;
    }
}

/// Behind `s/a/b/flags`; `None` if a flag runs or writes.
fn after_substitution(text: &str) -> Option<&str> {
    let after = after_delimited(text, 2)?;
    let flags = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).len();
    let harmless =
        |letter: char| letter.is_ascii_digit() || matches!(letter, 'g' | 'p' | 'i' | 'I' | 'm' | 'M');
    after.get(..flags)?.chars().all(harmless).then(|| after.get(flags..))?
}

/// Behind so many texts between the delimiter that comes first.
fn after_delimited(text: &str, texts: usize) -> Option<&str> {
    let mut letters = text.char_indices();
    let (_, delimiter) = letters.next()?;
    if delimiter == '\\' || delimiter == '\n' {
        return None;
    }
    let mut left = texts;
    while let Some((place, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == '\n' {
            // Nothing between delimiters goes over a line's end.
            return None;
        } else if letter == '[' {
            // A delimiter inside brackets ends the text for some and not for others.
            let inside = text.get(place + 1..)?.split_once(']').map_or("", |(inside, _)| inside);
            if inside.contains(delimiter) {
                return None;
            }
        } else if letter == delimiter {
            left -= 1;
            if left == 0 {
                return text.get(place + letter.len_utf8()..);
            }
        }
    }
    None
}

fn is_in_name(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}
