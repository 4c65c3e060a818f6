//! The client library with a real daemon: blocking, asynchronous, and across restarts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;
use shepherd_api::{ClientRole, Command, CommandReply, ErrorCode, RequiredRefresh};
use shepherd_ipc::{
    AsyncClient, AsyncDaemonWatcher, BlockingClient, CallError, ClientOptions, ConnectError,
    ConnectionLimits, DaemonWatcher, ServerPush, WatchUpdate,
};

use crate::support::{FixedRole, IpcTestDaemon, TEST_TIMEOUT, event, snapshot};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn fixed_role(role: Option<ClientRole>) -> Arc<FixedRole> {
    Arc::new(FixedRole(role))
}

#[test]
fn a_call_is_answered_or_refused() {
    let daemon = IpcTestDaemon::with_role(ClientRole::Shell);
    let mut client = BlockingClient::connect(&daemon.options()).unwrap();
    assert_eq!(client.welcome().role, ClientRole::Shell);
    assert_eq!(client.welcome().daemon_version, "0.0.0-test");
    assert_eq!(client.call(Command::GetState {}).unwrap(), CommandReply::State { snapshot: snapshot(0) });
    let refused = client.call(Command::ReloadConfig {}).unwrap_err();
    assert_eq!(refused.api_error().unwrap().code, ErrorCode::NotPermitted);
    // A refusal does not end the connection.
    client.call(Command::GetState {}).unwrap();
    daemon.hub.set_authorizer(fixed_role(None));
    let ended = client.call(Command::GetState {}).unwrap_err();
    assert!(matches!(&ended, CallError::Closed(error) if error.code == ErrorCode::NotPermitted), "{ended:?}");
    let refused = BlockingClient::connect(&daemon.options()).unwrap_err();
    assert!(
        matches!(&refused, ConnectError::Refused(error) if error.code == ErrorCode::NotPermitted),
        "{refused:?}"
    );
}

#[test]
fn the_asynchronous_client_does_the_same() {
    let daemon = IpcTestDaemon::with_role(ClientRole::Shell);
    block_on(async {
        let mut client = AsyncClient::connect(&daemon.options()).await.unwrap();
        assert_eq!(client.welcome().role, ClientRole::Shell);
        assert_eq!(
            client.call(Command::GetState {}).await.unwrap(),
            CommandReply::State { snapshot: snapshot(0) }
        );
        let refused = client.call(Command::ReloadConfig {}).await.unwrap_err();
        assert_eq!(refused.api_error().unwrap().code, ErrorCode::NotPermitted);
        assert_eq!(client.subscribe().await.unwrap(), snapshot(0));
        daemon.hub.broadcast(&event(1));
        daemon.hub.broadcast(&event(2));
        client.call(Command::GetState {}).await.unwrap();
        assert_eq!(client.next_push().await.unwrap(), ServerPush::Event(event(1)));
        assert_eq!(client.next_push().await.unwrap(), ServerPush::Event(event(2)));
        daemon.hub.set_authorizer(fixed_role(None));
        let ended = client.call(Command::GetState {}).await.unwrap_err();
        assert!(matches!(&ended, CallError::Closed(_)), "{ended:?}");
        let refused = AsyncClient::connect(&daemon.options()).await.unwrap_err();
        assert!(matches!(&refused, ConnectError::Refused(_)), "{refused:?}");
    });
}

#[test]
fn without_a_daemon_the_error_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let options = ClientOptions::new(folder.path().join("s"), "test");
    let missing = BlockingClient::connect(&options).unwrap_err();
    assert!(matches!(missing, ConnectError::NoDaemon { .. }), "{missing:?}");
    drop(UnixListener::bind(&options.socket).unwrap());
    let stale = BlockingClient::connect(&options).unwrap_err();
    assert!(matches!(stale, ConnectError::NoDaemon { .. }), "{stale:?}");
    let stale = block_on(AsyncClient::connect(&options)).unwrap_err();
    assert!(matches!(stale, ConnectError::NoDaemon { .. }), "{stale:?}");
}

#[test]
fn a_hanging_daemon_does_not_block_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let options =
        ClientOptions { connect_timeout: Duration::from_millis(200), ..ClientOptions::new(&socket, "test") };
    let hung = BlockingClient::connect(&options).unwrap_err();
    assert!(matches!(hung, ConnectError::TimedOut { .. }), "{hung:?}");
    let hung = block_on(AsyncClient::connect(&options)).unwrap_err();
    assert!(matches!(hung, ConnectError::TimedOut { .. }), "{hung:?}");
    // Also a daemon that does not even accept connections.
    rustix::net::listen(&listener, 0).unwrap();
    let _queued: Vec<_> = (0..2).map(|_| BlockingClient::connect(&options)).collect();
    let hung = BlockingClient::connect(&options).unwrap_err();
    assert!(matches!(hung, ConnectError::TimedOut { .. }), "{hung:?}");
}

#[test]
fn another_protocol_is_not_taken_for_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let stranger = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"220 mail.example ESMTP\r\n").unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    });
    let refused = BlockingClient::connect(&ClientOptions::new(&socket, "test")).unwrap_err();
    assert!(matches!(refused, ConnectError::NotShepherd { .. }), "{refused:?}");
    stranger.join().unwrap();
}

