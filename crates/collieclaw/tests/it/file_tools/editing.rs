//! `file_edit`: exact replacements, all or none, with a diff for the operator and the model.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{agent_with_files, refused, write_files};
use crate::support::TestAgent;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "edits": [{ "old_text": old, "new_text": new }] })
}

#[test]
fn the_operator_sees_the_diff_and_the_model_gets_it() {
    let test_agent = TestAgent::new();
    write_files(&test_agent.workspace(), &[("a.py", "def f():\n    return 1\n")]);
    let arguments = edit("a.py", "return 1", "return 2").to_string();
    let run = ["tool", "run", "file_edit", "--json", &arguments];
    assert_eq!(test_agent.run(&run).code, 5, "nobody can be asked");
    let no = test_agent.at_terminal(&run, &[("Approve? [y/N/a]", "n\n")]);
    assert_eq!(no.code, 4, "{no:?}");
    let diff = ["-    return 1", "+    return 2"];
    let shown = [(diff[0], ""), (diff[1], ""), ("Approve? [y/N/a]", "y\n")];
    let yes = test_agent.at_terminal(&run, &shown);
    assert_eq!(yes.code, 0, "{yes:?}");
    for line in diff {
        assert!(yes.out.contains(line), "{line}: {yes:?}");
    }
    let text = fs::read_to_string(test_agent.workspace().join("a.py")).unwrap();
    assert_eq!(text, "def f():\n    return 2\n");
}

#[test]
fn an_edit_that_cannot_be_made_fails_without_a_question() {
    let test_agent = TestAgent::new();
    write_files(&test_agent.workspace(), &[("a.txt", "one\ntwo\none\n")]);
    // A question at this terminal would never be answered.
    let run = |arguments: &Value| {
        test_agent.at_terminal(&["tool", "run", "file_edit", "--json", &arguments.to_string()], &[])
    };
    let repeated = run(&edit("a.txt", "one", "1"));
    assert!(repeated.code == 1 && repeated.err.contains("occurs 2 times, in lines 1, 3"), "{repeated:?}");
    let missing = run(&edit("a.txt", "twoo", "2"));
    assert!(missing.code == 1 && missing.err.contains("nearest line is line 2"), "{missing:?}");
    let half = json!({ "path": "a.txt", "edits": [
        { "old_text": "two", "new_text": "2" }, { "old_text": "three", "new_text": "3" }] });
    assert_eq!(run(&half).code, 1);
    assert_eq!(fs::read_to_string(test_agent.workspace().join("a.txt")).unwrap(), "one\ntwo\none\n");
    assert_eq!(
        test_agent.receipt_summaries(),
        [(); 3].map(|()| ["file_edit", "failed", "tool-failed"].map(str::to_owned))
    );
}

#[test]
fn a_file_that_changes_while_the_operator_thinks_is_not_edited() {
    let test_agent = TestAgent::new();
    let file = test_agent.workspace().join("a.txt");
    fs::write(&file, "one\ntwo\n").unwrap();
    let arguments = edit("a.txt", "two", "2").to_string();
    let mut terminal = crate::support::AgentTerminal::open();
    let mut command = test_agent.command(&["tool", "run", "file_edit", "--json", &arguments]);
    command.stdin(terminal.slave()).stderr(terminal.slave());
    let mut child = crate::support::ChildGuard(command.spawn().unwrap());
    drop(command);
    terminal.close_slave();
    terminal.wait_for("Approve? [y/N/a]");
    fs::write(&file, "other\ntwo\n").unwrap();
    terminal.type_in("y\n");
    assert_eq!(crate::support::wait_for_exit(&mut child), 1);
    assert!(terminal.read_to_end().contains("has changed since the diff was shown"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "other\ntwo\n");
}

#[test]
fn an_edit_keeps_the_walls_of_a_write() {
    let test_agent = agent_with_files(&[("a.txt", "one\n"), (".git/config", "[core]\n")])
        .with_config_change("autonomy = \"full\"", "autonomy = \"supervised\"");
    let workspace = test_agent.workspace();
    symlink("/etc/passwd", workspace.join("passwd")).unwrap();
    symlink(".git/config", workspace.join("harmless")).unwrap();
    fs::hard_link(workspace.join("a.txt"), workspace.join("linked")).unwrap();
    for (path, reason) in [
        (".git/config", "executable-config"),
        ("harmless", "executable-config"),
        ("passwd", "forbidden-path"),
        ("../.ssh/config", "forbidden-path"),
        ("../x", "outside-workspace"),
        ("~/.collieclaw/config.toml", "own-home"),
        ("a.txt", "hard-link"),
    ] {
        assert_eq!(
            refused(&test_agent, "file_edit", &edit(path, "o", "x")),
            (4, reason.to_owned()),
            "{path}"
        );
    }
    assert_eq!(fs::read_to_string(workspace.join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn bytes_modes_and_line_endings_of_a_file_are_kept() {
    let test_agent = agent_with_files(&[("dos.txt", "a\r\nb\r\n"), ("run.sh", "#!/bin/sh\necho 1\n")]);
    let workspace = test_agent.workspace();
    fs::write(workspace.join("binary"), b"one\xff").unwrap();
    fs::set_permissions(workspace.join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    test_agent.call_output("file_edit", &edit("dos.txt", "a\nb", "x\ny").to_string());
    assert_eq!(fs::read(workspace.join("dos.txt")).unwrap(), b"x\r\ny\r\n");
    test_agent.call_output("file_edit", &edit("run.sh", "echo 1", "echo 2").to_string());
    assert_eq!(fs::metadata(workspace.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    let arguments = edit("binary", "one", "two").to_string();
    test_agent.assert_call_fails("file_edit", &arguments, "is not UTF-8 text (byte 3)");
    // A sparse file of 10 GB takes no time and no memory.
    fs::File::create(workspace.join("huge")).unwrap().set_len(10 << 30).unwrap();
    test_agent.assert_call_fails("file_edit", &edit("huge", "one", "two").to_string(), "the limit for edits");
}
