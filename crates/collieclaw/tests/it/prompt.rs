//! The prompt (C5.2) at a real terminal.

use std::io::Read;
use std::process::Stdio;

use crate::support::{AgentTerminal, TestAgent, wait_for_exit};

pub(crate) struct PromptSession {
    pub(crate) terminal: AgentTerminal,
    agent: std::process::Child,
}

pub(crate) fn start_prompt(test_agent: &TestAgent) -> PromptSession {
    let mut terminal = AgentTerminal::open();
    let mut command = test_agent.command(&["agent"]);
    command.env("TERM", "xterm").stdin(terminal.slave()).stdout(terminal.slave()).stderr(terminal.slave());
    let agent = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for("collieclaw> ");
    PromptSession { terminal, agent }
}

impl PromptSession {
    pub(crate) fn type_and_wait(&mut self, typed: &str, shown: &str) {
        self.terminal.type_in(typed);
        self.terminal.type_in("\r");
        self.terminal.wait_for(shown);
    }

    /// Waits for the prompt before leaving, because only text typed after it appears is read.
    pub(crate) fn leave(mut self) -> (i32, String) {
        self.terminal.wait_for("collieclaw> ");
        self.terminal.type_in("/exit\r");
        let code = wait_for_exit(&mut self.agent);
        (code, self.terminal.read_to_end())
    }
}

#[test]
fn commands_tell_of_tools_policy_and_memory() {
    let test_agent = TestAgent::new();
    test_agent.run(&["agent", "-m", "the Aardvark adapter is green"]);
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("/help", "/policy");
    dialog.type_and_wait("/tools", "file_read");
    dialog.type_and_wait("/policy", "supervised");
    dialog.type_and_wait("/memory aardvark", "adapter");
    dialog.type_and_wait("/nonsense", "no such command");
    dialog.type_and_wait("hello there", "You said: hello there");
    assert_eq!(dialog.leave().0, 0);
}

