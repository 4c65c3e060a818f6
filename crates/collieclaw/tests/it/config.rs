//! The configuration (C3): every fault at once, each with its place and its cure; and no secret in any of them.
//!
//! The defaults are those of C3.1.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::TestAgent;

fn house_with_config(text: &str) -> TestAgent {
    let house = TestAgent::new();
    fs::write(house.home().join("config.toml"), text).unwrap();
    house
}

#[test]
fn what_init_writes_is_the_default() {
    let house = TestAgent::new();
    let with_file = house.run(&["config", "show", "--output", "json"]).json();
    fs::write(house.home().join("config.toml"), "").unwrap();
    let without = house.run(&["config", "show", "--output", "json"]).json();
    assert_eq!(with_file, without);
    assert_eq!(without["security"]["autonomy"], "supervised");
    assert_eq!(without["limits"]["shell_timeout"], "15s");
    assert_eq!(without["providers"]["models"]["openai_compatible"]["base_url"], "http://localhost:1234/v1");

    let shown = house.run(&["config", "show"]);
    fs::write(house.home().join("config.toml"), &shown.out).unwrap();
    let again = house.run(&["config", "show", "--output", "json"]);
    assert_eq!((again.code, again.json()), (0, without), "what is shown can be read back");
}

#[test]
fn every_fault_is_told_at_once_with_its_line_and_its_cure() {
    let house = house_with_config(
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
    let validate = house.run(&["config", "validate"]);
    assert_eq!((validate.code, validate.out.as_str()), (3, ""));
    let home = house.path().canonicalize().unwrap();
    let told = validate.err.replace(home.to_str().unwrap(), "~");
    insta::assert_snapshot!(told);

    let json = house.run(&["config", "validate", "--output", "json"]);
    assert_eq!(json.json()["faults"].as_array().unwrap().len(), told.matches("config.toml:").count());
}

#[test]
fn a_key_in_the_file_is_refused_and_never_shown() {
    let canary = "sk-canary-0123456789";
    let house = house_with_config(&format!(
        "[providers.models.mine]\nkind = \"openai-compatible\"\nbase_url = \"http://user:{canary}@x/v1\"\nmodel = \"m\"\n\
         api_key = \"{canary}\"\napi_key_env = \"{canary}\"\n"
    ));
    for arguments in [
        &["config", "validate"][..],
        &["config", "show"],
        &["config", "validate", "--output", "json"],
        &["agent", "-m", "x"],
    ] {
        let told = house.run(arguments);
        assert_eq!(told.code, 3, "{told:?}");
        assert!(!told.err.contains(canary) && !told.out.contains(canary), "{told:?}");
    }
    assert!(house.run(&["config", "validate"]).err.contains("api_key_env"));
}

#[test]
fn variables_and_home_are_expanded() {
    let house = house_with_config(
        "workspace_dir = \"${WHERE}/work\"\n[security]\nforbidden_paths = [\"~/private\"]\n",
    );
    let mut command = house.command(&["config", "show", "--output", "json"]);
    let shown = crate::support::agent_output(command.env("WHERE", "/data").output().unwrap()).json();
    assert_eq!(shown["workspace_dir"], "/data/work");
    let private = house.path().canonicalize().unwrap().join("private");
    assert_eq!(shown["security"]["forbidden_paths"][0], private.to_str().unwrap());
}

#[test]
fn what_can_t_be_a_configuration_is_told_as_one() {
    let house = TestAgent::new();
    let config = house.home().join("config.toml");
    let told = |expected: &str| {
        let told = house.run(&["config", "validate"]);
        assert!(told.code == 3 && told.err.contains(expected) && told.err.contains("help: "), "{told:?}");
    };
    fs::remove_file(&config).unwrap();
    fs::create_dir(&config).unwrap();
    told("config.toml is not a regular file");
    told("replace it with a regular file");
    fs::remove_dir(&config).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &config, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    told("config.toml is not a regular file");
    fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink("config.toml", &config).unwrap();
    told("config.toml can't be read: Too many levels of symbolic links");
}

#[test]
fn a_configuration_that_others_can_change_is_not_trusted() {
    let house = TestAgent::new();
    let config = house.home().join("config.toml");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666)).unwrap();
    let agent = house.run(&["agent", "-m", "hi"]);
    assert_eq!(agent.code, 3, "{agent:?}");
    assert!(agent.err.contains("can be changed by others"), "{}", agent.err);
}

#[test]
fn nothing_is_read_from_the_workspace() {
    let house = TestAgent::new().with_mock_fixture("[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n[[round]]\ntext = \"\"\n");
    for name in ["config.toml", ".collieclaw/config.toml", "collieclaw.toml"] {
        let path = house.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "[security]\nautonomy = \"full\"\n").unwrap();
    }
    let mut command = house.command(&["agent", "-m", "write"]);
    let agent = crate::support::agent_output(command.current_dir(house.workspace()).output().unwrap());
    assert_eq!(agent.code, 5, "still supervised: {agent:?}");
}

#[test]
fn a_workspace_inside_the_own_home_or_around_it_is_refused() {
    for workspace in ["~/.collieclaw/work", "~/.collieclaw", "~", "/", "~/link"] {
        let house = house_with_config(&format!("workspace_dir = \"{workspace}\"\n"));
        std::os::unix::fs::symlink(house.path(), house.path().join("link")).unwrap();
        let validate = house.run(&["config", "validate"]);
        assert_eq!(validate.code, 3, "{workspace}");
        assert!(validate.err.contains("own folder"), "{}", validate.err);
    }
}

