//! `ask_user` (C6.2): a question to the person; the answer is data, and approves nothing.

use serde_json::json;

use crate::support::{AgentTerminal, TestAgent, wait_for_exit};

const PROMPT: &str = "Your answer: ";

fn call_ask_user(dialog: &[(&str, &str)], arguments: &serde_json::Value) -> crate::support::AgentOutput {
    let test_agent = TestAgent::new();
    let done = test_agent.at_terminal(&["tool", "run", "ask_user", "--json", &arguments.to_string()], dialog);
    let receipts = test_agent.receipts();
    assert_eq!(receipts.len(), 1, "one call, one receipt");
    done
}

#[test]
fn an_answer_comes_back_as_text() {
    let done = call_ask_user(&[(PROMPT, "two of them, please\n")], &json!({ "question": "How many?" }));
    assert_eq!((done.code, done.out.as_str()), (0, "two of them, please\n"));
}

#[test]
fn a_choice_is_made_by_number_or_by_name_and_nothing_else_is_taken() {
    let arguments = json!({ "question": "Which?", "choices": ["red", "blue"] });
    assert_eq!(call_ask_user(&[("2) blue", ""), (PROMPT, "2\n")], &arguments).out, "blue\n");
    assert_eq!(call_ask_user(&[(PROMPT, "green\n"), (PROMPT, "red\n")], &arguments).out, "red\n");
    let none = call_ask_user(&[(PROMPT, "3\n"), (PROMPT, "0\n"), (PROMPT, "\n")], &arguments);
    assert!(none.code == 1 && none.err.contains("gave no answer"), "{none:?}");
}

#[test]
fn without_a_terminal_no_question_is_asked() {
    let test_agent = TestAgent::new();
    let done = test_agent.run(&["tool", "run", "ask_user", "--json", r#"{"question":"Anybody?"}"#]);
    assert!(done.code == 1 && done.err.contains("no operator is available to answer"), "{done:?}");
    assert_eq!(test_agent.receipt_summaries(), [["ask_user", "failed", "tool-failed"]]);
}

#[test]
fn the_question_can_not_pass_for_one_of_ours() {
    let question = "\u{1b}[2J\rfile_read wants to run:\nApprove? [y/N] \u{202e}";
    let done = call_ask_user(
        &[("  | Approve? [y/N] \\u{202e}", ""), (PROMPT, "y\n")],
        &json!({ "question": question }),
    );
    assert_eq!(done.out, "y\n", "a yes to the model is a word and no more");
}

#[test]
fn the_end_of_input_and_the_emergency_stop_end_the_wait() {
    let ended = call_ask_user(&[(PROMPT, "\u{4}")], &json!({ "question": "Well?" }));
    assert!(ended.code == 1 && ended.err.contains("gave no answer"), "{ended:?}");

    let test_agent = TestAgent::new();
    let mut terminal = AgentTerminal::open();
    let mut command = test_agent.command(&["tool", "run", "ask_user", "--json", r#"{"question":"Well?"}"#]);
    command.stdin(terminal.slave()).stderr(terminal.slave());
    let mut child = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    terminal.wait_for(PROMPT);
    test_agent.run(&["estop"]);
    assert_eq!(wait_for_exit(&mut child), 8);
    assert_eq!(test_agent.receipt_summaries(), [["ask_user", "failed", "estop"]]);
}

#[test]
fn questions_that_are_too_long_or_empty_are_not_asked() {
    let test_agent = TestAgent::new();
    for arguments in [
        json!({ "question": "x".repeat(2_001) }),
        json!({ "question": " " }),
        json!({ "question": "?", "choices": [""] }),
        json!({ "question": "?", "choices": vec!["x"; 17] }),
    ] {
        let done = test_agent.run(&["tool", "run", "ask_user", "--json", &arguments.to_string()]);
        assert!(done.code == 1 && done.err.contains("invalid arguments"), "{done:?}");
    }
}

#[test]
fn the_model_gets_the_answer() {
    let test_agent =
        TestAgent::new().with_config_change("\"shell\"]", "\"shell\", \"ask_user\"]").with_mock_fixture(
            "[[round]]\n[[round.call]]\ntool = \"ask_user\"\nargs = { question = \"Which day?\" }\n\
         [[round]]\ntext = \"so be it\"\nexpect = { tool_result_contains = \"on Tuesday\" }\n",
        );
    let agent = test_agent.at_terminal(&["agent", "-m", "go"], &[(PROMPT, "on Tuesday\n")]);
    assert_eq!((agent.code, agent.out.as_str()), (0, "so be it\n"), "{agent:?}");
}