/// C7.6: missing parts of the sandbox are shown before a command as well as after it.
#[test]
fn the_policy_and_the_receipt_say_the_same_of_the_sandbox() {
    let test_agent = TestAgent::new().with_full_autonomy();
    assert_eq!(test_agent.run(&["tool", "run", "shell", "--json", r#"{"command":"true"}"#]).code, 0);
    let level = test_agent.receipts()[0]["sandbox"].as_str().unwrap().to_owned();
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("/policy", &format!("sandbox:   {level}\r\n"));
    assert_eq!(dialog.leave().0, 0);
    let doctor = test_agent.run(&["doctor"]).out;
    let missing = level.strip_prefix("without ").map(|missing| missing.split(", ").collect::<Vec<_>>());
    for missing in missing.unwrap_or_default() {
        assert!(doctor.contains(&format!("✗ {missing}: ")), "{missing}: {doctor}");
    }
    assert!(doctor.contains("✓ process trees: "), "{doctor}");
}

#[test]
fn commands_are_completed_and_lines_come_back_also_in_the_next_session() {
    let test_agent = TestAgent::new();
    let mut first = start_prompt(&test_agent);
    first.type_and_wait("/po\t", "supervised");
    first.terminal.wait_for("collieclaw> ");
    first.type_and_wait("\u{1b}[A", "supervised");
    first.leave();
    let mut second = start_prompt(&test_agent);
    // The newest line is the one that ended the session.
    second.type_and_wait("\u{1b}[A\u{1b}[A", "supervised");
    assert_eq!(second.leave().0, 0);
}

#[test]
fn a_history_cleared_elsewhere_does_not_come_back() {
    let test_agent = TestAgent::new();
    let history = || std::fs::read_to_string(test_agent.home().join("history")).unwrap();
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("my secret word", "You said: my secret word");
    dialog.terminal.wait_for("collieclaw> ");
    assert_eq!(test_agent.run(&["memory", "clear", "--yes"]).code, 0);
    dialog.type_and_wait("something else", "You said: something else");
    assert_eq!(history(), "#V2\nsomething else\n");
    dialog.terminal.wait_for("collieclaw> ");

    // Another prompt has started a new history, and its content stays.
    assert_eq!(test_agent.run(&["memory", "clear", "--yes"]).code, 0);
    std::fs::write(test_agent.home().join("history"), "#V2\na line that is long enough\n").unwrap();
    dialog.type_and_wait("and more", "You said: and more");
    assert_eq!(history(), "#V2\na line that is long enough\nand more\n");
    assert_eq!(dialog.leave().0, 0);
}

#[test]
fn a_tool_call_is_shown_and_a_write_is_asked_about() {
    let test_agent = TestAgent::new();
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("list files", "file_list");
    dialog.type_and_wait("write a.txt hello", "Approve? [y/N] ");
    dialog.terminal.type_in("y\r");
    dialog.terminal.wait_for("collieclaw> ");
    dialog.type_and_wait("write b.txt hello", "Approve? [y/N] ");
    dialog.terminal.type_in("\r");
    dialog.leave();
    assert_eq!(std::fs::read_to_string(test_agent.workspace().join("a.txt")).unwrap(), "hello");
    assert!(!test_agent.workspace().join("b.txt").exists());
}

#[test]
fn input_typed_before_a_question_does_not_answer_it() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\ndelay = \"700ms\"\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n\
         [[round]]\ntext = \"over\"\n",
    );
    let mut dialog = start_prompt(&test_agent);
    dialog.terminal.type_in("go\r");
    dialog.terminal.wait_for("thinking");
    dialog.terminal.type_in("y\ny\n");
    dialog.terminal.wait_for("Approve? [y/N] ");
    dialog.terminal.type_in("\n");
    dialog.terminal.wait_for("over");
    dialog.leave();
    assert!(!test_agent.workspace().join("x").exists());
}

#[test]
fn escape_sequences_of_model_and_arguments_are_made_visible() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"a\\u001b[2Jb\\u202e\" }\n\
         [[round]]\ntext = \"c\\u001b]0;title\\u0007d\"\n",
    );
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("go", "a\\u{1b}[2Jb\\u{202e}");
    dialog.terminal.wait_for("Approve? [y/N] ");
    dialog.terminal.type_in("n\n");
    dialog.terminal.wait_for("c\\u{1b}]0;title\\u{7}d");
    dialog.leave();
}

/// Control sequences in output never reach the terminal, not even if a program opens the terminal itself.
#[test]
fn escape_sequences_of_a_command_are_made_visible() {
    let test_agent = TestAgent::new().with_full_autonomy().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"bash attack.sh\" }\n\
         [[round]]\ntext = \"{tool_result} and over\"\n",
    );
    let attack = "printf '\\033[41mRED\\033]0;owned\\007'; printf '\\033[41mTTY' > /dev/tty; \
                  printf '\\033[41mERR' >&2; for f in 0 1 2; do printf '\\033[41mFD' > /proc/self/fd/$f; done; \
                  for t in /dev/pts/* /dev/console; do printf '\\033[41mPTS' > $t; done; echo finished";
    std::fs::write(test_agent.workspace().join("attack.sh"), attack).unwrap();
    let mut dialog = start_controlled_prompt(&test_agent);
    dialog.terminal.type_in("go\r");
    let shown = dialog.terminal.wait_for("and over");
    for raw in ["\u{1b}[41m", "\u{1b}]0;", "\u{7}"] {
        assert!(!shown.contains(raw), "{shown:?}");
    }
    for actual in ["\\u{1b}[41mRED\\u{1b}]0;owned\\u{7}", "\\u{1b}[41mERR", "finished"] {
        assert!(shown.contains(actual), "{actual}: {shown:?}");
    }
    assert_eq!(dialog.leave().0, 0);
}

