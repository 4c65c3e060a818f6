use super::*;
use crate::process_spec::TreeLifetime;

fn can_execute_written_files(write: &[&str], execute: &[&str]) -> bool {
    let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
    Sandbox { write: paths(write), execute: paths(execute), ..Sandbox::default() }.can_execute_written_files()
}

#[test]
fn written_files_are_executable_if_a_writable_and_an_executable_tree_overlap() {
    assert!(can_execute_written_files(&["/w"], &["/w"]));
    assert!(can_execute_written_files(&["/w/a"], &["/usr", "/w"]));
    assert!(can_execute_written_files(&["/dev/null", "/w"], &["/w/a"]));
    assert!(!can_execute_written_files(&["/w/a", "/work"], &["/w/b", "/usr"]));
    assert!(!can_execute_written_files(&["/w"], &[]));
    assert!(!can_execute_written_files(&[], &["/w"]));
}

#[test]
fn the_system_sandbox_can_not_execute_written_files() {
    assert!(!Sandbox::system_read_only().can_execute_written_files());
}

#[test]
fn a_failed_preparation_leaves_no_folder() {
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
fn the_temporary_folder_stays_until_clean_up() {
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
