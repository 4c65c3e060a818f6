//! `cargo xtask bypass`: tries every known way around Shepherd on the real daemon, and prints the results.
//!
//! The rows are those of `docs/bypass.md`, which a test compares with the tests themselves.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::terminal;
use crate::workspace::CargoWorkspace;

const PAGE: &str = "docs/bypass.md";

/// The test module. Each row of the page has a test of the same name in it.
const MODULE: &str = "bypass::";

/// The width at which sentences are wrapped.
const WIDTH: usize = 84;

#[derive(Debug, PartialEq, Eq)]
struct BypassAttempt<'page> {
    name: &'page str,
    tries: &'page str,
    does: &'page str,
    cannot: &'page str,
}

/// Runs the tests and prints the table. Fails unless all tests pass.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    let page = std::fs::read_to_string(workspace.root.join(PAGE)).context(PAGE)?;
    let attempts = parse_rows(&page);
    if attempts.is_empty() {
        bail!("{PAGE} has no table of bypass attempts");
    }
    let stopped = passed_tests(workspace)?;
    println!();
    for attempt in &attempts {
        let mark =
            if stopped.contains(attempt.name) { terminal::success("✓") } else { terminal::failure("✗") };
        println!("{mark} {}", terminal::heading(&attempt.name.replace('_', " ")));
        for (who, sentence) in
            [("a child", attempt.tries), ("response", attempt.does), ("limit", attempt.cannot)]
        {
            let mut who = format!("{who:>10}  ");
            for line in wrap_sentence(sentence, WIDTH) {
                println!("{who}{line}");
                who = " ".repeat(12);
            }
        }
    }
    let open: Vec<_> =
        attempts.iter().map(|attempt| attempt.name).filter(|name| !stopped.contains(*name)).collect();
    println!("\n{} of {} attempts end as docs/bypass.md says", attempts.len() - open.len(), attempts.len());
    if !open.is_empty() {
        bail!(
            "unexpected results: {}\nhelp: `cargo nextest run -p shepherdd -E 'test({MODULE})'` shows why",
            open.join(", ")
        );
    }
    Ok(())
}

/// Runs the tests and returns the names of those that passed.
fn passed_tests(workspace: &CargoWorkspace) -> Result<BTreeSet<String>> {
    let mut command = workspace.cargo_command();
    command.args(["nextest", "run", "--locked", "-p", "shepherdd", "--no-fail-fast", "--color=never", "-E"]);
    command.arg(format!("test({MODULE})")).args(["--status-level", "pass", "--failure-output", "immediate"]);
    let mut runner = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cargo nextest")?;
    let mut passed = BTreeSet::new();
    for line in BufReader::new(runner.stderr.take().context("no output of cargo nextest")?).lines() {
        let line = line?;
        println!("{line}");
        passed.extend(passed_test(&line).map(str::to_owned));
    }
    runner.wait()?;
    Ok(passed)
}

/// Returns the name of the test if a line of nextest's output reports that it passed.
fn passed_test(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("PASS ")?.split(MODULE).nth(1)
}

/// Returns the rows of the page's table.
fn parse_rows(page: &str) -> Vec<BypassAttempt<'_>> {
    page.lines().filter_map(parse_row).collect()
}

fn parse_row(line: &str) -> Option<BypassAttempt<'_>> {
    let inside = line.strip_prefix("| `")?.strip_suffix(" |")?;
    let [name, tries, does, cannot] = inside.split(" | ").collect::<Vec<_>>().try_into().ok()?;
    Some(BypassAttempt { name: name.trim_end_matches('`'), tries, does, cannot })
}

/// Wraps a sentence at `width` characters. A longer word gets a line of its own.
fn wrap_sentence(sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_with_a_name() {
        let page = "| test | a child … | what Shepherd does | what it can't do |\n| --- | --- | --- | --- |\n| `one_way` | a b | c; d | e |\n";
        assert_eq!(
            parse_rows(page),
            [BypassAttempt { name: "one_way", tries: "a b", does: "c; d", cannot: "e" }]
        );
    }

    #[test]
    fn only_a_test_that_passed_counts() {
        let line =
            |word: &str| format!("        {word} [   0.878s] ( 5/18) shepherdd::it bypass::clock_back");
        assert_eq!(passed_test(&line("PASS")), Some("clock_back"));
        assert_eq!(passed_test(&line("FAIL")), None);
        assert_eq!(passed_test("bypass::clock_back"), None);
    }

    #[test]
    fn sentences_are_set_at_words() {
        assert_eq!(wrap_sentence("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_sentence("extraordinary", 7), ["extraordinary"]);
    }
}
