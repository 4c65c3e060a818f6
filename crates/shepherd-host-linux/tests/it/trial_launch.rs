//! The trial at start-up says whether programs can be launched at all (S13.2).

use std::os::unix::fs::PermissionsExt;

use shepherd_host_api::HostAdapter;

use crate::containments::containments;
use crate::harness::TestHost;

#[test]
fn a_host_that_can_launch_reports_no_fault() {
    for containment in containments() {
        assert_eq!(TestHost::new(containment).host.launch_fault(), None, "{containment}");
    }
}

#[test]
fn a_host_that_can_launch_nothing_says_why() {
    // A program that the kernel refuses to execute, as it refuses every program in a cgroup that it calls invalid.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("true");
    std::fs::write(&program, "no program").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let test_host = TestHost::with_options(|options| options.search_path = folder.path().into());
    let fault = test_host.host.launch_fault().unwrap();
    assert!(fault.starts_with("could not start a program: "), "{fault}");
    assert!(fault.contains("Exec format error"), "{fault}");
}
