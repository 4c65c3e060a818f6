//! Preparing: what is refused before anything starts, what is reported, what is left behind.

use std::error::Error;
use std::os::unix::fs::chown;
use std::path::Path;

use ward_process::sandbox::{Part, SandboxError, Temporary, probe};
use ward_process::{Containment, Exit, Identity, SpawnError, Supervisor, Tree};

use super::{Site, finish, is_root, run, spawn};

/// A user number that nobody has here.
const SOMEBODY: u32 = 60_577;

#[test]
fn a_tree_that_does_not_exist_is_an_error_that_names_it() {
    let site = Site::new();
    let mut sandbox = site.sandbox();
    sandbox.read.push(site.path("nowhere"));
    let error = sandbox.prepare().unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "No such file or directory (os error 2)");
}

#[test]
fn a_missing_temporary_folder_is_an_error_that_names_it() {
    let site = Site::new();
    let mut sandbox = site.sandbox();
    sandbox.temporary = Temporary::PrivateIn(site.path("nowhere"));
    assert!(
        matches!(sandbox.prepare(), Err(SandboxError::Temporary { path, .. }) if path.ends_with("nowhere"))
    );
}

#[test]
fn the_temporary_folder_is_private_and_gone_after_the_tree() {
    let site = Site::new();
    let mut sandbox = site.sandbox();
    sandbox.temporary = Temporary::PrivateIn(site.outside());
    let script = "mkdir -p $TMPDIR/a/b; chmod 000 $TMPDIR/a/b; chmod 500 $TMPDIR/a; \
                  stat -c %a $TMPDIR; echo $TMPDIR; ln -s / $TMPDIR/root";
    let order = site.order("/bin/sh").args(["-c", script]).sandbox(sandbox);
    let mut tree = spawn(Containment::ProcessGroup, order);
    tree.wait(None).unwrap();
    let said = String::from_utf8(tree.stdout().unwrap().bytes().to_vec()).unwrap();
    let (mode, folder) = said.trim_end().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(Path::new(folder).starts_with(site.outside()) && Path::new(folder).exists());
    drop(tree);
    assert!(!Path::new(folder).exists());
    assert!(site.secret().exists());
}

#[test]
fn a_sandbox_around_nothing_but_the_network_can_write_everywhere() {
    let site = Site::new();
    let mut sandbox = site.sandbox();
    sandbox.write.push("/".into());
    let script = "echo more >> $SECRET && cat $SECRET";
    let order = site.order("/bin/sh").args(["-c", script]).env("SECRET", site.secret()).sandbox(sandbox);
    assert_eq!(run(order).stdout, "secret\nmore\n");
}

#[test]
fn without_temporary_files_the_variable_is_not_set() {
    let site = Site::new();
    let mut sandbox = site.sandbox();
    sandbox.temporary = Temporary::None;
    let outcome = run(site.order("/bin/sh").args(["-c", "echo ${TMPDIR-unset}"]).sandbox(sandbox));
    assert_eq!(outcome.stdout, "unset\n");
}

#[test]
fn the_report_of_a_tree_says_what_is_in_force() {
    let site = Site::new();
    let tree = spawn(Containment::ProcessGroup, site.shell("true"));
    let report = tree.sandbox_report().unwrap().clone();
    assert!(report.is_complete(), "{report}");
    assert!(matches!(&report.filesystem, Part::InForce { by } if by.starts_with("Landlock ABI")));
    assert_eq!(probe(), report);
    assert_eq!(finish(tree).exit, Exit::Code(0));
}

#[test]
fn root_can_sandbox_a_program_of_another_user() {
    let site = Site::new();
    if !is_root() {
        let error = another_user(&site).err();
        assert!(matches!(error, Some(SpawnError::Sandbox(SandboxError::Temporary { .. }))), "{error:?}");
        return;
    }
    chown(site.workspace(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    chown(site.secret(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let tree = another_user(&site).unwrap();
    assert!(tree.sandbox_report().unwrap().is_complete());
    let outcome = finish(tree);
    assert_eq!(outcome.stdout, format!("{SOMEBODY}\nkept\nclosed\nunchanged\n"), "{outcome:?}");
}

fn another_user(site: &Site) -> Result<Tree, SpawnError> {
    let script = "id -u; echo kept > $TMPDIR/f; cat $TMPDIR/f; touch file; \
                  cat $SECRET || echo closed; chmod 666 $SECRET || echo unchanged";
    let order =
        site.shell(script).env("SECRET", site.secret()).identity(Identity::new(SOMEBODY, SOMEBODY, &[]));
    let id = format!("another-user-{}", std::process::id()).parse().unwrap();
    Supervisor::with(Containment::ProcessGroup).unwrap().spawn(id, order)
}
