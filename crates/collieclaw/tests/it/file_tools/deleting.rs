//! `file_delete` and the trash: what was deleted can be restored, and nothing else is touched.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{agent_with_files, refused, write_files};
use crate::support::{TestAgent, agent_output};

fn delete(test_agent: &TestAgent, path: &str) {
    test_agent.call_output("file_delete", &json!({ "path": path }).to_string());
}

/// Returns the ids in the trash, newest first.
fn trash_ids(test_agent: &TestAgent) -> Vec<String> {
    let items = test_agent.run(&["trash", "list", "--output", "json"]).json();
    items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_deleted_file_or_folder_is_listed_and_restored() {
    let test_agent = agent_with_files(&[("a.txt", "a"), ("folder/sub/b.txt", "b")]);
    let workspace = test_agent.workspace();
    delete(&test_agent, "a.txt");
    delete(&test_agent, "folder");
    assert_eq!(fs::read_dir(&workspace).unwrap().count(), 0);
    let shown = test_agent.run(&["trash", "list"]);
    assert!(shown.out.contains("a.txt") && shown.out.contains("folder"), "{shown:?}");
    let ids = trash_ids(&test_agent);
    assert_eq!(ids.len(), 2);
    for id in &ids {
        assert_eq!(test_agent.run(&["trash", "restore", id]).code, 0);
    }
    assert_eq!(fs::read_to_string(workspace.join("folder/sub/b.txt")).unwrap(), "b");
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "a");
    assert_eq!(trash_ids(&test_agent), Vec::<String>::new());
    let gone = test_agent.run(&["trash", "restore", &ids[0]]);
    assert!(gone.code == 2 && gone.err.contains("no such item"), "{gone:?}");
    assert_eq!(test_agent.run(&["trash", "restore", "../plugins"]).code, 2);
}

#[test]
fn a_restored_file_never_replaces_another() {
    let test_agent = agent_with_files(&[("sub/a.txt", "old")]);
    delete(&test_agent, "sub/a.txt");
    write_files(&test_agent.workspace(), &[("sub/a.txt", "new")]);
    let [id] = trash_ids(&test_agent).try_into().unwrap();
    let taken = test_agent.run(&["trash", "restore", &id]);
    assert!(taken.code == 1 && taken.err.contains("exists already"), "{taken:?}");
    assert_eq!(fs::read_to_string(test_agent.workspace().join("sub/a.txt")).unwrap(), "new");
    // The folder has gone in the meantime, and is created again.
    fs::remove_dir_all(test_agent.workspace().join("sub")).unwrap();
    assert_eq!(test_agent.run(&["trash", "restore", &id]).code, 0);
    assert_eq!(fs::read_to_string(test_agent.workspace().join("sub/a.txt")).unwrap(), "old");
}

#[test]
fn a_folder_that_became_a_symlink_does_not_redirect_a_restored_file() {
    let test_agent = agent_with_files(&[("sub/config", "evil"), (".git/HEAD", "x")]);
    let (workspace, outside) = (test_agent.workspace(), test_agent.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    delete(&test_agent, "sub/config");
    let [id] = trash_ids(&test_agent).try_into().unwrap();
    for (target, there) in
        [(outside.clone(), outside.join("config")), (".git".into(), workspace.join(".git/config"))]
    {
        let _ = fs::remove_file(workspace.join("sub")).or_else(|_| fs::remove_dir(workspace.join("sub")));
        symlink(&target, workspace.join("sub")).unwrap();
        let refused = test_agent.run(&["trash", "restore", &id]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(!there.exists(), "{target:?}");
    }
    assert_eq!(trash_ids(&test_agent), [id]);
}

#[test]
fn links_are_removed_and_their_targets_stay() {
    let test_agent = agent_with_files(&[("a.txt", "a"), ("folder/b", "b")]);
    let (workspace, outside) = (test_agent.workspace(), test_agent.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "x").unwrap();
    symlink(&outside, workspace.join("to-folder")).unwrap();
    symlink("missing", workspace.join("broken")).unwrap();
    symlink("a.txt", workspace.join("to-file")).unwrap();
    fs::hard_link(workspace.join("a.txt"), workspace.join("second-name")).unwrap();
    for path in ["to-folder", "broken", "to-file", "second-name"] {
        delete(&test_agent, path);
        assert!(workspace.join(path).symlink_metadata().is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "a");
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "x");
    for id in trash_ids(&test_agent) {
        assert_eq!(test_agent.run(&["trash", "restore", &id]).code, 0);
    }
    assert_eq!(fs::read_link(workspace.join("to-folder")).unwrap(), outside);
    assert_eq!(fs::metadata(workspace.join("a.txt")).unwrap().nlink(), 2);
}

#[test]
fn protected_paths_are_not_deleted() {
    let test_agent = agent_with_files(&[(".git/config", "x"), ("kept/secret", "x")])
        .with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"");
    let secret = test_agent.workspace().join("kept/secret");
    let test_agent = test_agent
        .with_config_change("forbidden_paths = [", &format!("forbidden_paths = [\"{}\", ", secret.display()));
    for (path, reason) in [
        (".git", "executable-config"),
        (".git/config", "executable-config"),
        ("kept", "forbidden-path"),
        ("kept/secret", "forbidden-path"),
        (".", "wrong-kind"),
        ("..", "outside-workspace"),
        ("~/.collieclaw", "own-home"),
        ("/etc/passwd", "forbidden-path"),
    ] {
        let arguments: Value = json!({ "path": path });
        assert_eq!(refused(&test_agent, "file_delete", &arguments), (4, reason.to_owned()), "{path}");
    }
    assert!(secret.exists() && trash_ids(&test_agent).is_empty());
}

/// An agent whose home, with the trash, is on another file system than its workspace.
struct DividedAgent {
    agent: TestAgent,
    shm: tempfile::TempDir,
}

impl DividedAgent {
    fn new() -> Self {
        let shm = tempfile::tempdir_in("/dev/shm").unwrap();
        let divided = Self { agent: TestAgent::empty(), shm };
        let device = |path: &std::path::Path| fs::metadata(path).unwrap().dev();
        if device(divided.shm.path()) == device(divided.agent.path()) {
            panic!(
                "/dev/shm and the folder for temporary files are one file system; set TMPDIR to another one"
            );
        }
        assert_eq!(divided.run(&["init"]).code, 0);
        let config = divided.shm.path().join("home/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replacen("\"supervised\"", "\"full\"", 1)).unwrap();
        divided
    }

    fn run(&self, arguments: &[&str]) -> crate::support::AgentOutput {
        let home = self.shm.path().join("home");
        agent_output(self.agent.command(arguments).env("COLLIECLAW_HOME", home).output().unwrap())
    }
}

