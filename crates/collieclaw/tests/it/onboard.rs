//! `onboard`: with flags, at a terminal, and over an existing configuration.

use std::fs;

use crate::support::TestAgent;

#[test]
fn flags_are_enough_without_a_terminal() {
    let test_agent = TestAgent::empty();
    let arguments = ["onboard", "--workspace", "~/work", "--autonomy", "readonly", "--allow-writing"];
    let onboard = test_agent.run(&arguments);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    assert!(onboard.err.contains("local answers"), "{}", onboard.err);
    assert!(onboard.out.contains("a stand-in answers until you configure a model"), "{}", onboard.out);
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(
        shown["workspace_dir"],
        test_agent.path().canonicalize().unwrap().join("work").to_str().unwrap()
    );
    assert_eq!(shown["security"]["autonomy"], "readonly");
    assert_eq!(shown["channels"]["cli"]["tools_allow"][5], "file_write");
    assert_eq!(test_agent.run(&["agent", "-m", "list files"]).code, 0);
}

#[test]
fn a_server_that_is_not_running_is_reported_and_configured_anyway() {
    let test_agent = TestAgent::empty();
    let onboard = test_agent.run(&["onboard", "--base-url", "http://127.0.0.1:1/v1", "--model", "smol"]);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    assert!(onboard.err.contains("warning: ") && onboard.err.contains("provider test"), "{}", onboard.err);
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["default_provider"], "openai_compatible");
    assert_eq!(shown["providers"]["models"]["openai_compatible"]["model"], "smol");
}

#[test]
fn questions_are_asked_at_a_terminal_and_asked_again_when_not_understood() {
    let test_agent = TestAgent::empty();
    let dialog = [
        ("work in?", "~/mine\n"),
        ("on its own?", "godmode\n"),
        ("readonly or supervised or full", "full\n"),
        ("Which provider?", "\n"),
        ("write files", "yes\n"),
    ];
    let onboard = test_agent.at_terminal(&["onboard"], &dialog);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["security"]["autonomy"], "full");
    assert!(test_agent.path().join("mine").is_dir());
}

#[test]
fn onboarding_asks_for_a_server_and_shows_the_next_step() {
    let test_agent = TestAgent::empty();
    let dialog = [
        ("work in?", "\n"),
        ("on its own?", "\n"),
        ("Which provider?", "openai_compatible\n"),
        ("address of the server?", "http://127.0.0.1:1/v1\n"),
        ("called on the server?", "smol\n"),
        ("holds the server's key?", "MY_KEY\n"),
        ("write files", "\n"),
    ];
    let onboard = test_agent.at_terminal(&["onboard"], &dialog);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    let next = "Next: run `collieclaw agent` to talk to the agent.\n      run `collieclaw provider test openai_compatible`";
    assert!(onboard.out.contains(next) && !onboard.out.contains("stand-in"), "{}", onboard.out);
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    let server = &shown["providers"]["models"]["openai_compatible"];
    assert_eq!(server["base_url"], "http://127.0.0.1:1/v1");
    assert_eq!((&server["model"], &server["api_key_env"]), (&"smol".into(), &"MY_KEY".into()));
}

#[test]
fn existing_files_are_kept_and_no_invalid_file_is_written() {
    let test_agent = TestAgent::new();
    let before = fs::read_to_string(test_agent.home().join("config.toml")).unwrap();
    assert_eq!(test_agent.run(&["onboard"]).code, 2);
    let wrong = test_agent.run(&["onboard", "--replace", "--base-url", "nonsense"]);
    assert_eq!(wrong.code, 3, "{wrong:?}");
    assert_eq!(fs::read_to_string(test_agent.home().join("config.toml")).unwrap(), before);

    assert_eq!(test_agent.run(&["onboard", "--replace", "--autonomy", "readonly"]).code, 0);
    assert_eq!(test_agent.run(&["onboard", "--replace", "--autonomy", "full"]).code, 0);
    assert_eq!(
        fs::read_to_string(test_agent.home().join("config.toml.old")).unwrap(),
        before,
        "kept, not replaced"
    );
    assert!(test_agent.home().join("config.toml.old2").exists());
}

#[test]
fn a_folder_that_can_not_be_made_leaves_everything_as_it_was() {
    let test_agent = TestAgent::new();
    let config = || fs::read_to_string(test_agent.home().join("config.toml")).unwrap();
    let before = config();
    fs::write(test_agent.path().join("plain"), "a file").unwrap();
    for workspace in ["/proc/x", "~/plain"] {
        let refused = test_agent.run(&["onboard", "--replace", "--workspace", workspace]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert_eq!(config(), before);
        assert!(!test_agent.home().join("config.toml.old").exists(), "{refused:?}");
    }
    assert_eq!(test_agent.run(&["agent", "-m", "hello"]).code, 0);
}

#[test]
fn a_failure_after_moving_the_old_configuration_restores_it() {
    let test_agent = TestAgent::new();
    let before = fs::read_to_string(test_agent.home().join("config.toml")).unwrap();
    fs::remove_file(test_agent.home().join("memory.sqlite")).unwrap();
    fs::create_dir(test_agent.home().join("memory.sqlite")).unwrap();
    let refused = test_agent.run(&["onboard", "--replace", "--autonomy", "full"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(fs::read_to_string(test_agent.home().join("config.toml")).unwrap(), before);
}

#[test]
fn a_flag_that_would_be_dropped_is_refused() {
    let test_agent = TestAgent::empty();
    for flag in ["--base-url", "--model", "--api-key-env"] {
        let refused = test_agent.run(&["onboard", "--provider", "local", flag, "x"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(flag) && refused.err.contains("openai_compatible"), "{refused:?}");
    }
    assert!(!test_agent.home().exists());
    assert_eq!(test_agent.run(&["onboard", "--model", "smol"]).code, 0);
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["default_provider"], "openai_compatible");
}

/// A flag never causes an unrelated or useless question.
#[test]
fn an_invalid_flag_is_reported_before_any_question() {
    let test_agent = TestAgent::empty();
    let refused = test_agent.at_terminal(&["onboard", "--base-url", "nonsense"], &[]);
    assert!(refused.code == 3 && !refused.err.contains("work in?"), "{refused:?}");
    assert!(!test_agent.home().exists());
}

#[test]
fn an_answer_that_is_wrong_is_asked_for_again_and_a_beginning_is_enough() {
    let test_agent = TestAgent::empty();
    fs::write(test_agent.path().join("plain"), "a file").unwrap();
    let dialog = [
        ("work in?", "~/plain\n"),
        ("is not a folder", "$NOWHERE/x\n"),
        ("`NOWHERE` is not set", "~/mine\n"),
        ("on its own?", "s\n"),
        ("Which provider?", "O\n"),
        ("address of the server?", "nonsense\n"),
        ("address of the server?", "http://127.0.0.1:1/v1\n"),
        ("called on the server?", "smol\n"),
        ("holds the server's key?", "not a name\n"),
        ("holds the server's key?", "MY_KEY\n"),
        ("write files", "y\n"),
    ];
    let onboard = test_agent.at_terminal(&["onboard"], &dialog);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    let shown = test_agent.run(&["config", "show", "--output", "json"]).json();
    let server = &shown["providers"]["models"]["openai_compatible"];
    assert_eq!(
        (&server["base_url"], &server["api_key_env"]),
        (&"http://127.0.0.1:1/v1".into(), &"MY_KEY".into())
    );
    assert_eq!(shown["security"]["autonomy"], "supervised");
    assert_eq!(shown["channels"]["cli"]["tools_allow"][5], "file_write");
}
