//! Provider routing (C4.4): by rules, by fallback, and never in a circle.

use std::fs;
use std::time::Duration;

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::{AgentOutput, TestAgent};

/// Creates an agent with three providers that answer with their names, and additional settings.
fn test_agent(more: &str) -> TestAgent {
    let test_agent = TestAgent::new();
    let mut config = String::new();
    for name in ["small", "large", "broken"] {
        let answer = if name == "broken" {
            "error = \"network\"".to_owned()
        } else {
            format!("text = \"I am {name}.\"")
        };
        let rounds = format!("[[round]]\n{answer}\n").repeat(8);
        fs::write(test_agent.home().join(format!("{name}.toml")), rounds).unwrap();
        config.push_str(&format!("[providers.models.{name}]\nkind = \"mock\"\nfixture = \"{name}.toml\"\n"));
    }
    fs::write(
        test_agent.home().join("config.toml"),
        format!("default_provider = \"choice\"\n{config}{more}"),
    )
    .unwrap();
    test_agent
}

const ROUTER: &str = r#"
[providers.models.choice]
kind = "router"
default = "small"

[[providers.models.choice.rules]]
when = { hint = ["thorough", "deep"] }
provider = "large"

[[providers.models.choice.rules]]
when = { longer_than = 2000 }
provider = "large"

[[providers.models.choice.rules]]
when = { tools = false, hint = "never" }
provider = "broken"
"#;

fn answer(done: &AgentOutput) -> &str {
    assert_eq!(done.code, 0, "{done:?}");
    done.out.trim()
}

#[test]
fn a_router_chooses_by_the_first_rule_that_holds() {
    let test_agent = test_agent(ROUTER);
    assert_eq!(answer(&test_agent.run(&["agent", "-m", "hi"])), "I am small.");
    let hinted = test_agent.run(&["agent", "-m", "hi", "--hint", "deep"]);
    assert_eq!(answer(&hinted), "I am large.");
    assert!(hinted.err.contains("provider routed: large, router choice, rule 1"), "{}", hinted.err);
    assert_eq!(answer(&test_agent.run(&["agent", "-m", "hi", "--hint", "other"])), "I am small.");
    assert_eq!(answer(&test_agent.run(&["agent", "-m", &"long ".repeat(2000)])), "I am large.");
    // Tools are offered, so one half of the rule does not apply.
    assert_eq!(answer(&test_agent.run(&["agent", "-m", "hi", "--hint", "never"])), "I am small.");
    let listed = test_agent.run(&["provider", "list"]);
    assert!(listed.out.contains("rules: large, large, broken; default: small"), "{}", listed.out);
    assert_eq!(test_agent.run(&["provider", "test", "choice"]).code, 0);
}

#[test]
fn routers_and_reliable_ones_nest_in_each_other() {
    let test_agent = test_agent(
        "[providers.models.choice]\nkind = \"reliable\"\nproviders = [\"broken\", \"inner\"]\n\
         [providers.models.inner]\nkind = \"router\"\ndefault = \"safe\"\n\
         [[providers.models.inner.rules]]\nwhen = { metadata = { hint = \"deep\" } }\nprovider = \"large\"\n\
         [providers.models.safe]\nkind = \"reliable\"\nproviders = [\"broken\", \"small\"]\n",
    );
    let done = test_agent.run(&["agent", "-m", "hi"]);
    assert_eq!(answer(&done), "I am small.");
    let fell_back = |from, to| format!("warning: provider fell back: from {from}, to {to}");
    assert!(done.err.contains(&fell_back("broken", "inner")), "{}", done.err);
    assert!(done.err.contains(&fell_back("broken", "small")), "{}", done.err);
    let deep = test_agent.run(&["agent", "-m", "hi", "--hint", "deep", "--conversation", "c"]);
    assert_eq!(answer(&deep), "I am large.");
    // The memory records the provider that really answered (C10).
    let turns = test_agent.run(&["memory", "show", "c", "--output", "json"]).json();
    assert_eq!((&turns[1]["provider"], &turns[1]["model"]), (&"large".into(), &"mock".into()), "{turns}");
}

