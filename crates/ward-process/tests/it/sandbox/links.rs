//! A program that leaves links behind does not change what its next run can reach.

use std::fs;
use std::os::unix::fs::symlink;

use ward_process::sandbox::{Sandbox, SandboxError, TemporaryFiles};
use ward_process::{Containment, ProcessExit, ProcessSpec, SpawnError, Supervisor};

use super::{SandboxFixture, run, text};

/// Trees inside of the one that can be written.
fn nested(site: &SandboxFixture) -> Sandbox {
    fs::create_dir_all(site.path("workspace/a/out")).unwrap();
    fs::create_dir(site.path("workspace/settings")).unwrap();
    let mut sandbox = site.sandbox();
    sandbox.write.push(site.path("workspace/a/out"));
    sandbox.read.push(site.path("workspace/settings"));
    sandbox
}

fn shell(site: &SandboxFixture, sandbox: &Sandbox, script: &str) -> ProcessSpec {
    site.order("/bin/sh").args(["-c", script]).env("OUTSIDE", site.outside()).sandbox(sandbox.clone())
}

fn refusal(site: &SandboxFixture, sandbox: &Sandbox) -> SandboxError {
    let id = format!("links-{}", std::process::id()).parse().unwrap();
    let order = shell(site, sandbox, "cat $OUTSIDE/secret; echo hostile > $OUTSIDE/secret");
    match Supervisor::with_containment(Containment::ProcessGroup).unwrap().spawn(id, order) {
        Err(SpawnError::Sandbox(error)) => error,
        Err(other) => panic!("{other:?}"),
        Ok(mut tree) => {
            tree.wait(None).unwrap();
            panic!("it ran: {:?}", String::from_utf8_lossy(tree.stdout().unwrap().bytes()));
        }
    }
}

#[test]
fn trees_in_a_writable_tree_work() {
    let site = SandboxFixture::new();
    let sandbox = nested(&site);
    let script = "echo 1 > a/out/file && mv a b && mkdir -p a/out && cat b/out/file && ls";
    let outcome = run(shell(&site, &sandbox, script));
    assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(0), "1\na\nb\nsettings\n"));
    assert_eq!(run(shell(&site, &sandbox, "echo 2 > a/out/file && cat a/out/file")).stdout, "2\n");
}

#[test]
fn a_link_left_by_one_run_does_not_redirect_the_next() {
    for attack in [
        "mv a b && mkdir a && ln -s $OUTSIDE a/out",
        "mv a b && ln -s $OUTSIDE a",
        "rmdir settings && ln -s $OUTSIDE settings",
        "rmdir settings && ln -s ../outside settings",
    ] {
        let site = SandboxFixture::new();
        // Where the second attack leads to a folder of the same name.
        fs::create_dir(site.path("outside/out")).unwrap();
        let sandbox = nested(&site);
        let outcome = run(shell(&site, &sandbox, attack));
        assert_eq!(outcome.exit, ProcessExit::Code(0), "{attack}: {outcome:?}");
        let error = refusal(&site, &sandbox);
        assert!(matches!(&error, SandboxError::Link { writable, .. } if *writable == site.workspace()));
        assert_eq!(fs::read_to_string(site.secret()).unwrap(), "secret\n", "{attack}");
    }
}

#[test]
fn the_refusal_names_the_tree_and_the_one_with_the_link() {
    let site = SandboxFixture::new();
    let sandbox = nested(&site);
    fs::remove_dir(site.path("workspace/settings")).unwrap();
    symlink(site.outside(), site.path("workspace/settings")).unwrap();
    let (settings, workspace) = (text(&site.path("workspace/settings")), text(&site.workspace()));
    assert_eq!(
        refusal(&site, &sandbox).to_string(),
        format!(
            "the way to sandbox tree `{settings}` has a link or `..` in `{workspace}`, which can be written"
        )
    );
}

#[test]
fn a_link_in_place_of_the_parent_of_temporary_folders_is_not_followed() {
    let site = SandboxFixture::new();
    let mut sandbox = nested(&site);
    sandbox.temporary = TemporaryFiles::PrivateIn(site.path("workspace/temporary"));
    fs::create_dir(site.path("workspace/temporary")).unwrap();
    assert_eq!(run(shell(&site, &sandbox, "rmdir temporary; ls -d temporary")).stdout, "temporary\n");
    fs::remove_dir_all(site.path("workspace/temporary")).unwrap();
    symlink(site.outside(), site.path("workspace/temporary")).unwrap();
    assert!(matches!(refusal(&site, &sandbox), SandboxError::Link { .. }));
    assert_eq!(fs::read_dir(site.outside()).unwrap().count(), 1);
}

#[test]
fn links_above_the_writable_tree_are_followed() {
    let site = SandboxFixture::new();
    nested(&site);
    symlink("workspace", site.path("detour")).unwrap();
    let mut sandbox = Sandbox::system_read_only();
    sandbox.write.extend([site.path("detour"), site.path("detour/a/out")]);
    sandbox.read.push(site.path("detour/settings"));
    assert_eq!(run(shell(&site, &sandbox, "echo 1 > a/out/file && cat a/out/file")).stdout, "1\n");
}
