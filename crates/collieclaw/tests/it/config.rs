//! The configuration (C3): every fault at once, each with its place and its cure; and no secret in any of them.
//!
//! The defaults are those of C3.1.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::TestAgent;

fn agent_with_config(text: &str) -> TestAgent {
    let test_agent = TestAgent::new();
    fs::write(test_agent.home().join("config.toml"), text).unwrap();
    test_agent
}

#[test]
fn init_writes_the_default_configuration() {
    let test_agent = TestAgent::new();
    let with_file = test_agent.run(&["config", "show", "--output", "json"]).json();
    fs::write(test_agent.home().join("config.toml"), "").unwrap();
    let without = test_agent.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(with_file, without);
    assert_eq!(without["security"]["autonomy"], "supervised");
    assert_eq!(without["limits"]["shell_timeout"], "15s");
    assert_eq!(without["providers"]["models"]["openai_compatible"]["base_url"], "http://localhost:1234/v1");

    let shown = test_agent.run(&["config", "show"]);
    fs::write(test_agent.home().join("config.toml"), &shown.out).unwrap();
    let again = test_agent.run(&["config", "show", "--output", "json"]);
    assert_eq!((again.code, again.json()), (0, without), "what is shown can be read back");
}

#[test]
fn every_fault_is_reported_at_once_with_its_line_and_its_cure() {
    let test_agent = agent_with_config(
        r#"workspace_dir = "$NOWHERE/x"
default_provider = "locall"
colour = "red"

[security]
autonomy = "godmode"
workspace_onyl = false
forbidden_commands = ["rm", "dd"]
allowed_commands = ["rm", "ls"]
allowed_domains = ["example.org", "http://x"]
forbidden_paths = ["~root/x"]

[providers.models.mine]
kind = "openai"

[providers.models.other]
kind = "openai-compatible"
base_url = "ftp://x"
model = ""

[channels.cli]
tools_allow = ["file_raed"]

[memory]
backend = "postgres"
path = "~/collieclaw-workspace/memory.db"

[limits]
max_tool_rounds = 5000
shell_timeout = "15"
"#,
    );
    let validate = test_agent.run(&["config", "validate"]);
    assert_eq!((validate.code, validate.out.as_str()), (3, ""));
    let home = test_agent.path().canonicalize().unwrap();
    let actual = validate.err.replace(home.to_str().unwrap(), "~");
    insta::assert_snapshot!(actual);

    let json = test_agent.run(&["config", "validate", "--output", "json"]);
    assert_eq!(json.json()["faults"].as_array().unwrap().len(), actual.matches("config.toml:").count());
}

#[test]
fn a_key_in_the_file_is_refused_and_never_shown() {
    let canary = "sk-canary-0123456789";
    let test_agent = agent_with_config(&format!(
        "[providers.models.mine]\nkind = \"openai-compatible\"\nbase_url = \"http://user:{canary}@x/v1\"\nmodel = \"m\"\n\
         api_key = \"{canary}\"\napi_key_env = \"{canary}\"\n"
    ));
    for arguments in [
        &["config", "validate"][..],
        &["config", "show"],
        &["config", "validate", "--output", "json"],
        &["agent", "-m", "x"],
    ] {
        let actual = test_agent.run(arguments);
        assert_eq!(actual.code, 3, "{actual:?}");
        assert!(!actual.err.contains(canary) && !actual.out.contains(canary), "{actual:?}");
    }
    assert!(test_agent.run(&["config", "validate"]).err.contains("api_key_env"));
}

#[test]
fn variables_and_home_are_expanded() {
    let test_agent = agent_with_config(
        "workspace_dir = \"${WHERE}/work\"\n[security]\nforbidden_paths = [\"~/private\"]\n",
    );
    let mut command = test_agent.command(&["config", "show", "--output", "json"]);
    let shown = crate::support::agent_output(command.env("WHERE", "/data").output().unwrap()).json();
    assert_eq!(shown["workspace_dir"], "/data/work");
    let private = test_agent.path().canonicalize().unwrap().join("private");
    assert_eq!(shown["security"]["forbidden_paths"][0], private.to_str().unwrap());
}

