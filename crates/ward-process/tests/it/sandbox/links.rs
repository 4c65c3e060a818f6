//! Symlinks that a program leaves behind don't change what its next run can reach.

use std::fs;
use std::os::unix::fs::symlink;

use ward_process::sandbox::{Sandbox, SandboxError, TemporaryFiles};
use ward_process::{Containment, ProcessExit, ProcessSpec, SpawnError, Supervisor};

use super::{SandboxFixture, run, text};

/// Returns a sandbox with trees inside of the writable workspace.
fn nested(fixture: &SandboxFixture) -> Sandbox {
    fs::create_dir_all(fixture.path("workspace/a/out")).unwrap();
    fs::create_dir(fixture.path("workspace/settings")).unwrap();
    let mut sandbox = fixture.sandbox();
    sandbox.write.push(fixture.path("workspace/a/out"));
    sandbox.read.push(fixture.path("workspace/settings"));
    sandbox
}

fn shell(fixture: &SandboxFixture, sandbox: &Sandbox, script: &str) -> ProcessSpec {
    fixture.spec("/bin/sh").args(["-c", script]).env("OUTSIDE", fixture.outside()).sandbox(sandbox.clone())
}

fn refusal(fixture: &SandboxFixture, sandbox: &Sandbox) -> SandboxError {
    let id = format!("links-{}", std::process::id()).parse().unwrap();
    let spec = shell(fixture, sandbox, "cat $OUTSIDE/secret; echo hostile > $OUTSIDE/secret");
    match Supervisor::with_containment(Containment::ProcessGroup).unwrap().spawn(id, spec) {
        Err(SpawnError::Sandbox(error)) => error,
        Err(other) => panic!("{other:?}"),
        Ok(mut tree) => {
            tree.wait(None).unwrap();
            panic!("the program ran: {:?}", String::from_utf8_lossy(tree.stdout().unwrap().bytes()));
        }
    }
}

#[test]
fn trees_in_a_writable_tree_work() {
    let fixture = SandboxFixture::new();
    let sandbox = nested(&fixture);
    let script = "echo 1 > a/out/file && mv a b && mkdir -p a/out && cat b/out/file && ls";
    let outcome = run(shell(&fixture, &sandbox, script));
    assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(0), "1\na\nb\nsettings\n"));
    assert_eq!(run(shell(&fixture, &sandbox, "echo 2 > a/out/file && cat a/out/file")).stdout, "2\n");
}

#[test]
fn a_symlink_left_by_one_run_does_not_redirect_the_next() {
    for attack in [
        "mv a b && mkdir a && ln -s $OUTSIDE a/out",
        "mv a b && ln -s $OUTSIDE a",
        "rmdir settings && ln -s $OUTSIDE settings",
        "rmdir settings && ln -s ../outside settings",
    ] {
        let fixture = SandboxFixture::new();
        // The second attack needs a folder of this name in its target.
        fs::create_dir(fixture.path("outside/out")).unwrap();
        let sandbox = nested(&fixture);
        let outcome = run(shell(&fixture, &sandbox, attack));
        assert_eq!(outcome.exit, ProcessExit::Code(0), "{attack}: {outcome:?}");
        let error = refusal(&fixture, &sandbox);
        assert!(matches!(&error, SandboxError::Link { writable, .. } if *writable == fixture.workspace()));
        assert_eq!(fs::read_to_string(fixture.secret()).unwrap(), "secret\n", "{attack}");
    }
}

#[test]
fn the_error_names_the_tree_and_the_writable_tree_with_the_symlink() {
    let fixture = SandboxFixture::new();
    let sandbox = nested(&fixture);
    fs::remove_dir(fixture.path("workspace/settings")).unwrap();
    symlink(fixture.outside(), fixture.path("workspace/settings")).unwrap();
    let (settings, workspace) = (text(&fixture.path("workspace/settings")), text(&fixture.workspace()));
    assert_eq!(
        refusal(&fixture, &sandbox).to_string(),
        format!(
            "the path to sandbox tree `{settings}` has a symlink or `..` inside of writable tree `{workspace}`"
        )
    );
}

#[test]
fn a_symlink_in_place_of_the_parent_of_temporary_folders_is_not_followed() {
    let fixture = SandboxFixture::new();
    let mut sandbox = nested(&fixture);
    sandbox.temporary = TemporaryFiles::PrivateIn(fixture.path("workspace/temporary"));
    fs::create_dir(fixture.path("workspace/temporary")).unwrap();
    assert_eq!(run(shell(&fixture, &sandbox, "rmdir temporary; ls -d temporary")).stdout, "temporary\n");
    fs::remove_dir_all(fixture.path("workspace/temporary")).unwrap();
    symlink(fixture.outside(), fixture.path("workspace/temporary")).unwrap();
    assert!(matches!(refusal(&fixture, &sandbox), SandboxError::Link { .. }));
    assert_eq!(fs::read_dir(fixture.outside()).unwrap().count(), 1);
}

#[test]
fn symlinks_above_the_writable_tree_are_followed() {
    let fixture = SandboxFixture::new();
    nested(&fixture);
    symlink("workspace", fixture.path("detour")).unwrap();
    let mut sandbox = Sandbox::system_read_only();
    sandbox.write.extend([fixture.path("detour"), fixture.path("detour/a/out")]);
    sandbox.read.push(fixture.path("detour/settings"));
    assert_eq!(run(shell(&fixture, &sandbox, "echo 1 > a/out/file && cat a/out/file")).stdout, "1\n");
}
