//! Whole jobs of a developer, through the real program (C16, C17, C19): a scripted model works in a trusted folder with
//! the preset `developer` at the level `supervised`, and the operator approves every call that asks. The model types what
//! a coding agent would type. No call may be refused.

mod go;
mod javascript;
mod python;
mod rust;
mod summary;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{AgentTerminal, TestAgent, wait_for_exit};

/// The question of an approval, up to the answers that it offers.
const QUESTION: &str = "Approve? [y/N";
/// The end of a question.
const QUESTION_END: &str = "] ";
/// The end of a question that offers a permanent approval.
const LONG_QUESTION_END: &str = "in this workspace) ";

/// A folder that the agent works in.
struct JobFolder {
    test_agent: TestAgent,
    path: PathBuf,
    /// The value of `PATH` of the user.
    search_path: String,
    /// Other variables of the user.
    variables: Vec<(&'static str, PathBuf)>,
}

/// The calls of a model, each with a text that its result must contain.
#[derive(Default)]
struct JobScript {
    calls: Vec<(Value, String)>,
}

impl JobScript {
    #[expect(clippy::needless_pass_by_value, reason = "the steps of a job read better without references")]
    fn call(mut self, tool: &str, arguments: Value, expected: &str) -> Self {
        self.calls.push((json!({ "tool": tool, "args": arguments }), expected.to_owned()));
        self
    }

    fn shell(self, line: &str, expected: &str) -> Self {
        self.call("shell", json!({ "command": line }), expected)
    }

    fn edit(self, path: &str, old_text: &str, new_text: &str) -> Self {
        let edits = json!([{ "old_text": old_text, "new_text": new_text }]);
        self.call("file_edit", json!({ "path": path, "edits": edits }), "1 replacement")
    }

    /// Returns the script as a fixture. Each round expects the result of the call before.
    fn to_fixture(&self) -> Value {
        let mut rounds: Vec<Value> = self.calls.iter().map(|(call, _)| json!({ "call": [call] })).collect();
        rounds.push(json!({ "text": "The job is done." }));
        for (round, (_, expected)) in rounds.iter_mut().skip(1).zip(&self.calls) {
            round["expect"] = json!({ "tool_result_contains": expected });
        }
        json!({ "round": rounds })
    }
}

impl JobFolder {
    /// Creates a folder of the user with these files. It isn't below `/tmp`, where commands have a folder of their own.
    fn create(files: &[(&str, &str)]) -> Self {
        let test_agent = TestAgent::new_in(Path::new("/var/tmp"));
        let path = test_agent.path().join("project");
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let path = path.canonicalize().unwrap();
        Self { test_agent, path, search_path: "/usr/bin:/bin".to_owned(), variables: Vec::new() }
    }

    /// Makes the folder a git repository in which everything is committed. The user's name is in `~/.gitconfig`.
    fn with_git(self) -> Self {
        self.run_outside(
            "git config --global user.name Dev && git config --global user.email dev@example.org && \
             git init -q . && git add . && git commit -q -m 'Start the project'",
        );
        self
    }

    /// Trusts the folder with the preset `developer` and further arguments.
    fn trust(&self, arguments: &[&str]) {
        let path = self.path.to_str().unwrap();
        let all = [&["workspace", "trust", path, "--preset", "developer", "--yes"], arguments].concat();
        let trusted = self.command(&all).output().unwrap();
        assert!(trusted.status.success(), "{trusted:?}");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.test_agent.command(arguments);
        command.current_dir(&self.path).env("PATH", &self.search_path);
        command.envs(self.variables.iter().cloned());
        command
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    /// Runs a shell line in the folder without the agent, and returns its output.
    fn run_outside(&self, line: &str) -> String {
        let mut command = Command::new("/bin/bash");
        command.args(["-euc", line]).current_dir(&self.path).env_clear().env("HOME", self.test_agent.path());
        let output = command.env("PATH", &self.search_path).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Has the model do the job, and returns the number of questions to the operator, who approves each call.
    fn run(&self, script: &JobScript) -> usize {
        let fixture = self.test_agent.path().join("job.json");
        fs::write(&fixture, script.to_fixture().to_string()).unwrap();
        let mut command = self.command(&["agent", "-m", "Do the job."]);
        command.env("COLLIECLAW_MOCK_FIXTURE", fixture);
        let (code, questions, screen) = answer_all(command);
        assert_eq!(code, 0, "{screen}");
        let receipts = self.receipts();
        assert_eq!(receipts.len(), script.calls.len(), "{screen}");
        for receipt in &receipts {
            assert_eq!(receipt["status"], "allowed", "{receipt}\n{screen}");
        }
        let verified = self.test_agent.run(&["receipt", "verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
        questions
    }

    fn receipts(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.test_agent.home().join("tool_receipts.log")).unwrap();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs a command at a terminal and approves everything. Returns the exit code, the number of questions and the text on
/// the terminal.
fn answer_all(mut command: Command) -> (i32, usize, String) {
    let mut terminal = AgentTerminal::open();
    command.stdin(terminal.slave()).stderr(terminal.slave()).stdout(terminal.slave());
    let mut child = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    let question_end = |seen: &str| {
        let question = seen.find(QUESTION)? + QUESTION.len();
        let offered = seen.get(question..)?;
        let end = if offered.starts_with("/a") { LONG_QUESTION_END } else { QUESTION_END };
        Some(question + offered.find(end)? + end.len())
    };
    let (mut questions, mut screen) = (0, String::new());
    loop {
        match terminal.wait_until_or_closed(QUESTION, question_end) {
            Ok(shown) => {
                screen.push_str(&shown);
                questions += 1;
                terminal.type_in("y\n");
            }
            Err(rest) => {
                screen.push_str(&rest);
                return (wait_for_exit(&mut child), questions, screen);
            }
        }
    }
}
