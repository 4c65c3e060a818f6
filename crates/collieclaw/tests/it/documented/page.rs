//! Runs the commands of a page.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use super::block::{DocBlock, DocCommand, blocks, parse_commands};
use super::match_lines::PlaceholderNames;
use crate::support::{AgentTerminal, ChildGuard, TestAgent, noon_time_zone, program, wait_for_exit};

/// The prompt in front of typed text.
const PROMPTS: [&str; 8] = [
    "collieclaw> ",
    "Your answer: ",
    "[y/N] ",
    "in this workspace) ",
    "[~/collieclaw-workspace] ",
    "[supervised] ",
    "[local] ",
    "[no] ",
];

/// The home folder in the pages.
const HOME: &str = "/home/you";

/// The agent that runs a page, and the replacements for this machine.
pub(crate) struct DocPage {
    pub(crate) test_agent: TestAgent,
    names: PlaceholderNames,
    replacements: Vec<(String, String)>,
    running: Vec<RunningCommand>,
}

struct RunningCommand {
    child: ChildGuard,
    terminal: AgentTerminal,
}

impl DocPage {
    pub(crate) fn new(test_agent: TestAgent) -> Self {
        let bin = test_agent.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(program(), bin.join("collieclaw")).unwrap();
        Self { test_agent, names: PlaceholderNames::default(), replacements: Vec::new(), running: Vec::new() }
    }

    /// Replaces a text of the page, such as a port, with its value in this test.
    pub(crate) fn with(mut self, page: &str, here: &str) -> Self {
        self.replacements.push((page.to_owned(), here.to_owned()));
        self
    }

    pub(crate) fn run(mut self, name: &str) -> TestAgent {
        let text = crate::docs::document(&format!("docs/{name}"));
        for block in blocks(&text) {
            let place = format!("docs/{name}:{}", block.line);
            let mut words = block.info.split_whitespace().skip(1);
            match (block.info.split_whitespace().next(), words.next()) {
                // Needs a service manager: `cargo xtask test --only units`.
                (Some("console"), Some("systemd")) => {}
                (Some("console"), more) => self.run_block(&block, more, &place),
                (Some("toml"), Some("config")) => self.configure(&block.text, &place),
                (_, Some(word)) => {
                    if let Some(path) = word.strip_prefix("file=") {
                        self.write(path, &block.text);
                    }
                }
                _ => {}
            }
        }
        for mut running in self.running.drain(..) {
            let process = rustix::process::Pid::from_child(&running.child.0);
            rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
            wait_for_exit(&mut running.child.0);
        }
        self.test_agent
    }

    fn localize(&self, text: &str) -> String {
        let here = |text: String, (page, here): &(String, String)| text.replace(page.as_str(), here);
        self.replacements.iter().fold(self.names.substitute(text), here)
    }

    fn write(&self, path: &str, text: &str) {
        let path: PathBuf = self.test_agent.path().join(path.strip_prefix("~/").unwrap_or(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, self.localize(text)).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn configure(&self, text: &str, place: &str) {
        self.write("~/.collieclaw/config.toml", text);
        let validate = self.test_agent.run(&["config", "validate"]);
        assert_eq!(validate.code, 0, "{place}: {}", validate.err);
    }

    fn run_block(&mut self, block: &DocBlock, more: Option<&str>, place: &str) {
        let all = parse_commands(&block.text);
        for (number, typed) in all.iter().enumerate() {
            let mut at = self.spawn_shell(typed);
            if more == Some("running") && number + 1 == all.len() {
                let last = self.localize(typed.shown.last().expect("a line that tells that it runs"));
                let last = last.split('…').next().unwrap_or_default().trim_end();
                at.terminal.wait_until(last, |seen| strip_escapes(seen).contains(last).then_some(seen.len()));
                self.running.push(at);
                continue;
            }
            let said = self.answer_prompts(&mut at, typed);
            let code = wait_for_exit(&mut at.child.0);
            let actual = self.normalize_output(&(said + &at.terminal.read_to_end()));
            assert_eq!(code, typed.exit_code(), "{place}: $ {}\n{actual}", typed.command);
            if typed.shown.is_empty() {
                continue;
            }
            let shown: Vec<String> = typed.shown.iter().map(|line| self.localize(line)).collect();
            let missing = self.names.first_mismatch(&shown, &actual.lines().collect::<Vec<_>>());
            assert_eq!(missing, None, "{place}: $ {}\n{actual}", typed.command);
        }
    }

    fn spawn_shell(&self, typed: &DocCommand) -> RunningCommand {
        let mut terminal = AgentTerminal::open();
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", &self.localize(&typed.command)])
            .env_clear()
            .env("HOME", self.test_agent.path())
            .env("PATH", format!("{}/bin:/usr/bin:/bin", self.test_agent.path().display()))
            // A terminal without colours and cursor movements, so that the output is compared as it is.
            .env("TERM", "dumb")
            .env("LANG", "C.UTF-8")
            .env("TZ", noon_time_zone())
            .current_dir(self.test_agent.path())
            .stdin(terminal.slave())
            .stdout(terminal.slave())
            .stderr(terminal.slave());
        let child = ChildGuard(shell.spawn().unwrap());
        drop(shell);
        terminal.close_slave();
        RunningCommand { child, terminal }
    }

    /// Answers every question as the page does.
    fn answer_prompts(&self, at: &mut RunningCommand, typed: &DocCommand) -> String {
        let mut said = String::new();
        for line in &typed.shown {
            // An empty answer: pages don't contain the trailing space of the question.
            let line = self.localize(line) + " ";
            let answer = PROMPTS.iter().find_map(|prompt| Some((prompt, line.split_once(prompt)?)));
            let Some((prompt, (before, answer))) = answer else { continue };
            said.push_str(&at.terminal.wait_for(&format!("{before}{prompt}")));
            at.terminal.type_in(&format!("{}\n", answer.trim_end()));
        }
        said
    }

    /// Returns the output as a page shows it: final lines only, and paths in the home of `you`.
    fn normalize_output(&self, actual: &str) -> String {
        let last = |line: &str| line.rsplit('\r').next().unwrap_or_default().to_owned();
        let lines: Vec<String> = actual.lines().map(|line| last(&strip_escapes(line))).collect();
        lines.join("\n").replace(self.test_agent.path().to_str().unwrap(), HOME)
    }
}

/// Removes the sequences that move the cursor or clear a line.
fn strip_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        text + &part[end..]
    })
}