#[test]
fn an_unreadable_configuration_is_reported_with_a_cure() {
    let test_agent = TestAgent::new();
    let config = test_agent.home().join("config.toml");
    let actual = |expected: &str| {
        let actual = test_agent.run(&["config", "validate"]);
        assert!(
            actual.code == 3 && actual.err.contains(expected) && actual.err.contains("help: "),
            "{actual:?}"
        );
    };
    fs::remove_file(&config).unwrap();
    fs::create_dir(&config).unwrap();
    actual("config.toml is not a regular file");
    actual("replace it with a regular file");
    fs::remove_dir(&config).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &config, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    actual("config.toml is not a regular file");
    fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink("config.toml", &config).unwrap();
    actual("config.toml can't be read: Too many levels of symbolic links");
}

#[test]
fn a_configuration_that_others_can_change_is_not_trusted() {
    let test_agent = TestAgent::new();
    let config = test_agent.home().join("config.toml");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666)).unwrap();
    let agent = test_agent.run(&["agent", "-m", "hi"]);
    assert_eq!(agent.code, 3, "{agent:?}");
    assert!(agent.err.contains("can be changed by others"), "{}", agent.err);
}

#[test]
fn nothing_is_read_from_the_workspace() {
    let test_agent = TestAgent::new().with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n[[round]]\ntext = \"\"\n");
    for name in ["config.toml", ".collieclaw/config.toml", "collieclaw.toml"] {
        let path = test_agent.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "[security]\nautonomy = \"full\"\n").unwrap();
    }
    let mut command = test_agent.command(&["agent", "-m", "write"]);
    let agent = crate::support::agent_output(command.current_dir(test_agent.workspace()).output().unwrap());
    assert_eq!(agent.code, 5, "still supervised: {agent:?}");
}

#[test]
fn a_workspace_inside_the_own_home_or_around_it_is_refused() {
    for workspace in ["~/.collieclaw/work", "~/.collieclaw", "~", "/", "~/link"] {
        let test_agent = agent_with_config(&format!("workspace_dir = \"{workspace}\"\n"));
        std::os::unix::fs::symlink(test_agent.path(), test_agent.path().join("link")).unwrap();
        let validate = test_agent.run(&["config", "validate"]);
        assert_eq!(validate.code, 3, "{workspace}");
        assert!(validate.err.contains("own folder"), "{}", validate.err);
    }
}

#[test]
fn a_home_that_others_can_change_is_not_trusted() {
    let test_agent = TestAgent::new();
    fs::set_permissions(test_agent.home(), fs::Permissions::from_mode(0o777)).unwrap();
    let run = test_agent.run(&["tool", "run", "time"]);
    assert_eq!(run.code, 3, "{run:?}");
    let fresh = TestAgent::empty();
    assert_eq!(fresh.run(&["estop"]).code, 0);
    let mode = fs::metadata(fresh.home()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "whoever makes it makes it for its owner alone");
}

#[test]
fn a_configuration_behind_a_link_into_the_workspace_is_not_trusted() {
    let test_agent = TestAgent::new();
    let (config, inside) = (test_agent.home().join("config.toml"), test_agent.workspace().join("c.toml"));
    fs::rename(&config, &inside).unwrap();
    std::os::unix::fs::symlink(&inside, &config).unwrap();
    assert_eq!(test_agent.run(&["tool", "run", "time"]).code, 3);
}

#[test]
fn a_server_may_want_no_key_and_an_address_must_be_one() {
    let server = |rest: &str| agent_with_config(&format!("[providers.models.openai_compatible]\n{rest}\n"));
    let shown = server("api_key_env = \"\"").run(&["provider", "list"]);
    assert!(shown.out.contains("(no key)"), "{}", shown.out);
    for address in ["http://host:99999/v1", "http://host/v1?x", "http:///v1", "host/v1"] {
        let test_agent = server(&format!("base_url = \"{address}\""));
        assert_eq!(test_agent.run(&["config", "validate"]).code, 3, "{address}");
    }
    let test_agent = agent_with_config("[providers.models.local]\nfixture = \"missing.toml\"\n");
    assert_eq!(test_agent.run(&["config", "validate"]).code, 3);
}

#[test]
fn an_unknown_log_level_is_reported() {
    let test_agent = TestAgent::new();
    let mut command = test_agent.command(&["tool", "run", "time"]);
    let actual = crate::support::agent_output(command.env("COLLIECLAW_LOG", "loud").output().unwrap());
    assert_eq!(actual.code, 2);
    assert!(actual.err.contains("info, warn, off or json"), "{}", actual.err);
}

