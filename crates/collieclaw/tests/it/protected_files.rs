//! C7.4: protected files can't be reached through other names either, and CollieClaw's own files are protected wherever
//! they are. Tested at the level that refuses the least.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::TestAgent;

/// Creates an agent at `full`, with paths allowed anywhere, and these settings.
fn agent_with_full_access(more: &str) -> TestAgent {
    let test_agent = TestAgent::new();
    let security = "[security]\nautonomy = \"full\"\nworkspace_only = false\n";
    fs::write(test_agent.home().join("config.toml"), format!("{security}{more}")).unwrap();
    test_agent
}

fn call(test_agent: &TestAgent, tool: &str, path: &str) -> (i32, String) {
    let arguments = match tool {
        "file_write" => json!({ "path": path, "content": "forged" }),
        _ => json!({ "path": path }),
    };
    let done = test_agent.run(&["tool", "run", tool, "--json", &arguments.to_string()]);
    let [_, _, reason] = test_agent.receipt_summaries().pop().unwrap();
    (done.code, reason)
}

#[test]
fn a_forbidden_symlink_protects_its_target() {
    let test_agent = agent_with_full_access("");
    fs::create_dir(test_agent.path().join("keys")).unwrap();
    fs::write(test_agent.path().join("keys/id"), "the key").unwrap();
    symlink("keys", test_agent.path().join(".ssh")).unwrap();
    for path in ["~/.ssh/id", "~/keys/id", "~/keys/../keys/id"] {
        assert_eq!(call(&test_agent, "file_read", path), (4, "forbidden-path".into()), "{path}");
    }
    assert_eq!(call(&test_agent, "file_write", "~/keys/authorized_keys"), (4, "forbidden-path".into()));
    let shell = test_agent.run(&["tool", "run", "shell", "--json", r#"{"command": "cat ~/keys/id"}"#]);
    assert_eq!(shell.code, 4, "{shell:?}");
}

#[test]
fn receipts_and_memory_are_out_of_reach_outside_of_the_home_too() {
    let test_agent = agent_with_full_access(
        "[receipts]\npath = \"~/alias/r.log\"\n[memory]\npath = \"~/books/memory.db\"\n",
    );
    fs::create_dir(test_agent.path().join("books")).unwrap();
    symlink("books", test_agent.path().join("alias")).unwrap();
    for name in [
        "r.log",
        "r.log.head",
        "r.log.000001",
        "r.log.torn-1-2",
        "memory.db",
        "memory.db-wal",
        "memory.db-shm",
    ] {
        for path in [format!("~/books/{name}"), format!("~/alias/{name}")] {
            assert_eq!(call(&test_agent, "file_write", &path), (4, "own-home".into()), "{path}");
        }
    }
    assert_eq!(call(&test_agent, "file_read", "~/books/memory.db"), (4, "own-home".into()));
    // Files with similar names are not protected.
    for name in ["r.login", "r", "memory.dbx"] {
        assert_eq!(call(&test_agent, "file_write", &format!("~/books/{name}")).0, 0, "{name}");
    }
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn a_configuration_that_lies_elsewhere_is_out_of_reach_there() {
    let test_agent = agent_with_full_access("");
    let dotfiles = test_agent.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    fs::rename(test_agent.home().join("config.toml"), dotfiles.join("claw.toml")).unwrap();
    symlink(dotfiles.join("claw.toml"), test_agent.home().join("config.toml")).unwrap();
    assert_eq!(call(&test_agent, "file_write", "~/dotfiles/claw.toml"), (4, "own-home".into()));
}

#[test]
fn a_link_into_the_workspace_or_the_home_is_seen_through() {
    for (link, to, config) in [
        ("way", "collieclaw-workspace", "[receipts]\npath = \"~/way/r.log\"\n"),
        ("way", "collieclaw-workspace", "[memory]\npath = \"~/way/not/yet/memory.db\"\n"),
        ("way", ".collieclaw", "workspace_dir = \"~/way/work\"\n"),
    ] {
        let test_agent = TestAgent::new();
        symlink(test_agent.path().join(to), test_agent.path().join(link)).unwrap();
        fs::write(test_agent.home().join("config.toml"), config).unwrap();
        let validate = test_agent.run(&["config", "validate"]);
        assert_eq!(validate.code, 3, "{config}: {validate:?}");
    }
}