#[test]
fn a_home_that_others_can_change_is_not_trusted() {
    let house = TestAgent::new();
    fs::set_permissions(house.home(), fs::Permissions::from_mode(0o777)).unwrap();
    let run = house.run(&["tool", "run", "time"]);
    assert_eq!(run.code, 3, "{run:?}");
    let fresh = TestAgent::empty();
    assert_eq!(fresh.run(&["estop"]).code, 0);
    let mode = fs::metadata(fresh.home()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "whoever makes it makes it for its owner alone");
}

#[test]
fn a_configuration_behind_a_link_into_the_workspace_is_not_trusted() {
    let house = TestAgent::new();
    let (config, inside) = (house.home().join("config.toml"), house.workspace().join("c.toml"));
    fs::rename(&config, &inside).unwrap();
    std::os::unix::fs::symlink(&inside, &config).unwrap();
    assert_eq!(house.run(&["tool", "run", "time"]).code, 3);
}

#[test]
fn a_server_may_want_no_key_and_an_address_must_be_one() {
    let server = |rest: &str| house_with_config(&format!("[providers.models.openai_compatible]\n{rest}\n"));
    let shown = server("api_key_env = \"\"").run(&["provider", "list"]);
    assert!(shown.out.contains("(no key)"), "{}", shown.out);
    for address in ["http://host:99999/v1", "http://host/v1?x", "http:///v1", "host/v1"] {
        let house = server(&format!("base_url = \"{address}\""));
        assert_eq!(house.run(&["config", "validate"]).code, 3, "{address}");
    }
    let house = house_with_config("[providers.models.local]\nfixture = \"missing.toml\"\n");
    assert_eq!(house.run(&["config", "validate"]).code, 3);
}

#[test]
fn a_log_that_nobody_knows_is_told() {
    let house = TestAgent::new();
    let mut command = house.command(&["tool", "run", "time"]);
    let told = crate::support::agent_output(command.env("COLLIECLAW_LOG", "loud").output().unwrap());
    assert_eq!(told.code, 2);
    assert!(told.err.contains("info, warn, off or json"), "{}", told.err);
}

/// The tools of a server are known only after its approval, which needs a valid configuration.
#[test]
fn tools_of_a_server_may_be_listed_before_it_is_approved() {
    let house = TestAgent::new()
        .with_config_change("tools_allow = [\"file_read\"", "tools_allow = [\"clock__now\", \"file_read\"");
    for command in [["config", "validate"], ["mcp", "list"], ["receipt", "verify"]] {
        let told = house.run(&command);
        assert_eq!(told.code, 0, "{told:?}");
    }
}

/// A configuration that no command could run with is invalid.
/// Docs: all errors are reported at once, including a missing workspace.
#[test]
fn what_is_missing_where_the_configuration_leads_is_told_with_all_else() {
    let house = house_with_config(
        "workspace_dir = \"~/gone\"\ncolour = \"red\"\n\n[providers.models.a]\nkind = \"mock\"\nfixture = \"gone.toml\"\n\n\
         [providers.models.b]\nkind = \"mock\"\nfixture = \"wrong.toml\"\n",
    );
    fs::write(house.home().join("wrong.toml"), "[[round]]\ntxet = \"hi\"\n").unwrap();
    let file = house.home().join("config.toml");
    for words in [&["config", "validate"][..], &["config", "validate", file.to_str().unwrap()]] {
        let validate = house.run(&[words, &["--output", "json"]].concat());
        assert_eq!(validate.code, 3, "{validate:?}");
        let faults = validate.json()["faults"].as_array().unwrap().clone();
        let told = |line: u64, text: &str| {
            let is = |fault: &serde_json::Value| {
                fault["line"] == line
                    && fault["fault"].as_str().unwrap().contains(text)
                    && fault["help"].is_string()
            };
            assert!(faults.iter().any(is), "{line}, {text}: {faults:?}");
        };
        told(1, "gone can't be used");
        told(2, "colour");
        told(6, "gone.toml");
        told(10, "wrong.toml:2");
        assert_eq!(faults.len(), 4, "{faults:?}");
    }
    // An unreadable path is an error, and the default path isn't used instead.
    fs::remove_dir(house.workspace()).unwrap();
    fs::write(&file, "workspace_dir = \"$NOWHERE/x\"\n").unwrap();
    let validate = house.run(&["config", "validate", "--output", "json"]);
    assert_eq!(validate.json()["faults"].as_array().unwrap().len(), 1, "{validate:?}");
}

#[test]
fn a_workspace_that_is_not_there_is_a_fault_of_the_configuration() {
    let house = house_with_config("workspace_dir = \"~/nowhere\"\n");
    let file = house.home().join("config.toml");
    let commands: [&[&str]; 4] = [
        &["config", "validate"],
        &["config", "validate", file.to_str().unwrap()],
        &["agent", "-m", "hi"],
        &["gateway", "--port", "0"],
    ];
    for command in commands {
        let told = house.run(command);
        assert_eq!(told.code, 3, "{command:?}: {told:?}");
        assert!(told.err.contains("nowhere") && told.err.contains("help"), "{told:?}");
    }
    fs::create_dir(house.path().join("nowhere")).unwrap();
    assert_eq!(house.run(&["config", "validate"]).code, 0);
}