#[test]
fn a_socket_that_may_not_be_opened_is_named() {
    let daemon = IpcTestDaemon::start();
    fs::set_permissions(daemon.socket(), fs::Permissions::from_mode(0o000)).unwrap();
    let options = daemon.options();
    let other = std::thread::spawn(move || {
        // File modes don't restrict root, so the thread becomes another user. On Linux, credentials belong to a thread.
        if geteuid().is_root() {
            set_thread_uid(Uid::from_raw(65_001)).unwrap();
        }
        BlockingClient::connect(&options).unwrap_err()
    });
    let refused = other.join().unwrap();
    assert!(matches!(refused, ConnectError::PermissionDenied { .. }), "{refused:?}");
}

#[test]
fn events_that_come_before_an_answer_are_kept() {
    let daemon = IpcTestDaemon::start();
    let mut client = BlockingClient::connect(&daemon.options()).unwrap();
    assert_eq!(client.subscribe().unwrap(), snapshot(0));
    daemon.hub.broadcast(&event(1));
    client.call(Command::GetState {}).unwrap();
    daemon.hub.broadcast(&event(2));
    assert_eq!(client.next_push(Some(TEST_TIMEOUT)).unwrap(), ServerPush::Event(event(1)));
    assert_eq!(client.next_push(None).unwrap(), ServerPush::Event(event(2)));
    let nothing = client.next_push(Some(Duration::from_millis(10))).unwrap_err();
    assert!(matches!(nothing, CallError::TimedOut), "{nothing:?}");
}

#[test]
fn a_watcher_follows_and_comes_back_after_a_restart() {
    let daemon = IpcTestDaemon::start();
    let mut watch = DaemonWatcher::new(daemon.options());
    assert!(watch.state().is_none());
    assert!(matches!(watch.next().unwrap(), WatchUpdate::Resynced { missed: 0 }));
    daemon.hub.broadcast(&event(5));
    let update = watch.next_within(TEST_TIMEOUT).unwrap();
    assert!(
        matches!(&update, WatchUpdate::Event { event: seen, refresh: RequiredRefresh::Entries } if **seen == event(5)),
        "{update:?}"
    );
    assert_eq!(watch.state().unwrap().snapshot_at(snapshot(0).at).entry_count, 5);
    assert!(watch.next_within(Duration::from_millis(10)).is_none());

    let folder = daemon.stop();
    let lost = watch.next_within(TEST_TIMEOUT).unwrap();
    assert!(
        matches!(&lost, WatchUpdate::Disconnected { error } if error.to_string() == "the daemon closed the connection"),
        "{lost:?}"
    );
    assert!(!watch.is_connected() && watch.state().is_some());
    assert!(matches!(watch.next_within(TEST_TIMEOUT).unwrap(), WatchUpdate::Disconnected { .. }));
    let _daemon =
        IpcTestDaemon::in_folder(folder, ConnectionLimits::default(), fixed_role(Some(ClientRole::Admin)));
    assert!(matches!(
        watch.find(|update| !matches!(update, WatchUpdate::Disconnected { .. })),
        Some(WatchUpdate::Resynced { missed: 0 })
    ));
    assert_eq!(
        watch.state().unwrap().snapshot_at(snapshot(0).at).entry_count,
        0,
        "what was known is replaced"
    );
}

#[test]
fn an_asynchronous_watcher_does_the_same() {
    let daemon = IpcTestDaemon::start();
    block_on(async {
        let mut watch = AsyncDaemonWatcher::new(daemon.options());
        assert!(matches!(watch.next().await, WatchUpdate::Resynced { missed: 0 }));
        daemon.hub.broadcast(&event(5));
        assert!(matches!(watch.next().await, WatchUpdate::Event { .. }));
        assert_eq!(watch.state().unwrap().snapshot_at(snapshot(0).at).entry_count, 5);
        let folder = daemon.stop();
        assert!(matches!(watch.next().await, WatchUpdate::Disconnected { .. }));
        assert!(!watch.is_connected());
        let _daemon = IpcTestDaemon::in_folder(
            folder,
            ConnectionLimits::default(),
            fixed_role(Some(ClientRole::Admin)),
        );
        while !matches!(watch.next().await, WatchUpdate::Resynced { .. }) {}
        assert!(watch.is_connected());
    });
}

/// The daemon sends some messages only once, so a connection that it has answered must not be given up.
#[test]
fn a_cancelled_asynchronous_watcher_keeps_the_connection_that_it_makes() {
    let daemon = IpcTestDaemon::start();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    block_on(async {
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let mut watch = AsyncDaemonWatcher::new(ClientOptions::new(&socket, "test"));
        let (mut client, _) = tokio::select! {
            update = watch.next() => panic!("{update:?}"),
            accepted = listener.accept() => accepted.unwrap(),
        };
        drop(listener);
        let mut connection = tokio::net::UnixStream::connect(daemon.socket()).await.unwrap();
        let update = tokio::select! {
            update = watch.next() => update,
            copied = tokio::io::copy_bidirectional(&mut client, &mut connection) => panic!("{copied:?}"),
        };
        assert!(matches!(update, WatchUpdate::Resynced { missed: 0 }), "{update:?}");
    });
}
