//! Streamed answers (C4.3 beyond, C5.1): shown piece by piece at the prompt, and as a whole in a pipe.

use std::time::Duration;

use crate::http_server::{ServerAction, TestServer};
use crate::prompt::start_prompt;
use crate::support::TestAgent;

const START: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn delta_event(text: &str) -> String {
    let chunk = serde_json::json!({"choices": [{"delta": {"content": text}}]});
    format!("data: {chunk}\n\n")
}

/// Creates an agent that talks to a server.
fn agent_at(server: &TestServer) -> TestAgent {
    TestAgent::new()
        .with_config_change("default_provider = \"local\"", "default_provider = \"openai_compatible\"")
        .with_config_change("http://localhost:1234/v1", &format!("http://127.0.0.1:{}/v1", server.port()))
}

#[test]
fn text_is_shown_as_it_comes_once_and_with_its_escapes_made_visible() {
    // The second half is sent only after the first is visible, so only a stream can show it before the end.
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\ndraft = [\"Once \\u001b[2J\", \"upon\\n\", \"a time\"]\npause = \"1s\"\n\
         [[round]]\ndraft = [\"Let me\", \" look.\"]\n[[round.call]]\ntool = \"time\"\n[[round]]\ntext = \"It is late.\"\n",
    );
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("tell me", "Once \\u{1b}[2J");
    dialog.terminal.wait_for("upon\r\na time\r\n");
    dialog.terminal.wait_for("collieclaw> ");
    dialog.type_and_wait("and now?", "Let me look.\r\n");
    dialog.terminal.wait_for("It is late.\r\n");
    let (code, rest) = dialog.leave();
    assert_eq!(code, 0);
    assert!(!rest.contains("It is late"), "{rest}");
}

#[test]
fn the_spinner_runs_until_the_answer_is_complete() {
    let test_agent =
        TestAgent::new().with_mock_fixture("[[round]]\ndraft = [\"Once \", \"upon\"]\npause = \"1500ms\"\n");
    let done = test_agent.at_terminal(&["agent", "-m", "tell me"], &[("thinking, 1 s", "")]);
    assert_eq!((done.code, done.out.as_str()), (0, "Once upon\n"));
}

#[test]
fn a_broken_answer_is_marked_as_incomplete_and_not_stored() {
    let broken = format!("{START}{}", delta_event("The secret of the uni"));
    let whole = format!("{START}{}{STOP}", delta_event("42"));
    let server = TestServer::start(vec![ServerAction::Reset(broken), ServerAction::Send(whole)]);
    let test_agent = agent_at(&server);
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("what is it?", "The secret of the uni\r\n");
    dialog.terminal.wait_for("broke off here");
    dialog.terminal.wait_for("the connection to provider ");
    dialog.terminal.wait_for("collieclaw> ");
    dialog.type_and_wait("again", "42\r\n");
    dialog.leave();
    let found = test_agent.run(&["memory", "search", "secret of the uni", "--output", "json"]).json();
    let contents: Vec<&str> =
        found.as_array().unwrap().iter().map(|it| it["excerpt"].as_str().unwrap()).collect();
    assert!(!contents.iter().any(|content| content.contains("secret of")), "{contents:?}");
    assert!(test_agent.run(&["memory", "search", "no answer"]).out.contains("[no answer: "));
}

#[test]
fn a_fallback_after_the_first_words_takes_them_back() {
    let test_agent = TestAgent::new().with_mock_fixture("[[round]]\ntext = \"I am the other one.\"\n");
    std::fs::write(
        test_agent.home().join("broken.toml"),
        "[[round]]\ndraft = [\"I am the first\"]\nerror = \"network\"\n",
    )
    .unwrap();
    let test_agent = test_agent
        .with_config_change(
            "default_provider = \"local\"\ndefault_model = \"mock\"",
            "default_provider = \"safe\"",
        )
        .with_config_change(
            "[security]",
            "[providers.models.safe]\nkind = \"reliable\"\nproviders = [\"broken\", \"local\"]\n\
             [providers.models.broken]\nkind = \"mock\"\nfixture = \"broken.toml\"\n[security]",
        );
    let mut dialog = start_prompt(&test_agent);
    dialog.type_and_wait("who are you?", "I am the first\r\n");
    dialog.terminal.wait_for("broke off here");
    dialog.terminal.wait_for("I am the other one.\r\n");
    assert_eq!(dialog.leave().0, 0);

    let once = test_agent.run(&["agent", "-m", "who are you?"]);
    assert_eq!((once.code, once.out.as_str()), (0, "I am the other one.\n"));
    assert!(once.err.contains("falls back") || once.err.contains("fell back"), "{}", once.err);
}

#[test]
fn standard_output_of_one_message_is_the_answer_and_a_prompt_in_a_pipe_waits_for_it() {
    let pieces = [START.to_owned(), delta_event("Hel"), delta_event("lo"), STOP.to_owned()]
        .map(String::into_bytes)
        .to_vec();
    let server = TestServer::start(vec![ServerAction::Pieces(pieces, Duration::from_millis(20))]);
    let test_agent = agent_at(&server);
    let once = test_agent.run(&["agent", "-m", "hi"]);
    assert_eq!((once.code, once.out.as_str()), (0, "Hello\n"), "{}", once.err);
    let mut command = test_agent.command(&["agent"]);
    let mut agent = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut agent.stdin.take().unwrap(), b"hi\n").unwrap();
    let done = crate::support::agent_output(agent.wait_with_output().unwrap());
    assert_eq!((done.code, done.out.as_str()), (0, "Hello\n"), "{}", done.err);
}
