//! Files that make a folder a repository, or steer one, are renamed if `git` could run a command for them (C7.2).

use serde_json::json;

use super::agent_with_files;

const HARMFUL: &str = "[core]\n\tfsmonitor = ./x\n";

#[test]
fn harmful_settings_of_a_new_repository_are_renamed() {
    let test_agent = agent_with_files(&[
        ("a/config", HARMFUL),
        ("b/HEAD", "ref: refs/heads/main\n"),
        ("c/HEAD", "ref: refs/heads/main\n"),
        ("c/config", "[core]\n\tbare = true\n"),
        ("d/HEAD", "ref: refs/heads/main\n"),
        ("d/notes", HARMFUL),
        ("e/HEAD", "ref: refs/heads/main\n"),
    ]);
    for (tool, arguments, harmful) in [
        // The settings were there, and the folder becomes a repository.
        ("file_write", json!({ "path": "a/HEAD", "content": "ref: refs/heads/main\n" }), "a/config"),
        ("file_write", json!({ "path": "b/config", "content": HARMFUL }), "b/config"),
        (
            "file_edit",
            json!({ "path": "c/config", "edits": [{ "old_text": "bare = true", "new_text": "fsmonitor = ./x" }] }),
            "c/config",
        ),
        ("file_move", json!({ "from": "d/notes", "to": "d/config" }), "d/config"),
        (
            "file_write",
            json!({ "path": "e/hooks/pre-commit", "content": "#!/bin/sh\n" }),
            "e/hooks/pre-commit",
        ),
    ] {
        let output = test_agent.call_output(tool, &arguments.to_string());
        assert!(output.contains("could make other programs run commands, so it was renamed"), "{output}");
        assert!(!test_agent.workspace().join(harmful).exists(), "{harmful}");
    }
}

#[test]
fn other_files_of_these_names_stay() {
    let test_agent = agent_with_files(&[("repo/HEAD", "ref: refs/heads/main\n")]);
    for (path, content) in [
        ("config", "theme = dark\n"),
        ("src/config", HARMFUL),
        ("src/hooks/use-state.js", "export {}\n"),
        ("repo/config", "[core]\n\tbare = true\n"),
        ("repo/description", "sheep\n"),
    ] {
        let arguments = json!({ "path": path, "content": content });
        let output = test_agent.call_output("file_write", &arguments.to_string());
        assert!(!output.contains("renamed"), "{path}: {output}");
        assert!(test_agent.workspace().join(path).exists(), "{path}");
    }
}
