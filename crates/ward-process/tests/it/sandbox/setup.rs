//! Preparing: what is refused before anything starts, what is reported, what is left behind.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use ward_process::sandbox::{Sandbox, SandboxError, SandboxPartStatus, TemporaryFiles, probe};
use ward_process::{
    Containment, OutputTarget, ProcessExit, ProcessSpec, ProcessTree, SpawnError, StdinSource, StopLadder,
    Supervisor, UserIdentity, probe as probe_containments,
};

use super::{SOMEBODY, SandboxFixture, is_root, run, spawn, wait_for_output};
use crate::harness::wait_until;

fn refused(site: &SandboxFixture, sandbox: Sandbox) -> SandboxError {
    let id = format!("refused-{}", std::process::id()).parse().unwrap();
    let order = site.order("/bin/true").sandbox(sandbox);
    match Supervisor::with_containment(Containment::ProcessGroup).unwrap().spawn(id, order).err() {
        Some(SpawnError::Sandbox(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tree_that_does_not_exist_is_an_error_that_names_it() {
    let site = SandboxFixture::new();
    let mut sandbox = site.sandbox();
    sandbox.read.push(site.path("nowhere"));
    let error = refused(&site, sandbox);
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "No such file or directory (os error 2)");
}

#[test]
fn a_missing_temporary_folder_is_an_error_that_names_it() {
    let site = SandboxFixture::new();
    let mut sandbox = site.sandbox();
    sandbox.temporary = TemporaryFiles::PrivateIn(site.path("nowhere"));
    let error = refused(&site, sandbox);
    assert!(matches!(error, SandboxError::Temporary { path, .. } if path.ends_with("nowhere")));
}

/// A sandbox whose temporary folder is the only thing in this folder.
fn with_temporary_in(site: &SandboxFixture, parent: &Path) -> Sandbox {
    fs::create_dir(parent).unwrap();
    Sandbox { temporary: TemporaryFiles::PrivateIn(parent.to_owned()), ..site.sandbox() }
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn the_temporary_folder_is_private_and_gone_after_the_tree() {
    let site = SandboxFixture::new();
    let parent = site.path("temporary");
    let script = "mkdir -p $TMPDIR/a/b; chmod 000 $TMPDIR/a/b; chmod 500 $TMPDIR/a; \
                  stat -c %a $TMPDIR; echo $TMPDIR; ln -s / $TMPDIR/root";
    let order = site.order("/bin/sh").args(["-c", script]).sandbox(with_temporary_in(&site, &parent));
    let mut tree = spawn(Containment::ProcessGroup, order);
    tree.wait(None).unwrap();
    let said = String::from_utf8(tree.stdout().unwrap().bytes().to_vec()).unwrap();
    let (mode, folder) = said.trim_end().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(Path::new(folder).starts_with(&parent));
    assert_eq!(entries(&parent), 0);
    assert!(site.secret().exists());
}

#[test]
fn the_temporary_folder_of_a_tree_without_a_handle_stays_until_it_ends() {
    for containment in probe_containments().available().collect::<Vec<_>>() {
        let site = SandboxFixture::new();
        let parent = site.path("temporary");
        let script = "read word && echo $word > $TMPDIR/word && cat $TMPDIR/word > word && sleep 60";
        let (reader, writer) = std::io::pipe().unwrap();
        let order = site
            .order("/bin/sh")
            .args(["-c", script])
            .stdin(StdinSource::FromFd(reader.into()))
            .sandbox(with_temporary_in(&site, &parent));
        let tree = spawn(containment, order);
        let record = tree.record();
        drop(tree);
        assert_eq!(entries(&parent), 1, "{containment}: it still runs");
        (&writer).write_all(b"written\n").unwrap();
        wait_until("the word", || text_of(&site.path("workspace/word")) == "written\n");

        let supervisor = Supervisor::with_containment(containment).unwrap();
        let mut tree = supervisor.reattach(&record).unwrap();
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert_eq!(entries(&parent), 0, "{containment}: it has ended");
    }
}

fn text_of(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn a_program_that_never_started_leaves_no_temporary_folder() {
    for containment in probe_containments().available().collect::<Vec<_>>() {
        let site = SandboxFixture::new();
        let parent = site.path("temporary");
        let order = site.order("/bin/nowhere").sandbox(with_temporary_in(&site, &parent));
        let id = format!("never-{}", std::process::id()).parse().unwrap();
        let error = Supervisor::with_containment(containment).unwrap().spawn(id, order).err();
        assert!(matches!(error, Some(SpawnError::Start { .. })), "{error:?}");
        assert_eq!(entries(&parent), 0, "{containment}");
    }
}

#[test]
fn private_files_are_in_the_folder_of_the_system() {
    let order = ProcessSpec::new("/bin/sh")
        .args(["-c", "echo $TMPDIR"])
        .stdout(OutputTarget::Capture { limit: 1024 })
        .stderr(OutputTarget::Capture { limit: 1024 })
        .sandbox(Sandbox::system_read_only());
    let outcome = run(order);
    assert!(outcome.stdout.starts_with("/tmp/ward-"), "{outcome:?}");
}

#[test]
fn where_private_files_are_is_not_asked_of_our_own_environment() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::setup::private_files_are_in_the_folder_of_the_system"])
        .env("TMPDIR", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_sandbox_around_nothing_but_the_network_can_write_everywhere() {
    let site = SandboxFixture::new();
    let mut sandbox = site.sandbox();
    sandbox.write.push("/".into());
    let script = "echo more >> $SECRET && cat $SECRET";
    let order = site.order("/bin/sh").args(["-c", script]).env("SECRET", site.secret()).sandbox(sandbox);
    assert_eq!(run(order).stdout, "secret\nmore\n");
}

#[test]
fn without_temporary_files_the_variable_is_not_set() {
    let site = SandboxFixture::new();
    let mut sandbox = site.sandbox();
    sandbox.temporary = TemporaryFiles::None;
    let outcome = run(site.order("/bin/sh").args(["-c", "echo ${TMPDIR-unset}"]).sandbox(sandbox));
    assert_eq!(outcome.stdout, "unset\n");
}

#[test]
fn the_report_of_a_tree_says_what_is_in_force() {
    let site = SandboxFixture::new();
    let tree = spawn(Containment::ProcessGroup, site.shell("true"));
    let report = tree.sandbox_report().unwrap().clone();
    assert!(report.is_complete(), "{report}");
    assert!(
        matches!(&report.filesystem, SandboxPartStatus::InForce { by } if by.starts_with("Landlock ABI"))
    );
    assert_eq!(probe(), report);
    assert_eq!(wait_for_output(tree).exit, ProcessExit::Code(0));
}

#[test]
fn root_can_sandbox_a_program_of_another_user() {
    let site = SandboxFixture::new();
    if !is_root() {
        let error = another_user(&site).err();
        assert!(matches!(error, Some(SpawnError::Sandbox(SandboxError::Temporary { .. }))), "{error:?}");
        return;
    }
    chown(site.workspace(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    chown(site.secret(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let tree = another_user(&site).unwrap();
    assert!(tree.sandbox_report().unwrap().is_complete());
    let outcome = wait_for_output(tree);
    assert_eq!(outcome.stdout, format!("{SOMEBODY}\nkept\nclosed\nunchanged\n"), "{outcome:?}");
}

fn another_user(site: &SandboxFixture) -> Result<ProcessTree, SpawnError> {
    let script = "id -u; echo kept > $TMPDIR/f; cat $TMPDIR/f; touch file; \
                  cat $SECRET || echo closed; chmod 666 $SECRET || echo unchanged";
    let order =
        site.shell(script).env("SECRET", site.secret()).identity(UserIdentity::new(SOMEBODY, SOMEBODY, &[]));
    let id = format!("another-user-{}", std::process::id()).parse().unwrap();
    Supervisor::with_containment(Containment::ProcessGroup).unwrap().spawn(id, order)
}
