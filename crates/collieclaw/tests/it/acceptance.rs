//! The ten acceptance tests of C15, by their numbers, through the real program.

use std::fs;

use crate::support::TestAgent;

/// C15.1.
#[test]
fn c15_1_init_makes_config_memory_and_workspace() {
    let test_agent = TestAgent::empty();
    let init = test_agent.run(&["init"]);
    assert_eq!(init.code, 0, "{init:?}");
    assert!(test_agent.home().join("config.toml").is_file());
    assert!(test_agent.home().join("memory.sqlite").is_file());
    assert!(test_agent.workspace().is_dir());

    let config = fs::read_to_string(test_agent.home().join("config.toml")).unwrap();
    fs::write(
        test_agent.home().join("config.toml"),
        config.replace("max_tool_rounds = 5", "max_tool_rounds = 3"),
    )
    .unwrap();
    assert_eq!(test_agent.run(&["init"]).code, 0);
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["limits"]["max_tool_rounds"], 3, "a second init changes nothing");
}

/// C15.2.
#[test]
fn c15_2_a_level_that_there_is_not_is_refused_with_those_that_there_are() {
    let test_agent =
        TestAgent::new().with_config_change("autonomy = \"supervised\"", "autonomy = \"godmode\"");
    let validate = test_agent.run(&["config", "validate"]);
    assert_eq!(validate.code, 3);
    for word in ["godmode", "readonly", "supervised", "full", "config.toml:"] {
        assert!(validate.err.contains(word), "{word}: {}", validate.err);
    }
    assert_eq!(test_agent.run(&["agent", "-m", "hi"]).code, 3, "nothing runs with it either");
}

/// C15.3.
#[test]
fn c15_3_an_answer_is_printed_and_both_turns_are_remembered() {
    let test_agent = TestAgent::new().with_mock_fixture("[[round]]\ntext = \"hello\"\n");
    let agent = test_agent.run(&["agent", "-m", "hi"]);
    assert_eq!((agent.code, agent.out.as_str()), (0, "hello\n"));
    let list = test_agent.run(&["memory", "list", "--output", "json"]).json();
    let id = list[0]["conversation_id"].as_str().unwrap();
    let turns = test_agent.run(&["memory", "show", id, "--output", "json"]).json();
    let said = |index: usize| (turns[index]["role"].clone(), turns[index]["content"].clone());
    assert_eq!(said(0), ("user".into(), "hi".into()));
    assert_eq!(said(1), ("assistant".into(), "hello".into()));
    assert_eq!(turns.as_array().unwrap().len(), 2);
}

/// C15.4.
#[test]
fn c15_4_a_listing_runs_in_the_workspace_and_leaves_a_receipt() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_list\"\nargs = { path = \".\" }\n\n[[round]]\ntext = \"I see {tool_result}\"\n",
    );
    fs::write(test_agent.workspace().join("notes.txt"), "x").unwrap();
    let agent = test_agent.run(&["agent", "-m", "what is here?"]);
    assert_eq!(agent.code, 0, "{agent:?}");
    assert!(agent.out.starts_with("I see ") && agent.out.contains("notes.txt"), "{}", agent.out);
    assert_eq!(test_agent.receipt_summaries(), [["file_list", "allowed", "reads-inside"]]);
}

/// C15.5.
#[test]
fn c15_5_a_file_outside_is_denied_and_the_model_hears_of_it() {
    let test_agent = TestAgent::new().with_mock_fixture(
        "[[round]]\n[[round.call]]\ntool = \"file_read\"\nargs = { path = \"/etc/passwd\" }\n\n\
         [[round]]\nexpect = { tool_result_contains = \"error: denied\" }\ntext = \"I may not.\"\n",
    );
    let agent = test_agent.run(&["agent", "-m", "read it"]);
    assert_eq!((agent.code, agent.out.as_str()), (4, "I may not.\n"), "{}", agent.err);
    let receipts = test_agent.receipts();
    assert_eq!((receipts.len(), &receipts[0]["status"]), (1, &"denied".into()));
    assert!(!agent.err.contains("root:"));
}

const WRITES: &str = "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"a.txt\", content = \"A\" }\n\n\
                      [[round]]\ntext = \"{tool_result}\"\n";

