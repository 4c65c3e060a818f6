//! `file_move`: inside the workspace only, and never over something that was not named.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{agent_with_files, refused};

fn moving(from: &str, to: &str) -> Value {
    json!({ "from": from, "to": to })
}

#[test]
fn files_folders_and_symlinks_are_moved_as_they_are() {
    let test_agent = agent_with_files(&[("a.txt", "a"), ("folder/b.txt", "b")]);
    let workspace = test_agent.workspace();
    symlink("/etc/passwd", workspace.join("link")).unwrap();
    for (from, to) in [("a.txt", "new/deep/a.txt"), ("folder/", "moved"), ("link", "moved/link")] {
        test_agent.call_output("file_move", &moving(from, to).to_string());
        assert!(workspace.join(from.trim_end_matches('/')).symlink_metadata().is_err(), "{from}");
    }
    assert_eq!(fs::read_to_string(workspace.join("new/deep/a.txt")).unwrap(), "a");
    assert_eq!(fs::read_to_string(workspace.join("moved/b.txt")).unwrap(), "b");
    assert_eq!(fs::read_link(workspace.join("moved/link")).unwrap().to_str(), Some("/etc/passwd"));
}

#[test]
fn an_existing_file_is_replaced_only_on_request() {
    let test_agent = agent_with_files(&[("a", "a"), ("b", "b"), ("folder/c", "c")]);
    let workspace = test_agent.workspace();
    test_agent.assert_call_fails("file_move", &moving("a", "b").to_string(), "`b` exists already");
    test_agent.assert_call_fails("file_move", &moving("a", "folder").to_string(), "`folder` exists already");
    test_agent.assert_call_fails("file_move", &moving("folder", "folder/inner").to_string(), "into itself");
    test_agent.assert_call_fails("file_move", &moving("missing", "x").to_string(), "does not exist");
    let over = |from: &str, to: &str| json!({ "from": from, "to": to, "overwrite": true }).to_string();
    test_agent.assert_call_fails("file_move", &over("a", "folder"), "a folder can't be replaced");
    test_agent.assert_call_fails("file_move", &over("folder", "a"), "a folder can't be replaced");
    test_agent.call_output("file_move", &over("a", "b"));
    assert_eq!(fs::read_to_string(workspace.join("b")).unwrap(), "a");
    assert!(!workspace.join("a").exists() && workspace.join("folder/c").exists());
}

#[test]
fn both_ends_of_a_move_are_judged_like_a_write() {
    let test_agent = agent_with_files(&[
        ("a", "a"),
        ("kept/secret/key", "key"),
        (".git/config", "[core]\n"),
        ("linked", "x"),
    ])
    .with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"");
    let workspace = test_agent.workspace();
    fs::hard_link(workspace.join("linked"), workspace.join("other-name")).unwrap();
    symlink(".git", workspace.join("harmless")).unwrap();
    let test_agent = test_agent.with_config_change(
        "forbidden_paths = [",
        &format!("forbidden_paths = [\"{}\", ", workspace.join("kept/secret").display()),
    );
    for (from, to, reason) in [
        ("a", ".git/hooks/pre-commit", "executable-config"),
        ("a", "harmless/config", "executable-config"),
        ("a", "sub/.GIT", "executable-config"),
        (".git", "old", "executable-config"),
        (".git/config", "old", "executable-config"),
        ("harmless/config", "old", "executable-config"),
        ("kept", "old", "forbidden-path"),
        ("kept/secret/key", "old", "forbidden-path"),
        ("a", "../out", "outside-workspace"),
        ("../.bashrc", "in", "outside-workspace"),
        ("a", "~/.ssh/authorized_keys", "forbidden-path"),
        ("~/.collieclaw/config.toml", "in", "own-home"),
        ("linked", "x", "hard-link"),
        (".", "x", "wrong-kind"),
    ] {
        let arguments = moving(from, to);
        assert_eq!(refused(&test_agent, "file_move", &arguments), (4, reason.to_owned()), "{from} to {to}");
    }
}
