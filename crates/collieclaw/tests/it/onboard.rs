//! `onboard`: with flags, at a terminal, and over a configuration that is there.

use std::fs;

use crate::support::House;

#[test]
fn flags_are_enough_without_a_terminal() {
    let house = House::empty();
    let arguments = ["onboard", "--workspace", "~/work", "--autonomy", "readonly", "--allow-writing"];
    let onboard = house.run(&arguments);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    assert!(onboard.err.contains("local answers"), "{}", onboard.err);
    assert!(onboard.out.contains("a stand-in answers until you configure a model"), "{}", onboard.out);
    let shown = house.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["workspace_dir"], house.path().canonicalize().unwrap().join("work").to_str().unwrap());
    assert_eq!(shown["security"]["autonomy"], "readonly");
    assert_eq!(shown["channels"]["cli"]["tools_allow"][5], "file_write");
    assert_eq!(house.run(&["agent", "-m", "list files"]).code, 0);
}

#[test]
fn a_server_that_is_not_running_is_told_and_set_up_all_the_same() {
    let house = House::empty();
    let onboard = house.run(&["onboard", "--base-url", "http://127.0.0.1:1/v1", "--model", "smol"]);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    assert!(onboard.err.contains("warning: ") && onboard.err.contains("provider test"), "{}", onboard.err);
    let shown = house.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["default_provider"], "openai_compatible");
    assert_eq!(shown["providers"]["models"]["openai_compatible"]["model"], "smol");
}

#[test]
fn questions_are_asked_at_a_terminal_and_asked_again_when_not_understood() {
    let house = House::empty();
    let talk = [
        ("work in?", "~/mine\n"),
        ("on its own?", "godmode\n"),
        ("readonly or supervised or full", "full\n"),
        ("Who answers?", "\n"),
        ("write files", "yes\n"),
    ];
    let onboard = house.at_terminal(&["onboard"], &talk);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    let shown = house.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(shown["security"]["autonomy"], "full");
    assert!(house.path().join("mine").is_dir());
}

#[test]
fn a_server_is_asked_for_and_what_to_do_next_is_told() {
    let house = House::empty();
    let talk = [
        ("work in?", "\n"),
        ("on its own?", "\n"),
        ("Who answers?", "openai_compatible\n"),
        ("Where is the server?", "http://127.0.0.1:1/v1\n"),
        ("call the model?", "smol\n"),
        ("holds its key?", "MY_KEY\n"),
        ("write files", "\n"),
    ];
    let onboard = house.at_terminal(&["onboard"], &talk);
    assert_eq!(onboard.code, 0, "{onboard:?}");
    let next =
        "Next: `collieclaw agent` talks to it.\n      `collieclaw provider test openai_compatible` asks";
    assert!(onboard.out.contains(next) && !onboard.out.contains("stand-in"), "{}", onboard.out);
    let shown = house.run(&["config", "show", "--output", "json"]).json();
    let server = &shown["providers"]["models"]["openai_compatible"];
    assert_eq!(server["base_url"], "http://127.0.0.1:1/v1");
    assert_eq!((&server["model"], &server["api_key_env"]), (&"smol".into(), &"MY_KEY".into()));
}

#[test]
fn what_is_there_is_kept_and_nothing_wrong_is_written() {
    let house = House::new();
    let before = fs::read_to_string(house.home().join("config.toml")).unwrap();
    assert_eq!(house.run(&["onboard"]).code, 2);
    let wrong = house.run(&["onboard", "--replace", "--base-url", "nonsense"]);
    assert_eq!(wrong.code, 3, "{wrong:?}");
    assert_eq!(fs::read_to_string(house.home().join("config.toml")).unwrap(), before);

    assert_eq!(house.run(&["onboard", "--replace", "--autonomy", "readonly"]).code, 0);
    assert_eq!(house.run(&["onboard", "--replace", "--autonomy", "full"]).code, 0);
    assert_eq!(
        fs::read_to_string(house.home().join("config.toml.old")).unwrap(),
        before,
        "kept, not replaced"
    );
    assert!(house.home().join("config.toml.old2").exists());
}