#[test]
fn missing_and_circular_routes_are_faults_with_their_place() {
    let test_agent = test_agent(
        "[providers.models.choice]\nkind = \"router\"\ndefault = \"b\"\n\
         [[providers.models.choice.rules]]\nwhen = { hint = \"x\" }\nprovider = \"smal\"\n\
         [[providers.models.choice.rules]]\nwhen = {}\nprovider = \"small\"\n\
         [[providers.models.choice.rules]]\nwhen = { hnit = \"x\" }\nprovider = \"small\"\n\
         [providers.models.b]\nkind = \"reliable\"\nproviders = [\"small\", \"choice\"]\nfailures = 0\n\
         [providers.models.itself]\nkind = \"reliable\"\nproviders = [\"itself\"]\ncool_down = \"soon\"\n\
         [providers.models.bare]\nkind = \"router\"\n",
    );
    let actual = test_agent.run(&["config", "validate"]);
    assert_eq!(actual.code, 3);
    let home = test_agent.path().canonicalize().unwrap();
    insta::assert_snapshot!(actual.err.replace(home.to_str().unwrap(), "~"));
}

#[test]
fn one_that_fails_again_and_again_is_asked_last_until_it_has_cooled_down() {
    let answers = answers_after_two_failures("10m", Duration::ZERO);
    assert_eq!(answers.third, ("I am small.\n".to_owned(), 2), "not asked: {}", answers.log);
    assert!(answers.log.contains("provider suspended: remote, failures 2, seconds 600"), "{}", answers.log);
    let answers = answers_after_two_failures("100ms", Duration::from_millis(100));
    assert_eq!(answers.third, ("I am back.\n".to_owned(), 3), "{}", answers.log);
}

struct AnswerAfterFailures {
    /// The answer to the third message, and the number of requests to the remote provider until then.
    third: (String, usize),
    log: String,
}

/// Asks a remote provider that fails twice and then works, and waits before the third message.
fn answers_after_two_failures(cool_down: &str, wait: Duration) -> AnswerAfterFailures {
    let down = http_reply("503 No", "application/json", "{}");
    let up =
        http_reply("200 OK", "application/json", r#"{"choices":[{"message":{"content":"I am back."}}]}"#);
    let acts = [&down, &down, &up].map(|act| ServerAction::Send(act.clone()));
    let server = TestServer::start(acts.to_vec());
    let test_agent = test_agent(&format!(
        "[providers.models.choice]\nkind = \"reliable\"\nproviders = [\"remote\", \"small\"]\nfailures = 2\n\
         cool_down = \"{cool_down}\"\n[providers.models.remote]\nkind = \"openai-compatible\"\nmodel = \"m\"\n\
         base_url = \"http://127.0.0.1:{}/v1\"\n",
        server.port()
    ));
    let mut command = test_agent.command(&["agent"]);
    let mut agent = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = agent.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(agent.stdout.take().unwrap());
    let mut say = |message: &str| {
        let mut line = String::new();
        std::io::Write::write_all(&mut input, format!("{message}\n").as_bytes()).unwrap();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        (line, server.received().len())
    };
    let small = || "I am small.\n".to_owned();
    assert_eq!([say("one"), say("two")], [(small(), 1), (small(), 2)]);
    // The passing of time is what is tested: the cool-down began before the second answer.
    std::thread::sleep(wait);
    let third = say("three");
    drop(input);
    let done = crate::support::agent_output(agent.wait_with_output().unwrap());
    AnswerAfterFailures { third, log: done.err }
}

#[test]
fn a_time_out_of_its_own_lets_the_next_answer_soon() {
    let server = TestServer::start(vec![ServerAction::Hang(String::new())]);
    let test_agent = test_agent(&format!(
        "[providers.models.choice]\nkind = \"reliable\"\nproviders = [\"remote\", \"small\"]\n\
         [providers.models.remote]\nkind = \"openai-compatible\"\nmodel = \"m\"\ntimeout = \"300ms\"\n\
         base_url = \"http://127.0.0.1:{}/v1\"\n",
        server.port()
    ));
    let done = test_agent.run(&["agent", "-m", "hi"]);
    assert_eq!(answer(&done), "I am small.");
    assert!(done.err.contains("did not answer within 1 s"), "{}", done.err);
}
