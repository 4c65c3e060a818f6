//! Programs of `awk`, which can run, read and write, too.

/// No program that anyone writes in a line is longer.
const MAX_PROGRAM_BYTES: usize = 4096;

/// What a program of `awk` does beyond printing, if anything. It is enough that none of the words and signs occurs
/// with which it could run, read or write.
pub(super) fn find_side_effect(program: &str) -> Option<&'static str> {
    // `SYMTAB` is another name for all of them.
    const READS: [&str; 4] = ["ARGV", "ENVIRON", "ARGC", "SYMTAB"];
    if program.len() > MAX_PROGRAM_BYTES {
        return Some("follow a program that is too long to be read");
    }
    // Where a text or a pattern can't be told from code, all of it counts as code.
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
    writes.then_some("write another file, perhaps")
}

/// What a program of `awk` does because a variable is set from outside, if anything. Its text is never code: whatever
/// runs it, a program must say.
pub(super) fn find_variable_effect(variable: &str) -> Option<&'static str> {
    /// The separators are text, too.
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
    (!is_name || BUILTIN_VARIABLES.contains(&name)).then_some("set a variable of its own")
}

fn may_run_or_read(code: &str) -> bool {
    // `||` joins conditions.
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

/// `print > "file"`: a `>` behind a `print` in the same statement writes. Before it, and in brackets, it compares.
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

/// A program without its texts, patterns and comments; `None` if it isn't certain where they begin and end.
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
                // Nothing is divided where an expression begins.
                None | Some('{' | '}' | ';' | '(' | ',' | '~' | '!' | '&' | '|' | '\n') => {
                    let pattern = after_closed(after, '/')?;
                    // Whether `[/]` ends the pattern depends on who reads it.
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

/// Behind the sign that closes a text, on the same line.
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
