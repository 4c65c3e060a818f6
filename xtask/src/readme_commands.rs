//! Runs the commands in the README, so that they stay correct.
//!
//! A fenced block whose info string is `sh run` is run by bash at the root of the workspace. Other
//! blocks are not run.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::located_error::LocatedError;
use crate::workspace::{CargoWorkspace, lint_while_compiling, run_to_end};

const README: &str = "README.md";

/// The time limit of a block: long enough to compile the whole workspace.
const LIMIT_SECONDS: &str = "1200";

/// A fenced block of a Markdown text.
#[derive(Debug, PartialEq, Eq)]
struct ReadmeBlock<'text> {
    /// The line of the opening fence, starting at 1.
    line: usize,
    /// The words after the opening fence.
    info: Vec<&'text str>,
    code: String,
}

/// Runs every block of the README that is marked with `run`.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    let text = std::fs::read_to_string(workspace.root.join(README)).context(README)?;
    let blocks: Vec<_> = parse_blocks(&text).into_iter().filter(is_runnable).collect();
    if blocks.is_empty() {
        let cure = "mark the blocks that readers will paste as ```sh run";
        return Err(LocatedError::new(README, "no block is marked with `run`", cure).into());
    }
    for block in &blocks {
        refuse_recursion(block)?;
        println!("{README}:{}", block.line);
        for line in block.code.lines() {
            println!("  $ {line}");
        }
        let mut shell = Command::new("timeout");
        lint_while_compiling(&mut shell);
        shell.args(["--kill-after=10", LIMIT_SECONDS, "bash", "-euo", "pipefail", "-c", &block.code]);
        if run_to_end(shell.current_dir(&workspace.root)).is_err() {
            bail!(
                "{README}:{}: the commands of this block failed\nhelp: correct the block, or the program that failed",
                block.line
            );
        }
    }
    Ok(())
}

fn is_runnable(block: &ReadmeBlock<'_>) -> bool {
    block.info.first() == Some(&"sh") && block.info.contains(&"run")
}

fn refuse_recursion(block: &ReadmeBlock<'_>) -> Result<(), LocatedError> {
    if block.code.contains("cargo xtask test") || block.code.contains(".ci/run") {
        let place = format!("{README}:{}", block.line);
        let cure = "remove `run` from its info string";
        return Err(LocatedError::new(place, "this block would run the tests, which run this block", cure));
    }
    Ok(())
}

/// Returns the fenced blocks of a text. A block that is never closed extends to the end, as in CommonMark.
fn parse_blocks(text: &str) -> Vec<ReadmeBlock<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some((fence, info)) = opening_fence(line) else { continue };
        let code: Vec<_> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != fence).collect();
        blocks.push(ReadmeBlock {
            line: index + 1,
            info: info.split_whitespace().collect(),
            code: code.join("\n"),
        });
    }
    blocks
}

fn opening_fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let ticks = line.chars().take_while(|character| *character == '`').count();
    (ticks >= 3).then(|| line.split_at(ticks)).filter(|(_, info)| !info.contains('`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# T\n```sh run\ntrue\necho a\n```\ntext `x`\n\n````md\n```sh run\nfalse\n```\n````\n```sh\nls\n```\n";

    #[test]
    fn only_shell_blocks_marked_as_such_are_run() {
        let marked: Vec<_> = parse_blocks(TEXT).into_iter().filter(is_runnable).collect();
        let expected = ReadmeBlock { line: 2, info: vec!["sh", "run"], code: "true\necho a".to_owned() };
        assert_eq!(marked, [expected]);
    }

    #[test]
    fn a_block_inside_a_longer_fence_is_text() {
        let infos: Vec<_> = parse_blocks(TEXT).iter().map(|block| block.info.join(" ")).collect();
        assert_eq!(infos, ["sh run", "md", "sh"]);
    }

    #[test]
    fn a_block_that_would_run_the_tests_is_refused() {
        let text = "```sh run\ncargo xtask test\n```";
        let refusal = refuse_recursion(&parse_blocks(text)[0]).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "README.md:1: this block would run the tests, which run this block\nhelp: remove `run` from its info string"
        );
    }
}
