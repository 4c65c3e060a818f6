//! Preparing a sandbox: errors before anything starts, the report, and programs of another user.

use std::error::Error;
use std::os::unix::fs::chown;

use ward_process::sandbox::{Sandbox, SandboxError, SandboxPartStatus, TemporaryFiles, probe};
use ward_process::{Containment, ProcessExit, ProcessTree, SpawnError, Supervisor, UserIdentity};

use super::{SandboxFixture, UNNAMED_UID, is_root, run, spawn, wait_for_output};
fn spawn_error(fixture: &SandboxFixture, sandbox: Sandbox) -> SandboxError {
    let id = format!("refused-{}", std::process::id()).parse().unwrap();
    let spec = fixture.spec("/bin/true").sandbox(sandbox);
    match Supervisor::with_containment(Containment::ProcessGroup).unwrap().spawn(id, spec).err() {
        Some(SpawnError::Sandbox(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tree_that_does_not_exist_is_an_error_that_names_it() {
    let fixture = SandboxFixture::new();
    let mut sandbox = fixture.sandbox();
    sandbox.read.push(fixture.path("nowhere"));
    let error = spawn_error(&fixture, sandbox);
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "No such file or directory (os error 2)");
}

#[test]
fn a_missing_temporary_folder_is_an_error_that_names_it() {
    let fixture = SandboxFixture::new();
    let mut sandbox = fixture.sandbox();
    sandbox.temporary = TemporaryFiles::PrivateIn(fixture.path("nowhere"));
    let error = spawn_error(&fixture, sandbox);
    assert!(matches!(error, SandboxError::Temporary { path, .. } if path.ends_with("nowhere")));
}

#[test]
fn a_sandbox_with_a_writable_root_can_write_everywhere() {
    let fixture = SandboxFixture::new();
    let mut sandbox = fixture.sandbox();
    sandbox.write.push("/".into());
    let script = "echo more >> $SECRET && cat $SECRET";
    let spec = fixture.spec("/bin/sh").args(["-c", script]).env("SECRET", fixture.secret()).sandbox(sandbox);
    assert_eq!(run(spec).stdout, "secret\nmore\n");
}

#[test]
fn the_report_of_a_tree_equals_the_probe_of_the_host() {
    let fixture = SandboxFixture::new();
    let tree = spawn(Containment::ProcessGroup, fixture.shell("true"));
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
    let fixture = SandboxFixture::new();
    if !is_root() {
        let error = spawn_as_unnamed_user(&fixture).err();
        assert!(matches!(error, Some(SpawnError::Sandbox(SandboxError::Temporary { .. }))), "{error:?}");
        return;
    }
    chown(fixture.workspace(), Some(UNNAMED_UID), Some(UNNAMED_UID)).unwrap();
    chown(fixture.secret(), Some(UNNAMED_UID), Some(UNNAMED_UID)).unwrap();
    let tree = spawn_as_unnamed_user(&fixture).unwrap();
    assert!(tree.sandbox_report().unwrap().is_complete());
    let outcome = wait_for_output(tree);
    assert_eq!(outcome.stdout, format!("{UNNAMED_UID}\nkept\nclosed\nunchanged\n"), "{outcome:?}");
}

fn spawn_as_unnamed_user(fixture: &SandboxFixture) -> Result<ProcessTree, SpawnError> {
    let script = "id -u; echo kept > $TMPDIR/f; cat $TMPDIR/f; touch file; \
                  cat $SECRET || echo closed; chmod 666 $SECRET || echo unchanged";
    let spec = fixture.shell(script).env("SECRET", fixture.secret()).identity(UserIdentity::new(
        UNNAMED_UID,
        UNNAMED_UID,
        &[],
    ));
    let id = format!("another-user-{}", std::process::id()).parse().unwrap();
    Supervisor::with_containment(Containment::ProcessGroup).unwrap().spawn(id, spec)
}
