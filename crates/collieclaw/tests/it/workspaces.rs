//! Workspaces (C16): which folders can be trusted, and what each keeps for itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{AgentOutput, TestAgent, agent_output};

/// Creates a folder in the user's home, with one file.
pub(crate) fn project(test_agent: &TestAgent, name: &str) -> PathBuf {
    let folder = test_agent.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("of-{}.txt", name.replace('/', "-"))), "hay").unwrap();
    folder.canonicalize().unwrap()
}

pub(crate) fn run_in(test_agent: &TestAgent, folder: &Path, arguments: &[&str]) -> AgentOutput {
    agent_output(test_agent.command(arguments).current_dir(folder).output().unwrap())
}

pub(crate) fn at_terminal_in(
    test_agent: &TestAgent,
    folder: &Path,
    arguments: &[&str],
    dialog: &[(&str, &str)],
) -> AgentOutput {
    let mut command = test_agent.command(arguments);
    command.current_dir(folder);
    TestAgent::run_at_terminal(command, dialog)
}

pub(crate) fn trust(test_agent: &TestAgent, folder: &Path) {
    let trusted = test_agent.run(&["workspace", "trust", folder.to_str().unwrap(), "--yes"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
}

const LIST_FILES: [&str; 5] = ["tool", "run", "file_list", "--json", r#"{"path":"."}"#];

/// C16: the folder that the agent is started in is its workspace once it is trusted.
#[test]
fn the_operator_is_asked_once_whether_to_trust_the_folder() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    let first = at_terminal_in(&test_agent, &folder, &LIST_FILES, &[("Trust this folder? [y/N] ", "y\n")]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.out.contains("of-meadow.txt"), "{first:?}");
    let later = run_in(&test_agent, &folder, &LIST_FILES);
    assert!(later.code == 0 && later.out.contains("of-meadow.txt"), "{later:?}");
    let elsewhere = test_agent.run(&LIST_FILES);
    assert!(elsewhere.code == 0 && !elsewhere.out.contains("of-meadow.txt"), "{elsewhere:?}");
}

#[test]
fn a_folder_that_is_not_trusted_stays_closed() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    let refused = at_terminal_in(&test_agent, &folder, &LIST_FILES, &[("Trust this folder? [y/N] ", "\n")]);
    assert!(refused.code == 0 && !refused.out.contains("of-meadow.txt"), "{refused:?}");
    let headless = run_in(&test_agent, &folder, &LIST_FILES);
    assert!(headless.code == 0 && !headless.out.contains("of-meadow.txt"), "{headless:?}");
    assert!(
        headless.err.contains("is not a trusted workspace (`collieclaw workspace trust`)"),
        "{headless:?}"
    );
    let named = test_agent.run(&["agent", "-w", folder.to_str().unwrap(), "-m", "hi"]);
    assert_eq!(named.code, 5, "{named:?}");
    assert!(named.err.contains("collieclaw workspace trust PATH"), "{named:?}");
    let listed = test_agent.run(&["workspace", "list", "--output", "json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn the_question_shows_the_real_path_and_its_owner() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "real");
    let link = test_agent.path().join("link");
    symlink(&folder, &link).unwrap();
    let asked = at_terminal_in(&test_agent, &link, &LIST_FILES, &[("Trust this folder? [y/N] ", "y\n")]);
    assert!(asked.code == 0 && asked.out.contains("of-real.txt"), "{asked:?}");
    let shown = test_agent.run(&["workspace", "show", link.to_str().unwrap(), "--output", "json"]).json();
    assert_eq!(shown["path"], folder.to_str().unwrap());
    // The link now leads elsewhere, and trust doesn't follow it.
    fs::remove_file(&link).unwrap();
    symlink(project(&test_agent, "other"), &link).unwrap();
    assert_eq!(test_agent.run(&["workspace", "show", link.to_str().unwrap()]).code, 5);
}

#[test]
fn control_characters_in_a_path_are_made_visible() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "a\n  owner: root\u{1b}[2K");
    let mut command = test_agent.command(&LIST_FILES);
    command.current_dir(&folder);
    let mut terminal = crate::support::AgentTerminal::open();
    command.stdin(terminal.slave()).stderr(terminal.slave());
    let mut child = command.spawn().unwrap();
    drop(command);
    terminal.close_slave();
    let shown = terminal.wait_for("Trust this folder? [y/N] ");
    assert!(shown.contains("a\\n  owner: root\\u{1b}[2K"), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    terminal.type_in("y\n");
    assert_eq!(crate::support::wait_for_exit(&mut child), 0);
    let listed = test_agent.run(&["workspace", "list"]);
    assert!(listed.out.contains("a\\n  owner: root\\u{1b}[2K  trusted"), "{listed:?}");
}

#[test]
fn folders_that_hold_too_much_or_belong_to_others_are_refused() {
    let test_agent = TestAgent::new();
    let home = test_agent.path().canonicalize().unwrap();
    let open = project(&test_agent, "open");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let inside_open = project(&test_agent, "open/inner");
    fs::create_dir_all(home.join(".ssh/keys")).unwrap();
    fs::create_dir(test_agent.home().join("inner")).unwrap();
    for (folder, reason) in [
        (PathBuf::from("/"), "it is the whole file system"),
        (home.clone(), "it is your home folder"),
        (home.parent().unwrap().to_owned(), "contains"),
        (test_agent.home(), "it belongs to CollieClaw itself"),
        (test_agent.home().join("inner"), "it belongs to CollieClaw itself"),
        (home.join(".ssh/keys"), "it is under the forbidden path"),
        (home.join("missing"), "there is no such folder"),
        (home.join(".collieclaw/config.toml"), "it is not a folder"),
        (open, "every user of this machine can write to"),
        (inside_open, "every user of this machine can write to"),
        (PathBuf::from("/proc/self"), "it belongs to the system"),
        (PathBuf::from("/usr/bin"), "it belongs to the system"),
    ] {
        let path = folder.to_str().unwrap();
        for arguments in [&["workspace", "trust", path, "--yes"][..], &["agent", "-w", path, "-m", "hi"]] {
            let refused = test_agent.run(arguments);
            assert!(refused.code == 3, "{path}: {refused:?}");
            assert!(refused.err.contains(reason), "{path}: {refused:?}");
        }
    }
}

/// Other users can't lead the agent into a folder of theirs.
#[test]
fn a_folder_of_another_user_is_refused() {
    let test_agent = TestAgent::new();
    let refused = if rustix::process::geteuid().is_root() {
        let folder = project(&test_agent, "theirs");
        std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
        test_agent.run(&["workspace", "trust", folder.to_str().unwrap(), "--yes"])
    } else {
        // In a user namespace with only one user, all others have this number, also the owner of this folder.
        let arguments = ["workspace", "trust", "/var/lib", "--yes"];
        let mut command = test_agent.command_through("unshare", &["--user", "--map-root-user"], &arguments);
        agent_output(command.output().unwrap())
    };
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("it belongs to another user (user id 65534)"), "{refused:?}");
}

#[test]
fn a_folder_inside_a_workspace_uses_that_workspace() {
    let test_agent = TestAgent::new();
    let outer = project(&test_agent, "outer");
    trust(&test_agent, &outer);
    let inner = project(&test_agent, "outer/src/deep");
    assert!(run_in(&test_agent, &inner, &LIST_FILES).out.contains("of-outer.txt"));
    // An inner folder that is trusted itself comes first.
    trust(&test_agent, &inner);
    assert!(!run_in(&test_agent, &inner, &LIST_FILES).out.contains("of-outer.txt"));
    // The default workspace needs no trust, also inside.
    let default = test_agent.workspace().join("notes");
    fs::create_dir(&default).unwrap();
    assert!(run_in(&test_agent, &default, &LIST_FILES).out.contains("notes"));
}

#[test]
fn another_folder_in_the_place_of_a_trusted_one_is_not_trusted() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    trust(&test_agent, &folder);
    fs::rename(&folder, test_agent.path().join("away")).unwrap();
    project(&test_agent, "meadow");
    for arguments in [&LIST_FILES[..], &["agent", "-m", "hi"]] {
        let refused = run_in(&test_agent, &folder, arguments);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(
            refused.err.contains("another folder is in the place of the trusted workspace"),
            "{refused:?}"
        );
    }
    assert!(test_agent.run(&["workspace", "list"]).out.contains("replaced: trust it again"));
    trust(&test_agent, &folder);
    assert_eq!(run_in(&test_agent, &folder, &LIST_FILES).code, 0);
    // The folder that was moved away is not trusted at its new place.
    let moved = test_agent.path().join("away");
    assert!(!run_in(&test_agent, &moved, &LIST_FILES).out.contains("of-meadow.txt"));
}

