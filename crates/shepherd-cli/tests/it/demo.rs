//! The main command: without a terminal a story that checks itself, and nothing left whatever ends it.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{command, text, wait_until};

/// A demonstration whose folders can be told from others'.
fn demo(folder: &tempfile::TempDir) -> Child {
    command(&[]).env("TMPDIR", folder.path()).spawn().unwrap()
}

fn short_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("de-").tempdir_in("/tmp").unwrap()
}

fn files_left_in(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// Processes with this text in their command line.
fn processes_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).into_owned());
    commands.filter(|command| command.contains(text)).collect()
}

#[test]
fn the_story_keeps_its_promises_and_leaves_nothing_behind() {
    // S13.5.
    let folder = short_folder();
    let output = demo(&folder).wait_with_output().unwrap();
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(told.contains("is refused: "), "{told}");
    assert_eq!(told.matches("not ended a moment early").count(), 2, "{told}");
    assert!(told.contains("each with the hash of the one before: sound"), "{told}");
    assert!(told.contains("nothing that it started is left"), "{told}");
    assert!(!told.contains('\x1b'), "no colours but on a terminal");
    assert_eq!(files_left_in(&folder), Vec::<PathBuf>::new());
    assert_eq!(processes_with(folder.path().to_str().unwrap()), Vec::<String>::new());
}

#[test]
fn a_demonstration_that_is_killed_takes_its_daemon_with_it() {
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
fn what_is_for_people_has_no_json() {
    for arguments in [&[][..], &["demo"], &["watch"], &["tour"], &["up"]] {
        let output = command(&[arguments, &["--output", "json"]].concat()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    }
    let watch = command(&["watch", "--socket", "/nonexistent/socket"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(watch.status.code(), Some(3));
    assert!(text(&watch.stderr).contains("the live view needs a terminal"));
}
