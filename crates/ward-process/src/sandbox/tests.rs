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

/// A machine that permits no network namespace.
const WITHOUT_NETWORK_NAMESPACE: probe::KernelSupport = probe::KernelSupport {
    landlock: Ok(7),
    seccomp: Ok(()),
    network_namespace: Err(rustix::io::Errno::PERM),
    loopback: Err(rustix::io::Errno::PERM),
    read_only_mounts: Ok(()),
};

#[test]
fn without_a_network_namespace_a_loopback_interface_becomes_no_network() {
    let host = WITHOUT_NETWORK_NAMESPACE;
    assert_eq!(host.available_network(SandboxNetwork::Loopback), SandboxNetwork::Off);
    assert_eq!(host.available_network(SandboxNetwork::On), SandboxNetwork::On);
    let report = host.report(&Sandbox { network: SandboxNetwork::Loopback, ..Sandbox::default() });
    assert!(report.network.to_string().contains("seccomp refuses sockets"), "{report}");
}

#[test]
fn without_a_network_namespace_a_listener_is_refused() {
    let network = SandboxNetwork::LoopbackWithListener { port: 3128 };
    let sandbox = Sandbox { network, ..Sandbox::default() };
    let host = WITHOUT_NETWORK_NAMESPACE;
    let error = sandbox.check_report(host.report(&sandbox)).unwrap_err();
    assert!(error.to_string().ends_with(": network"), "{error}");
    // A sandbox that accepts gaps gets no network at all, rather than the whole one.
    assert_eq!(host.available_network(network), SandboxNetwork::Off);
}