/// C5.2: the usual editing keys.
#[test]
fn a_line_can_be_edited_before_it_is_sent() {
    let mut dialog = start_prompt(&TestAgent::new());
    let check = |dialog: &mut PromptSession, typed: &str, said: &str| {
        dialog.type_and_wait(typed, &format!("You said: {said}"));
        dialog.terminal.wait_for("collieclaw> ");
    };
    let (left, home, delete, backspace) = ("\u{1b}[D", "\u{1}", "\u{1b}[3~", "\u{7f}");
    check(&mut dialog, &format!("helo{left}l"), "hello");
    check(&mut dialog, &format!("world{home}hello "), "hello world");
    check(&mut dialog, "nonsense\u{15}sense", "sense");
    check(&mut dialog, "one two three\u{17}four", "one two four");
    check(&mut dialog, &format!("café{backspace}ë 東京{backspace}"), "cafë 東");
    check(&mut dialog, &format!("xyes{home}{delete}"), "yes");
    dialog.terminal.type_in("/exit\r");
    assert_eq!(wait_for_exit(&mut dialog.agent), 0);
}

/// Only the start of an overlong line can be an answer; the rest is not sent to the model.
#[test]
fn an_endless_answer_to_a_question_is_a_no_and_nothing_more() {
    let test_agent = TestAgent::new();
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("write x y", "Approve? [y/N] ");
    dialog.terminal.type_in(&format!("{}\n", "y".repeat(2_000)));
    dialog.terminal.wait_for("collieclaw> ");
    dialog.terminal.type_in("hello\r");
    let shown = dialog.terminal.wait_for("You said: hello");
    assert!(!shown.contains("You said: y"), "{shown}");
    assert_eq!(dialog.leave().0, 0);
    assert!(!test_agent.workspace().join("x").exists());
}

#[test]
fn the_model_can_ask_at_the_prompt() {
    let test_agent =
        TestAgent::new().with_config_change("\"shell\"]", "\"shell\", \"ask_user\"]").with_mock_fixture(
            "[[round]]\n[[round.call]]\ntool = \"ask_user\"\nargs = { question = \"How many?\" }\n\
         [[round]]\ntext = \"so {tool_result}\"\n",
        );
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("go", "Your answer: ");
    dialog.terminal.type_in("three\n");
    dialog.terminal.wait_for("so three");
    assert_eq!(dialog.leave().0, 0);
    assert_eq!(test_agent.receipt_summaries(), [["ask_user", "allowed", "looks-only"]]);
}

#[test]
fn the_end_of_input_leaves_and_a_headless_talk_that_was_denied_is_no_success() {
    let test_agent = TestAgent::new();
    let mut command = test_agent.command(&["agent"]);
    let mut agent = command.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut agent.stdin.take().unwrap(), b"list files\nwrite x y\n").unwrap();
    let mut out = String::new();
    agent.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(wait_for_exit(&mut agent), 5, "{out}");
    assert!(!test_agent.workspace().join("x").exists());
}

#[test]
fn a_denial_before_an_error_is_not_forgotten() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_read\"\nargs = { path = \"/etc/passwd\" }\n[[round]]\nerror = \"network\"\n",
    );
    let mut command = test_agent.command(&["agent"]);
    let mut agent = command.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut agent.stdin.take().unwrap(), b"go\n").unwrap();
    assert_eq!(wait_for_exit(&mut agent), 6);
}

#[test]
fn a_question_without_a_visible_prompt_is_not_answered() {
    let test_agent = TestAgent::new();
    let mut terminal = AgentTerminal::open();
    let elsewhere = std::fs::File::create(test_agent.path().join("errors")).unwrap();
    // Without a controlling terminal there is no other place to ask.
    let mut command = test_agent.command_through("setsid", &["--wait"], &["agent"]);
    command.env("TERM", "xterm").stdin(terminal.slave()).stdout(terminal.slave()).stderr(elsewhere);
    let mut agent = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for("collieclaw> ");
    terminal.type_in("write x y\r");
    terminal.wait_for("no operator is available");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("/exit\r");
    assert_eq!(wait_for_exit(&mut agent), 0);
    assert!(!test_agent.workspace().join("x").exists());
}