/// C15.6.
#[test]
fn c15_6_a_write_asks_and_only_yes_writes() {
    let check = |answer: &str, code: i32, written: bool| {
        let test_agent = TestAgent::new().with_mock_fixture(WRITES);
        let agent = test_agent.at_terminal(&["agent", "-m", "write it"], &[("Approve? [y/N] ", answer)]);
        assert_eq!(agent.code, code, "{answer:?}: {agent:?}");
        assert_eq!(test_agent.workspace().join("a.txt").exists(), written, "{answer:?}");
        let receipt = &test_agent.receipts()[0];
        let expected = if written { ("allowed", "operator") } else { ("denied", "none") };
        assert_eq!((&receipt["status"], &receipt["approver"]), (&expected.0.into(), &expected.1.into()));
        assert_eq!(receipt["risk"], "medium");
    };
    check("y\n", 0, true);
    check("YES\n", 0, true);
    for answer in ["\n", "n\n", "yess\n", "y y\n", "\u{4}"] {
        check(answer, 4, false);
    }

    let test_agent = TestAgent::new().with_mock_fixture(WRITES);
    let headless = test_agent.run(&["agent", "-m", "write it"]);
    assert_eq!(headless.code, 5, "no operator is available: {headless:?}");
    assert!(!test_agent.workspace().join("a.txt").exists());
}

/// C15.7.
#[test]
fn c15_7_a_destructive_line_is_blocked_before_it_runs() {
    for level in ["readonly", "supervised", "full"] {
        let test_agent = TestAgent::new().with_config_change("autonomy = \"supervised\"", &format!("autonomy = \"{level}\"")).with_mock_fixture(
            "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"rm -rf /\" }\n\n[[round]]\ntext = \"no\"\n",
        );
        fs::write(test_agent.workspace().join("kept"), "").unwrap();
        let agent = test_agent.run(&["agent", "-m", "clean up"]);
        assert_eq!(agent.code, 4, "{agent:?}");
        let receipt = &test_agent.receipts()[0];
        assert_eq!(
            (&receipt["status"], &receipt["risk"], &receipt["decision"]),
            (&"denied".into(), &"high".into(), &"deny".into())
        );
        assert!(test_agent.workspace().join("kept").exists());
    }
}

/// C15.8.
#[test]
fn c15_8_an_edited_receipt_breaks_the_chain_there() {
    let test_agent = TestAgent::new();
    for _ in 0..3 {
        assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 0);
    }
    let sound = test_agent.run(&["receipt", "verify"]);
    assert_eq!(sound.code, 0, "{sound:?}");
    let log = test_agent.home().join("tool_receipts.log");
    let text = fs::read_to_string(&log).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replace("\"allowed\"", "\"denied\"");
    fs::write(&log, lines.join("\n") + "\n").unwrap();
    let broken = test_agent.run(&["receipt", "verify"]);
    assert_eq!(broken.code, 9);
    assert!(broken.out.contains("invalid at receipt 2"), "{}", broken.out);
}

/// C15.10.
#[test]
fn c15_10_an_earlier_conversation_is_found_by_a_word_of_it() {
    let test_agent = TestAgent::new();
    let said =
        test_agent.run(&["agent", "--conversation", "the-old-one", "-m", "I bought an Aardvark adapter"]);
    assert_eq!(said.code, 0, "{said:?}");
    test_agent.run(&["agent", "-m", "and something else"]);
    let found = test_agent.run(&["memory", "search", "aardvark"]);
    assert!(found.out.contains("the-old-one"), "{found:?}");
    assert!(!found.out.contains("something else"));
}

/// C15.9.
#[test]
fn c15_9_the_next_provider_answers_after_a_timeout_and_the_log_shows_it() {
    let test_agent = TestAgent::new();
    fs::write(test_agent.path().join("bad.toml"), "[[round]]\nerror = \"timeout\"\n").unwrap();
    fs::write(test_agent.path().join("good.toml"), "[[round]]\ntext = \"from the mock\"\n").unwrap();
    let test_agent = test_agent
        .with_config_change("default_provider = \"local\"", "default_provider = \"safe\"")
        .with_config_change(
            "[providers.models.local]",
            "[providers.models.safe]\nkind = \"reliable\"\nproviders = [\"bad\", \"good\"]\n\
         [providers.models.bad]\nkind = \"mock\"\nfixture = \"~/bad.toml\"\n\
         [providers.models.good]\nkind = \"mock\"\nfixture = \"~/good.toml\"\n\
         [providers.models.local]",
        );
    let agent = test_agent.run(&["agent", "-m", "hi"]);
    assert_eq!((agent.code, agent.out.as_str()), (0, "from the mock\n"), "{agent:?}");
    let line = agent.err.lines().find(|line| line.contains("fell back")).unwrap_or_default();
    assert!(line.contains("bad") && line.contains("good"), "{}", agent.err);

    let refusing = fs::write(test_agent.path().join("bad.toml"), "[[round]]\nerror = \"refused\"\n");
    refusing.unwrap();
    assert_eq!(test_agent.run(&["agent", "-m", "hi"]).code, 6, "a refusal is no reason to ask another");

    let broken =
        test_agent.with_config_change("providers = [\"bad\", \"good\"]", "providers = [\"bda\", \"safe\"]");
    let actual = broken.run(&["config", "validate"]);
    assert_eq!(actual.code, 3);
    assert!(actual.err.contains("did you mean `bad`"), "{}", actual.err);
}
