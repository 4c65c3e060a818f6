use super::*;
use crate::process_spec::TreeLifetime;

fn may_run_what_it_writes(write: &[&str], execute: &[&str]) -> bool {
    let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
    Sandbox { write: paths(write), execute: paths(execute), ..Sandbox::default() }.can_execute_written_files()
}

#[test]
fn what_lies_in_both_kinds_of_trees_can_be_written_and_run() {
    assert!(may_run_what_it_writes(&["/w"], &["/w"]));
    assert!(may_run_what_it_writes(&["/w/a"], &["/usr", "/w"]));
    assert!(may_run_what_it_writes(&["/dev/null", "/w"], &["/w/a"]));
    assert!(!may_run_what_it_writes(&["/w/a", "/work"], &["/w/b", "/usr"]));
    assert!(!may_run_what_it_writes(&["/w"], &[]));
    assert!(!may_run_what_it_writes(&[], &["/w"]));
}

#[test]
fn the_system_can_not_run_what_it_writes() {
    assert!(!Sandbox::system_read_only().can_execute_written_files());
}

#[test]
fn what_could_not_be_prepared_leaves_no_folder() {
    let parent = tempfile::tempdir().unwrap();
    let sandbox = Sandbox {
        read: vec!["/nowhere".into()],
        temporary: TemporaryFiles::PrivateIn(parent.path().into()),
        ..Sandbox::system_read_only()
    };
    assert!(matches!(sandbox.prepare(TreeLifetime::Independent), Err(SandboxError::Tree { .. })));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn the_folder_stays_until_the_clean_up() {
    let parent = tempfile::tempdir().unwrap();
    let temporary = TemporaryFiles::PrivateIn(parent.path().into());
    let sandbox = Sandbox { temporary, ..Sandbox::system_read_only() };
    let kept = sandbox.prepare(TreeLifetime::Independent).unwrap().temporary_folder().unwrap().to_owned();
    assert!(kept.is_dir());
    let mut prepared = sandbox.prepare(TreeLifetime::Independent).unwrap();
    let removed = prepared.temporary_folder().unwrap().to_owned();
    assert_ne!(kept, removed);
    prepared.clean_up();
    assert_eq!(prepared.temporary_folder(), None);
    assert!(!removed.exists() && kept.is_dir());
    remove_private_folder(&kept);
    assert!(!kept.exists());
}