/// C7.4: nothing in the workspace is read as a rule.
#[test]
fn files_of_the_workspace_are_no_rules() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    trust(&test_agent, &folder);
    let rules = "autonomy = \"full\"\n[security]\nautonomy = \"full\"\nallowed_commands = [\"uname\"]\n";
    for place in [".collieclaw/config.toml", ".collieclaw/workspace.toml", "workspace.toml", "config.toml"] {
        fs::create_dir_all(folder.join(place).parent().unwrap()).unwrap();
        fs::write(folder.join(place), rules).unwrap();
    }
    let call = ["policy", "explain", "shell", "--json", r#"{"command":"uname"}"#, "--output", "json"];
    let verdict = run_in(&test_agent, &folder, &call).json();
    assert_eq!(verdict["decision"], "deny", "{verdict}");
    assert_eq!(
        run_in(&test_agent, &folder, &["workspace", "show", "--output", "json"]).json()["network"],
        "none"
    );
}

#[test]
fn rules_that_others_can_change_are_not_used() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    trust(&test_agent, &folder);
    let workspaces = fs::read_dir(test_agent.home().join("workspaces")).unwrap().flatten();
    let own = workspaces.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
    let file = own.join("workspace.toml");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let refused = run_in(&test_agent, &folder, &LIST_FILES);
    assert!(refused.code == 3 && refused.err.contains("can be changed by others"), "{refused:?}");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "path = 3\n").unwrap();
    let refused = run_in(&test_agent, &folder, &LIST_FILES);
    assert!(refused.code == 3 && refused.err.contains("are not valid"), "{refused:?}");
    fs::rename(&file, own.join("elsewhere")).unwrap();
    symlink(own.join("elsewhere"), &file).unwrap();
    assert_eq!(run_in(&test_agent, &folder, &LIST_FILES).code, 3);
}