/// The tools of a server are known only after its approval, which needs a valid configuration.
#[test]
fn tools_of_a_server_may_be_listed_before_it_is_approved() {
    let test_agent = TestAgent::new()
        .with_config_change("tools_allow = [\"file_read\"", "tools_allow = [\"clock__now\", \"file_read\"");
    for command in [["config", "validate"], ["mcp", "list"], ["receipt", "verify"]] {
        let actual = test_agent.run(&command);
        assert_eq!(actual.code, 0, "{actual:?}");
    }
}

/// A configuration that no command could run with is invalid.
/// Docs: all errors are reported at once, including a missing workspace.
#[test]
fn missing_paths_of_the_configuration_are_reported_with_all_other_faults() {
    let test_agent = agent_with_config(
        "workspace_dir = \"~/gone\"\ncolour = \"red\"\n\n[providers.models.a]\nkind = \"mock\"\nfixture = \"gone.toml\"\n\n\
         [providers.models.b]\nkind = \"mock\"\nfixture = \"wrong.toml\"\n",
    );
    fs::write(test_agent.home().join("wrong.toml"), "[[round]]\ntxet = \"hi\"\n").unwrap();
    let file = test_agent.home().join("config.toml");
    for words in [&["config", "validate"][..], &["config", "validate", file.to_str().unwrap()]] {
        let validate = test_agent.run(&[words, &["--output", "json"]].concat());
        assert_eq!(validate.code, 3, "{validate:?}");
        let faults = validate.json()["faults"].as_array().unwrap().clone();
        let actual = |line: u64, text: &str| {
            let is = |fault: &serde_json::Value| {
                fault["line"] == line
                    && fault["fault"].as_str().unwrap().contains(text)
                    && fault["help"].is_string()
            };
            assert!(faults.iter().any(is), "{line}, {text}: {faults:?}");
        };
        actual(1, "gone can't be used");
        actual(2, "colour");
        actual(6, "gone.toml");
        actual(10, "wrong.toml:2");
        assert_eq!(faults.len(), 4, "{faults:?}");
    }
    // An unreadable path is an error, and the default path isn't used instead.
    fs::remove_dir(test_agent.workspace()).unwrap();
    fs::write(&file, "workspace_dir = \"$NOWHERE/x\"\n").unwrap();
    let validate = test_agent.run(&["config", "validate", "--output", "json"]);
    assert_eq!(validate.json()["faults"].as_array().unwrap().len(), 1, "{validate:?}");
}

#[test]
fn a_workspace_that_is_not_there_is_a_fault_of_the_configuration() {
    let test_agent = agent_with_config("workspace_dir = \"~/nowhere\"\n");
    let file = test_agent.home().join("config.toml");
    let commands: [&[&str]; 4] = [
        &["config", "validate"],
        &["config", "validate", file.to_str().unwrap()],
        &["agent", "-m", "hi"],
        &["gateway", "--port", "0"],
    ];
    for command in commands {
        let actual = test_agent.run(command);
        assert_eq!(actual.code, 3, "{command:?}: {actual:?}");
        assert!(actual.err.contains("nowhere") && actual.err.contains("help"), "{actual:?}");
    }
    fs::create_dir(test_agent.path().join("nowhere")).unwrap();
    assert_eq!(test_agent.run(&["config", "validate"]).code, 0);
}

/// C3.1: the memory is `memory.sqlite`; the file of an earlier version goes on working without a question.
#[test]
fn a_memory_with_the_old_name_goes_on_working() {
    let path = |test_agent: &TestAgent| {
        test_agent.run(&["config", "show", "--output", "json"]).json()["memory"]["path"].clone()
    };
    let test_agent = TestAgent::new().with_config_change("path = \"memory.sqlite\"\n", "");
    let [new, old] = ["memory.sqlite", "memory.db"].map(|name| test_agent.home().join(name));
    assert_eq!(path(&test_agent), new.to_str().unwrap());
    assert_eq!(test_agent.run(&["agent", "-m", "the aardvark adapter"]).code, 0);
    for name in ["memory.sqlite", "memory.sqlite-wal", "memory.sqlite-shm"] {
        let place = test_agent.home().join(name);
        if place.exists() {
            fs::rename(&place, test_agent.home().join(name.replace("sqlite", "db"))).unwrap();
        }
    }
    assert_eq!(path(&test_agent), old.to_str().unwrap());
    assert!(test_agent.run(&["memory", "search", "aardvark"]).out.contains("aardvark"));
    assert!(!new.exists());
    fs::write(&new, "").unwrap();
    assert_eq!(path(&test_agent), new.to_str().unwrap(), "the new name wins");
}
