//! Provider routing (C4.4): by rules, by fallback, and never in a circle.

use std::fs;

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::support::{AgentOutput, TestAgent};

/// Creates an agent with three providers that answer with their names, and additional settings.
fn house(more: &str) -> TestAgent {
    let house = TestAgent::new();
    let mut config = String::new();
    for name in ["small", "large", "broken"] {
        let answer = if name == "broken" {
            "error = \"network\"".to_owned()
        } else {
            format!("text = \"I am {name}.\"")
        };
        let rounds = format!("[[round]]\n{answer}\n").repeat(8);
        fs::write(house.home().join(format!("{name}.toml")), rounds).unwrap();
        config.push_str(&format!("[providers.models.{name}]\nkind = \"mock\"\nfixture = \"{name}.toml\"\n"));
    }
    fs::write(house.home().join("config.toml"), format!("default_provider = \"choice\"\n{config}{more}"))
        .unwrap();
    house
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
    let house = house(ROUTER);
    assert_eq!(answer(&house.run(&["agent", "-m", "hi"])), "I am small.");
    let hinted = house.run(&["agent", "-m", "hi", "--hint", "deep"]);
    assert_eq!(answer(&hinted), "I am large.");
    assert!(hinted.err.contains("provider routed: large, router choice, rule 1"), "{}", hinted.err);
    assert_eq!(answer(&house.run(&["agent", "-m", "hi", "--hint", "other"])), "I am small.");
    assert_eq!(answer(&house.run(&["agent", "-m", &"long ".repeat(2000)])), "I am large.");
    // Tools are offered, so one half of the rule does not apply.
    assert_eq!(answer(&house.run(&["agent", "-m", "hi", "--hint", "never"])), "I am small.");
    let listed = house.run(&["provider", "list"]);
    assert!(listed.out.contains("rules: large, large, broken; default: small"), "{}", listed.out);
    assert_eq!(house.run(&["provider", "test", "choice"]).code, 0);
}

#[test]
fn routers_and_reliable_ones_nest_in_each_other() {
    let house = house(
        "[providers.models.choice]\nkind = \"reliable\"\nproviders = [\"broken\", \"inner\"]\n\
         [providers.models.inner]\nkind = \"router\"\ndefault = \"safe\"\n\
         [[providers.models.inner.rules]]\nwhen = { metadata = { hint = \"deep\" } }\nprovider = \"large\"\n\
         [providers.models.safe]\nkind = \"reliable\"\nproviders = [\"broken\", \"small\"]\n",
    );
    let done = house.run(&["agent", "-m", "hi"]);
    assert_eq!(answer(&done), "I am small.");
    let fell_back = |from, to| format!("warning: provider fell back: from {from}, to {to}");
    assert!(done.err.contains(&fell_back("broken", "inner")), "{}", done.err);
    assert!(done.err.contains(&fell_back("broken", "small")), "{}", done.err);
    let deep = house.run(&["agent", "-m", "hi", "--hint", "deep", "--conversation", "c"]);
    assert_eq!(answer(&deep), "I am large.");
    // The memory records the provider that really answered (C10).
    let turns = house.run(&["memory", "show", "c", "--output", "json"]).json();
    assert_eq!((&turns[1]["provider"], &turns[1]["model"]), (&"large".into(), &"mock".into()), "{turns}");
}

#[test]
fn what_leads_nowhere_or_in_a_circle_is_a_fault_with_its_place() {
    let house = house(
        "[providers.models.choice]\nkind = \"router\"\ndefault = \"b\"\n\
         [[providers.models.choice.rules]]\nwhen = { hint = \"x\" }\nprovider = \"smal\"\n\
         [[providers.models.choice.rules]]\nwhen = {}\nprovider = \"small\"\n\
         [[providers.models.choice.rules]]\nwhen = { hnit = \"x\" }\nprovider = \"small\"\n\
         [providers.models.b]\nkind = \"reliable\"\nproviders = [\"small\", \"choice\"]\nfailures = 0\n\
         [providers.models.itself]\nkind = \"reliable\"\nproviders = [\"itself\"]\ncool_down = \"soon\"\n\
         [providers.models.bare]\nkind = \"router\"\n",
    );
    let told = house.run(&["config", "validate"]);
    assert_eq!(told.code, 3);
    let home = house.path().canonicalize().unwrap();
    insta::assert_snapshot!(told.err.replace(home.to_str().unwrap(), "~"));
}

#[test]
fn one_that_fails_again_and_again_is_asked_last_until_it_has_cooled_down() {
    let down = http_reply("503 No", "application/json", "{}");
    let up =
        http_reply("200 OK", "application/json", r#"{"choices":[{"message":{"content":"I am back."}}]}"#);
    let acts = [&down, &down, &up].map(|act| ServerAction::Send(act.clone()));
    let server = TestServer::start(acts.to_vec());
    let house = house(&format!(
        "[providers.models.choice]\nkind = \"reliable\"\nproviders = [\"remote\", \"small\"]\nfailures = 2\n\
         cool_down = \"3s\"\n[providers.models.remote]\nkind = \"openai-compatible\"\nmodel = \"m\"\n\
         base_url = \"http://127.0.0.1:{}/v1\"\n",
        server.port()
    ));
    let mut command = house.command(&["agent"]);
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
    let left_out = say("three");
    std::thread::sleep(std::time::Duration::from_millis(3_100));
    let back = say("four");
    drop(input);
    let done = crate::support::agent_output(agent.wait_with_output().unwrap());
    assert_eq!(left_out, (small(), 2), "not asked: {}", done.err);
    assert_eq!(back, ("I am back.\n".to_owned(), 3), "{}", done.err);
    assert!(done.err.contains("provider left out: remote, failures 2, seconds 3"), "{}", done.err);
}

#[test]
fn a_time_out_of_its_own_lets_the_next_answer_soon() {
    let server = TestServer::start(vec![ServerAction::Hang(String::new())]);
    let house = house(&format!(
        "[providers.models.choice]\nkind = \"reliable\"\nproviders = [\"remote\", \"small\"]\n\
         [providers.models.remote]\nkind = \"openai-compatible\"\nmodel = \"m\"\ntimeout = \"300ms\"\n\
         base_url = \"http://127.0.0.1:{}/v1\"\n",
        server.port()
    ));
    let begun = std::time::Instant::now();
    let done = house.run(&["agent", "-m", "hi"]);
    assert_eq!(answer(&done), "I am small.");
    assert!(done.err.contains("did not answer within 1 s"), "{}", done.err);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
}