#[test]
fn the_trash_may_be_on_another_file_system() {
    let divided = DividedAgent::new();
    let run = |arguments: &[&str]| divided.run(arguments);
    let workspace = divided.agent.workspace();
    write_files(&workspace, &[("folder/a", "a"), ("folder/sub/b", "b")]);
    symlink("a", workspace.join("folder/link")).unwrap();
    let deleted = run(&["tool", "run", "file_delete", "--json", "{\"path\": \"folder\"}"]);
    assert_eq!(deleted.code, 0, "{deleted:?}");
    assert!(!workspace.join("folder").exists());
    let id = run(&["trash", "list", "--output", "json"]).json()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&["trash", "restore", &id]).code, 0);
    assert_eq!(fs::read_to_string(workspace.join("folder/sub/b")).unwrap(), "b");
    assert_eq!(fs::read_link(workspace.join("folder/link")).unwrap().to_str(), Some("a"));
    // A file that is too large to be copied stays where it is, as a whole.
    fs::File::create(workspace.join("folder/huge")).unwrap().set_len(10 << 30).unwrap();
    let kept = run(&["tool", "run", "file_delete", "--json", "{\"path\": \"folder\"}"]);
    assert!(kept.code == 1 && kept.err.contains("too large for the trash"), "{kept:?}");
    assert!(workspace.join("folder/huge").exists() && workspace.join("folder/sub/b").exists());
    assert_eq!(run(&["trash", "list", "--output", "json"]).json(), json!([]));
}

/// Only root can remove the file from the folder without write permission.
#[test]
fn an_entry_that_can_not_be_removed_completely_is_in_the_trash_as_a_whole() {
    let divided = DividedAgent::new();
    let workspace = divided.agent.workspace();
    write_files(&workspace, &[("folder/a", "a"), ("folder/locked/b", "b")]);
    let locked = workspace.join("folder/locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    let deleted = divided.run(&["tool", "run", "file_delete", "--json", "{\"path\": \"folder\"}"]);
    assert!(deleted.code == 0 || deleted.err.contains("is in the trash, but"), "{deleted:?}");
    assert_eq!(deleted.code == 0, !locked.exists(), "{deleted:?}");
    if locked.exists() {
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_dir_all(workspace.join("folder")).unwrap();
    }
    let id = divided.run(&["trash", "list", "--output", "json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let _ = divided.run(&["trash", "restore", &id]);
    assert_eq!(fs::read_to_string(workspace.join("folder/a")).unwrap(), "a");
    assert_eq!(fs::read_to_string(workspace.join("folder/locked/b")).unwrap(), "b");
    let emptied = divided.run(&["trash", "empty", "--yes"]);
    assert_eq!(emptied.code, 0, "{emptied:?}");
    // The folder for tests can be removed only now.
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn emptying_asks_and_removes_for_good() {
    let test_agent = agent_with_files(&[("a", "a"), ("folder/b", "b")]);
    delete(&test_agent, "a");
    delete(&test_agent, "folder");
    assert_eq!(test_agent.run(&["trash", "empty"]).code, 5);
    let no = test_agent.at_terminal(&["trash", "empty"], &[("Remove them for good? [y/N]", "n\n")]);
    assert_eq!((no.code, trash_ids(&test_agent).len()), (4, 2), "{no:?}");
    let yes = test_agent.run(&["trash", "empty", "--yes", "--output", "json"]);
    assert_eq!((yes.code, yes.json()), (0, json!({ "removed": 2 })));
    assert!(!test_agent.home().join("trash").exists());
    assert_eq!(test_agent.run(&["trash", "list"]).out.trim(), "the trash is empty");
}
