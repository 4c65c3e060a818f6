//! The private temporary folder: its place, its mode, and its removal with the tree.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use ward_process::sandbox::{Sandbox, TemporaryFiles};
use ward_process::{
    Containment, OutputTarget, ProcessSpec, SpawnError, StdinSource, StopLadder, Supervisor, probe,
};

use super::{SandboxFixture, run, spawn, wait_for_output};
use crate::harness::wait_until;

/// Creates `parent` and returns a sandbox with its temporary folder in it.
fn with_temporary_in(fixture: &SandboxFixture, parent: &Path) -> Sandbox {
    fs::create_dir(parent).unwrap();
    Sandbox { temporary: TemporaryFiles::PrivateIn(parent.to_owned()), ..fixture.sandbox() }
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn the_temporary_folder_is_private_and_gone_after_the_tree() {
    let fixture = SandboxFixture::new();
    let parent = fixture.path("temporary");
    let script = "mkdir -p $TMPDIR/a/b; chmod 000 $TMPDIR/a/b; chmod 500 $TMPDIR/a; \
                  stat -c %a $TMPDIR; echo $TMPDIR; ln -s / $TMPDIR/root";
    let spec = fixture.spec("/bin/sh").args(["-c", script]).sandbox(with_temporary_in(&fixture, &parent));
    let mut tree = spawn(Containment::ProcessGroup, spec);
    tree.wait(None).unwrap();
    let output = String::from_utf8(tree.stdout().unwrap().bytes().to_vec()).unwrap();
    let (mode, folder) = output.trim_end().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(Path::new(folder).starts_with(&parent));
    assert_eq!(entries(&parent), 0);
    assert!(fixture.secret().exists());
}

#[test]
fn the_temporary_folder_of_a_tree_without_a_handle_stays_until_the_tree_ends() {
    for containment in probe().available().collect::<Vec<_>>() {
        let fixture = SandboxFixture::new();
        let parent = fixture.path("temporary");
        let script = "read word && echo $word > $TMPDIR/word && cat $TMPDIR/word > word && sleep 60";
        let (reader, writer) = std::io::pipe().unwrap();
        let spec = fixture
            .spec("/bin/sh")
            .args(["-c", script])
            .stdin(StdinSource::FromFd(reader.into()))
            .sandbox(with_temporary_in(&fixture, &parent));
        let tree = spawn(containment, spec);
        let record = tree.record();
        drop(tree);
        assert_eq!(entries(&parent), 1, "{containment}: the tree still runs");
        (&writer).write_all(b"written\n").unwrap();
        wait_until("the word", || text_of(&fixture.path("workspace/word")) == "written\n");

        let supervisor = Supervisor::with_containment(containment).unwrap();
        let mut tree = supervisor.reattach(&record).unwrap();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert_eq!(entries(&parent), 0, "{containment}: the tree has ended");
    }
}

fn text_of(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn a_program_that_never_started_leaves_no_temporary_folder() {
    for containment in probe().available().collect::<Vec<_>>() {
        let fixture = SandboxFixture::new();
        let parent = fixture.path("temporary");
        let spec = fixture.spec("/bin/nowhere").sandbox(with_temporary_in(&fixture, &parent));
        let id = format!("never-{}", std::process::id()).parse().unwrap();
        let error = Supervisor::with_containment(containment).unwrap().spawn(id, spec).err();
        assert!(matches!(error, Some(SpawnError::Start { .. })), "{error:?}");
        assert_eq!(entries(&parent), 0, "{containment}");
    }
}

#[test]
fn the_default_temporary_folder_is_in_tmp() {
    let spec = ProcessSpec::new("/bin/sh")
        .args(["-c", "echo $TMPDIR"])
        .stdout(OutputTarget::Capture { limit: 1024 })
        .stderr(OutputTarget::Capture { limit: 1024 })
        .sandbox(Sandbox::system_read_only());
    let outcome = run(spec);
    assert!(outcome.stdout.starts_with("/tmp/ward-"), "{outcome:?}");
}

#[test]
fn a_private_folder_can_take_the_place_of_tmp() {
    for containment in probe().available().collect::<Vec<_>>() {
        let name = format!("/tmp/ward-test-{}", std::process::id());
        let script = format!(
            "echo $TMPDIR $HOME; ls -A /tmp; echo text > {name}; cat {name}; mkdir /tmp/a && ls /tmp"
        );
        let mut sandbox = Sandbox::system_read_only();
        sandbox.temporary = TemporaryFiles::PrivateTmp;
        let spec = ProcessSpec::new("/bin/sh")
            .args(["-c", &script])
            .stdout(OutputTarget::Capture { limit: 1024 })
            .stderr(OutputTarget::Capture { limit: 1024 })
            .sandbox(sandbox);
        let outcome = wait_for_output(spawn(containment, spec));
        let file = name.trim_start_matches("/tmp/");
        // The files of the real folder are not there.
        assert_eq!(outcome.stdout, format!("/tmp /tmp\ntext\na\n{file}\n"), "{containment}: {outcome:?}");
        assert!(!Path::new(&name).exists(), "{containment}");
    }
}

#[test]
fn the_supervisors_own_tmpdir_variable_is_ignored() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::temporary_folder::the_default_temporary_folder_is_in_tmp"])
        .env("TMPDIR", "/nowhere")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
}

#[test]
fn without_temporary_files_tmpdir_is_not_set() {
    let fixture = SandboxFixture::new();
    let mut sandbox = fixture.sandbox();
    sandbox.temporary = TemporaryFiles::None;
    let outcome = run(fixture.spec("/bin/sh").args(["-c", "echo ${TMPDIR-unset}"]).sandbox(sandbox));
    assert_eq!(outcome.stdout, "unset\n");
}
