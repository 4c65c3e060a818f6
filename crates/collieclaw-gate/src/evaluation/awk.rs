//! Programs of `awk`, which can also run commands and read and write files.

/// Longer programs are refused; people don't write them on a command line.
const MAX_PROGRAM_BYTES: usize = 4096;

/// The effect of a program that does nothing else than print, also into files.
pub(super) const WRITES_FILES: &str = "possibly write another file";

/// Returns the effect of an `awk` program beyond printing, as a verb phrase. The program is not parsed: it is
/// harmless if it contains none of the words and operators that run commands or read and write files.
pub(super) fn find_side_effect(program: &str) -> Option<&'static str> {
    // `SYMTAB` gives access to all the other variables.
    const READS: [&str; 4] = ["ARGV", "ENVIRON", "ARGC", "SYMTAB"];
    if program.len() > MAX_PROGRAM_BYTES {
        return Some("run a program that is too long to check");
    }
    // If strings and patterns can't be told from code, the whole program counts as code.
    let code = strip_literals(program);
    let checked = code.as_deref().unwrap_or(program);
    if may_run_or_read(checked) {
        return Some("run a command or read another file");
    }
    if READS.iter().any(|word| checked.contains(word)) {
        return Some("read another file");
    }
    let writes = match &code {
        Some(code) => code.split([';', '{', '}']).filter_map(from_print).any(redirects_output),
        None => from_print(program).is_some_and(|behind| behind.contains('>')),
    };
    writes.then_some(WRITES_FILES)
}

/// Returns the effect of setting a variable with `awk -v`, as a verb phrase. The value is never code: only
/// the program itself could run it.
pub(super) fn find_variable_effect(variable: &str) -> Option<&'static str> {
    /// The variables that change the behaviour of `awk`. Separators such as `FS` are harmless and not listed.
    const BUILTIN_VARIABLES: [&str; 24] = [
        "ARGC",
        "ARGIND",
        "ARGV",
        "BINMODE",
        "CONVFMT",
        "ENVIRON",
        "ERRNO",
        "FIELDWIDTHS",
        "FILENAME",
        "FNR",
        "FPAT",
        "FUNCTAB",
        "LINT",
        "NF",
        "NR",
        "OFMT",
        "PREC",
        "PROCINFO",
        "RLENGTH",
        "ROUNDMODE",
        "RSTART",
        "RT",
        "SYMTAB",
        "TEXTDOMAIN",
    ];
    let name = variable.split_once('=').unwrap_or_default().0;
    let is_name = name.starts_with(|letter: char| letter == '_' || letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric());
    (!is_name || BUILTIN_VARIABLES.contains(&name)).then_some("change a built-in variable")
}

fn may_run_or_read(code: &str) -> bool {
    // `||` is a logical operator, not a pipe.
    let piped = code.replace("||", " ").contains('|');
    let calls_system = code.match_indices("system").any(|(place, word)| {
        let after = code.get(place + word.len()..).unwrap_or_default();
        after.trim_start_matches([' ', '\t', '\n', '\r', '\\']).starts_with(['(', '#'])
    });
    piped || calls_system || code.contains("getline") || code.contains('@')
}

fn from_print(statement: &str) -> Option<&str> {
    statement.find("print").and_then(|place| statement.get(place..))
}

/// Returns true if the text from a `print` on writes a file: a `>` after `print` redirects the output, while
/// a `>` in parentheses compares.
fn redirects_output(behind: &str) -> bool {
    let mut open = 0_usize;
    for letter in behind.chars() {
        match letter {
            '(' => open += 1,
            ')' if open > 0 => open -= 1,
            '>' if open == 0 => return true,
            ')' => return behind.contains('>'),
            _ => {}
        }
    }
    open > 0 && behind.contains('>')
}

/// Removes strings, patterns and comments; `None` if it isn't certain where they begin and end.
fn strip_literals(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut rest = program;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..)?;
        rest = match letter {
            '"' => {
                code.push('"');
                after_closed(after, '"')?
            }
            '/' => match code.trim_end_matches([' ', '\t']).chars().next_back() {
                // A `/` at the beginning of an expression can't be a division, so it starts a pattern.
                None | Some('{' | '}' | ';' | '(' | ',' | '~' | '!' | '&' | '|' | '\n') => {
                    let pattern = after_closed(after, '/')?;
                    // Versions of `awk` disagree about a `/` in brackets: it may or may not end the pattern.
                    if after.get(..after.len() - pattern.len())?.contains('[') && pattern.contains('/') {
                        return None;
                    }
                    code.push('"');
                    pattern
                }
                Some(before) if before.is_ascii_digit() => {
                    code.push('/');
                    after
                }
                Some(_) => return None,
            },
            '#' => after.find('\n').and_then(|end| after.get(end..)).unwrap_or_default(),
            '\\' => return None,
            letter => {
                code.push(letter);
                after
            }
        };
    }
    Some(code)
}

/// Returns the text after the closing delimiter, which must be on the same line.
fn after_closed(text: &str, closes: char) -> Option<&str> {
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\n' => return None,
            '\\' => {
                letters.next().filter(|(_, escaped)| *escaped != '\n')?;
            }
            letter if letter == closes => return text.get(place + letter.len_utf8()..),
            _ => {}
        }
    }
    None
}
