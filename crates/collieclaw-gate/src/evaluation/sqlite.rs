//! Commands of `sqlite3`, some of which run programs or open other files.

/// Longer input is refused; people don't write it on a command line.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// Dot-commands that only print, or change how `sqlite3` prints.
const HARMLESS_COMMANDS: [&str; 30] = [
    "bail",
    "binary",
    "changes",
    "databases",
    "dbinfo",
    "dump",
    "echo",
    "eqp",
    "exit",
    "explain",
    "fullschema",
    "header",
    "headers",
    "help",
    "indexes",
    "indices",
    "limit",
    "lint",
    "mode",
    "nullvalue",
    "print",
    "quit",
    "schema",
    "separator",
    "show",
    "stats",
    "tables",
    "timeout",
    "timer",
    "width",
];

/// Words of SQL that open other files or load code.
const FILE_WORDS: [&str; 6] = ["attach", "readfile", "writefile", "load_extension", "edit", "vacuum"];

/// Returns the effect of an input of `sqlite3` beyond its own database, as a verb phrase.
pub(super) fn find_side_effect(input: &str) -> Option<&'static str> {
    if input.len() > MAX_INPUT_BYTES {
        return Some("run commands that are too long to check");
    }
    for line in input.lines() {
        let Some(command) = line.trim_start().strip_prefix('.') else { continue };
        let name: String = command.chars().take_while(char::is_ascii_alphanumeric).collect();
        // `.sh` abbreviates `.shell`, so only whole names count.
        if !HARMLESS_COMMANDS.contains(&name.as_str()) {
            return Some("run a program, or read or write another file");
        }
    }
    let lower = input.to_ascii_lowercase();
    let mut words = lower.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
    // A column may have such a name, but it is rare, and a question is never wrong.
    words.any(|word| FILE_WORDS.contains(&word)).then_some("possibly read or write another file")
}

#[cfg(test)]
mod tests {
    use super::find_side_effect;

    #[test]
    fn queries_pass_and_commands_that_leave_the_database_dont() {
        for input in
            ["SELECT 1", ".tables", ".schema users", "PRAGMA table_info(x);", ".mode csv\nSELECT * FROM t"]
        {
            assert_eq!(find_side_effect(input), None, "{input}");
        }
        for input in [
            ".shell id",
            ".sh id",
            ".system id",
            ".import '|id' t",
            ".output x",
            ".once x",
            ".read x",
            ".load x",
            ".open /x",
            "SELECT 1;\n .shell id",
            "ATTACH 'x' AS y",
            "select readfile('x')",
            "VACUUM INTO 'x'",
            "SELECT load_extension('x')",
            ".backup x",
            ".log x",
            ".excel",
            ".archive -x",
        ] {
            assert!(find_side_effect(input).is_some(), "{input}");
        }
    }
}