#[test]
fn two_processes_that_change_rules_lose_nothing() {
    let test_agent = TestAgent::new();
    let names: Vec<String> = (0..8).map(|number| format!("tool-{number}")).collect();
    let children: Vec<_> =
        names.iter().map(|name| test_agent.command(&["allow", name]).spawn().unwrap()).collect();
    for child in children {
        let done = agent_output(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
    }
    let shown = test_agent.run(&["workspace", "show", "--output", "json"]).json();
    assert_eq!(shown["allowed_commands"], serde_json::json!(names));
    let left = fs::read_dir(test_agent.home().join("workspaces")).unwrap().flatten();
    let drafts = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("new"));
    assert_eq!(drafts.count(), 0);
}

#[test]
fn conversations_belong_to_their_workspace() {
    let test_agent = TestAgent::new();
    let folder = project(&test_agent, "meadow");
    trust(&test_agent, &folder);
    let said = ["agent", "--conversation", "field", "-m", "the Aardvark adapter is green"];
    assert_eq!(run_in(&test_agent, &folder, &said).code, 0);
    for (arguments, shown) in
        [(&["memory", "list"][..], "field"), (&["memory", "search", "aardvark"], "Aardvark")]
    {
        assert!(run_in(&test_agent, &folder, arguments).out.contains(shown));
        assert!(!test_agent.run(arguments).out.contains(shown), "{arguments:?}");
        assert!(test_agent.run(&[arguments, &["--all"]].concat()).out.contains(shown), "{arguments:?}");
    }
    let tool = ["tool", "run", "memory_search", "--json", r#"{"query":"aardvark"}"#];
    assert!(run_in(&test_agent, &folder, &tool).out.contains("Aardvark"));
    assert!(!test_agent.run(&tool).out.contains("Aardvark"));
    // `-c` starts a new conversation here, because the last one is elsewhere.
    assert_eq!(test_agent.run(&["agent", "-c", "-m", "hello"]).code, 0);
    assert!(!test_agent.run(&["memory", "show", "field"]).out.contains("hello"));
    let refused = test_agent.run(&["agent", "--conversation", "field", "-m", "hello"]);
    assert!(refused.code == 1 && refused.err.contains("belongs to the workspace"), "{refused:?}");
}

/// C7.7: an approval for good holds in the workspace in which it was given.
#[test]
fn approvals_belong_to_their_workspace() {
    let test_agent = TestAgent::new();
    let (one, two) = (project(&test_agent, "one"), project(&test_agent, "two"));
    trust(&test_agent, &one);
    trust(&test_agent, &two);
    let write = ["tool", "run", "file_write", "--json", r#"{"path":"x","content":"y"}"#];
    let always = at_terminal_in(&test_agent, &one, &write, &[("Approve? [y/N/a]", "a\n")]);
    assert_eq!(always.code, 0, "{always:?}");
    assert_eq!(run_in(&test_agent, &one, &write).code, 0);
    assert_eq!(run_in(&test_agent, &two, &write).code, 5);
    assert!(run_in(&test_agent, &two, &["approval", "list"]).out.contains("another workspace"));
    let forgotten = test_agent.run(&["workspace", "forget", one.to_str().unwrap()]);
    assert!(forgotten.out.contains("with 1 permanent approval"), "{forgotten:?}");
    assert!(test_agent.run(&["approval", "list"]).out.contains("no permanent approvals"));
    assert_eq!(test_agent.run(&["workspace", "forget", one.to_str().unwrap()]).code, 2);
}
