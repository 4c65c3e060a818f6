//! The socket file: its owner, its mode, and its removal (S11.1, S11.3).

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use shepherd_api::ClientRole;
use shepherd_ipc::{BindError, ConnectionLimits, IpcServer, PinStore, ServerOptions};

use crate::support::{FixedRole, IpcTestDaemon, options, socket};

fn bind(options: ServerOptions) -> Result<IpcServer, BindError> {
    let folder = options.socket.parent().unwrap().to_owned();
    let pin = PinStore::open(folder.join("pin.json")).unwrap();
    IpcServer::bind(options, Arc::new(FixedRole(Some(ClientRole::Admin))), pin)
}

/// Binds the socket, runs a check, and closes the socket.
fn with_server<T>(options: ServerOptions, look: impl FnOnce(Result<IpcServer, BindError>) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { look(bind(options)) })
}

fn bind_in(folder: &Path) -> Result<(), BindError> {
    with_server(options(folder, ConnectionLimits::default()), |server| server.map(drop))
}

#[test]
fn the_file_has_its_mode_and_group_and_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let own_group = fs::metadata(folder.path()).unwrap().gid();
    for mode in [0o600, 0o660, 0o666] {
        let options = ServerOptions {
            mode,
            group: Some(own_group),
            ..options(folder.path(), ConnectionLimits::default())
        };
        with_server(options, |server| {
            let metadata = fs::symlink_metadata(socket(folder.path())).unwrap();
            assert!(metadata.file_type().is_socket());
            assert_eq!(metadata.permissions().mode() & 0o7777, mode);
            assert_eq!(metadata.gid(), own_group);
            drop(server.unwrap());
        });
        assert!(!socket(folder.path()).exists(), "it was left behind");
    }
}

#[test]
fn the_socket_of_a_killed_daemon_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(socket(folder.path())).unwrap());
    assert!(socket(folder.path()).exists());
    IpcTestDaemon::in_folder(
        folder,
        ConnectionLimits::default(),
        Arc::new(FixedRole(Some(ClientRole::Admin))),
    )
    .assert_serves();
}

#[test]
fn a_second_daemon_on_the_same_path_exits_and_the_first_continues() {
    let daemon = IpcTestDaemon::start();
    let refused = bind_in(daemon.folder.path());
    assert!(matches!(refused, Err(BindError::InUse { .. })), "{refused:?}");
    daemon.assert_serves();
}

#[test]
fn a_socket_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let _somebody = UnixListener::bind(socket(folder.path())).unwrap();
    let refused = bind_in(folder.path());
    assert!(matches!(refused, Err(BindError::InUse { .. })), "{refused:?}");
    assert!(socket(folder.path()).exists());
}

#[test]
fn a_file_that_is_not_a_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(socket(folder.path()), "a diary").unwrap();
    let refused = bind_in(folder.path());
    assert!(matches!(refused, Err(BindError::NotASocket { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(socket(folder.path())).unwrap(), "a diary");
}

#[test]
fn a_path_that_the_kernel_can_not_bind_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x".repeat(108));
    let options = ServerOptions { socket, ..options(folder.path(), ConnectionLimits::default()) };
    let refused = with_server(options, |server| server.map(drop));
    assert!(matches!(refused, Err(BindError::PathTooLong { .. })), "{refused:?}");
}

#[test]
fn a_server_removes_no_socket_that_took_its_place() {
    let daemon = IpcTestDaemon::start();
    fs::remove_file(daemon.socket()).unwrap();
    let _successor = UnixListener::bind(daemon.socket()).unwrap();
    let folder = daemon.stop();
    assert!(socket(folder.path()).exists());
}
