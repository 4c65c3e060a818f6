//! `shepherd demo` without a terminal: it checks its own claims and leaves nothing behind.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{command, text, wait_until};

/// Starts `shepherd` without a daemon, and so a demonstration, which keeps its files in this folder.
fn demo(folder: &tempfile::TempDir) -> Child {
    let nobody = folder.path().join("nobody").join("socket");
    command(&[]).env("TMPDIR", folder.path()).env("SHEPHERD_SOCKET", nobody).spawn().unwrap()
}

fn short_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("de-").tempdir_in("/tmp").unwrap()
}

fn files_left_in(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// Returns the command lines that contain this text.
fn processes_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).into_owned());
    commands.filter(|command| command.contains(text)).collect()
}

#[test]
fn the_demonstration_passes_its_checks_and_leaves_nothing_behind() {
    // S13.5.
    let folder = short_folder();
    let output = demo(&folder).wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    assert!(shown.contains("is refused: "), "{shown}");
    assert_eq!(shown.matches("not stopped early").count(), 2, "{shown}");
    assert!(shown.contains("linked by their hashes, and none was changed"), "{shown}");
    assert!(shown.contains("no program it started is left"), "{shown}");
    assert!(!shown.contains('\x1b'), "colours only on a terminal");
    assert_eq!(files_left_in(&folder), Vec::<PathBuf>::new());
    assert_eq!(processes_with(folder.path().to_str().unwrap()), Vec::<String>::new());
}

#[test]
fn a_killed_demonstration_takes_its_daemon_with_it() {
    for signal in [Signal::KILL, Signal::TERM] {
        let folder = short_folder();
        let mut demo = demo(&folder);
        let place = folder.path().to_str().unwrap().to_owned();
        wait_until("the daemon is up", || {
            let sockets = files_left_in(&folder).into_iter().map(|private| private.join("shepherd.sock"));
            sockets.into_iter().any(|socket| UnixStream::connect(socket).is_ok())
        });
        kill_process(Pid::from_child(&demo), signal).unwrap();
        demo.wait().unwrap();
        wait_until("the daemon is gone", || processes_with(&place).is_empty());
        wait_until("its folder is gone", || files_left_in(&folder).is_empty());
    }
}

#[test]
fn interactive_commands_refuse_json_output() {
    for arguments in [&[][..], &["demo"], &["watch"], &["tour"], &["up"]] {
        let output = command(&[arguments, &["--output", "json"]].concat()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    }
    let watch = command(&["watch", "--socket", "/nonexistent/socket"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(watch.status.code(), Some(3));
    assert!(text(&watch.stderr).contains("the live view needs a terminal"));
}