/// Starts the program with a controlling terminal: only its foreground process group gets Ctrl-C and Ctrl-Z.
fn start_controlled_prompt(test_agent: &TestAgent) -> PromptSession {
    let mut terminal = AgentTerminal::open();
    let mut command = test_agent.command_through("setsid", &["--ctty", "--wait"], &["agent"]);
    command.env("TERM", "xterm").stdin(terminal.slave()).stdout(terminal.slave()).stderr(terminal.slave());
    let agent = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for("collieclaw> ");
    PromptSession { terminal, agent }
}

#[test]
fn redirected_answers_keep_the_prompt_on_the_terminal() {
    let test_agent = TestAgent::new();
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    let mut terminal = AgentTerminal::open();
    let mut command = test_agent.command_through("setsid", &["--ctty", "--wait"], &["agent"]);
    command.env("TERM", "xterm").stdin(terminal.slave()).stderr(terminal.slave());
    let mut agent = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for("All tools are stopped; `collieclaw estop --clear`");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("hello\r");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("/exit\r");
    let mut out = String::new();
    agent.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(wait_for_exit(&mut agent), 0);
    assert!(out.starts_with("You said: hello\n"), "{out:?}");
    assert!(!out.contains('\u{1b}') && !out.contains("collieclaw> "), "{out:?}");
}

#[test]
fn ctrl_c_at_a_question_cancels_the_whole_turn() {
    let write = "[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n";
    let test_agent = TestAgent::new().with_mock_fixture(&format!("[[round]]\n{}", write.repeat(3)));
    let mut dialog = start_controlled_prompt(&test_agent);
    dialog.type_and_wait("go", "Approve? [y/N] ");
    dialog.terminal.type_in("\u{3}");
    dialog.terminal.wait_for("(cancelled)");
    assert_eq!(dialog.leave().0, 0);
    assert_eq!(test_agent.receipt_summaries(), [["file_write", "denied", "cancelled"]; 3]);
    let audit = std::fs::read_to_string(test_agent.home().join("audit.log")).unwrap();
    let denied =
        audit.lines().filter(|line| line.contains("\"tool_denied\"") && line.contains("\"cancelled\""));
    assert_eq!(denied.count(), 3, "{audit}");
}

#[test]
fn ctrl_z_does_not_suspend_so_that_the_emergency_stop_works() {
    let test_agent = TestAgent::new()
        .with_full_autonomy()
        .with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"sleep 14\" }\n[[round]]\ntext = \"over\"\n");
    let mut dialog = start_controlled_prompt(&test_agent);
    dialog.type_and_wait("go", "sleep 14");
    dialog.terminal.type_in("\u{1a}");
    // Leaves time for the terminal to stop the program, which must not happen.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    dialog.terminal.wait_for("over");
    dialog.leave();
    assert_eq!(test_agent.receipt_summaries(), [["shell", "failed", "estop"]]);
}

#[test]
fn ctrl_c_cancels_the_turn_with_its_command_and_not_the_program() {
    let test_agent = TestAgent::new().with_full_autonomy().with_mock_fixture(
        "[[round]]\ndelay = \"50s\"\ntext = \"never\"\n\
             [[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"sleep 14\" }\n\
             [[round]]\ntext = \"still here\"\n",
    );
    let PromptSession { mut terminal, mut agent } = start_controlled_prompt(&test_agent);
    terminal.type_in("first\r");
    terminal.wait_for("thinking");
    terminal.type_in("\u{3}");
    terminal.wait_for("(cancelled)");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("second\r");
    terminal.wait_for("sleep 14");
    terminal.type_in("\u{3}");
    terminal.wait_for("(cancelled)");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("\u{3}");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("third\r");
    terminal.wait_for("still here");
    terminal.wait_for("collieclaw> ");
    terminal.type_in("\u{4}");
    assert_eq!(wait_for_exit(&mut agent), 0);
    assert_eq!(test_agent.receipt_summaries(), [["shell", "failed", "cancelled"]]);
}
