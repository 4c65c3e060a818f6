//! A real mpv with a film, which is told to quit before it gets a signal (S6.6).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use shepherd_api::EntryKind;
use shepherd_core::policy::{MediaLibrary, PolicyEntry, PolicyRules};
use shepherd_host_api::{ExitStatus, HostAdapter, HostEvent, HostStopRequest};

use crate::harness::{TEST_TIMEOUT, TestHost, containments, entry, wait_until, write_script};

/// Writes a film: ten seconds of grey, sixteen pixels wide.
fn write_film(path: &Path) {
    let mut film = b"YUV4MPEG2 W16 H16 F25:1 Ip A1:1 C420\n".to_vec();
    for _ in 0..250 {
        film.extend(b"FRAME\n");
        film.extend([128; 16 * 16 * 3 / 2]);
    }
    std::fs::write(path, film).unwrap();
}

fn films(test_host: &mut TestHost) -> PolicyEntry {
    let folder = test_host.folder.path().join("films");
    std::fs::create_dir(&folder).unwrap();
    write_film(&folder.join("grey.y4m"));
    let library = MediaLibrary { paths: vec![folder.to_str().unwrap().to_owned()], player: None };
    let libraries = BTreeMap::from([("films".to_owned(), library)]);
    test_host.apply_rules(PolicyRules { libraries, ..PolicyRules::default() });
    let args = ["--no-config", "--vo=null", "--ao=null", "--loop-playlist=inf", "--term-status-msg="];
    entry(EntryKind::Media { library_id: "films".to_owned(), args: args.map(str::to_owned).into() })
}

#[test]
fn mpv_plays_a_film_and_quits_on_request() {
    assert!(Path::new("/usr/bin/mpv").exists(), "no mpv: `cargo xtask setup` installs it");
    for containment in containments() {
        let mut test_host = TestHost::new(containment);
        let entry = films(&mut test_host);
        let session = test_host.start(entry);
        session.wait_for_output("VO: [null]");
        // A signal would give the exit code 4, and would come only after half of the grace.
        let status = test_host.stop(&session, 10 * TEST_TIMEOUT);
        assert_eq!(status, ExitStatus { code: Some(0), signal: None }, "{containment}: {}", session.output());
    }
}

/// The stop methods are part of the recorded handle.
#[test]
fn a_later_daemon_also_tells_mpv_to_quit() {
    let mut test_host = TestHost::new(containments()[0]);
    let entry = films(&mut test_host);
    let session = test_host.start(entry);
    session.wait_for_output("VO: [null]");
    let sockets = Path::new("/tmp").join(format!("shepherd-{}", session.session_id));
    wait_until("the socket of mpv", || sockets.join("mpv").exists());
    let TestHost { host, folder, .. } = test_host;
    drop(host);
    let mut later_host = TestHost::with_options(|options| options.state_folder = folder.path().join("state"));
    later_host.host.reattach(&session.session_id, None);
    assert!(matches!(later_host.next_event(), HostEvent::Reattached { .. }));
    later_host.host.stop(HostStopRequest { session_id: session.session_id, grace: 10 * TEST_TIMEOUT });
    assert!(matches!(later_host.next_event(), HostEvent::Exited { .. }));
    wait_until("removal of the socket folder", || !sockets.exists());
}

#[test]
fn a_player_that_does_not_listen_is_signalled_at_once() {
    let programs = tempfile::tempdir().unwrap();
    write_script(&programs.path().join("mpv"), "echo playing; exec sleep 600");
    let mut test_host = TestHost::with_options(|options| {
        options.containment = Some(containments()[0]);
        options.search_path = format!("{}:/usr/bin:/bin", programs.path().display()).into();
    });
    let entry = films(&mut test_host);
    let session = test_host.start(entry);
    session.wait_for_output("playing");
    let status = test_host.stop(&session, 10 * TEST_TIMEOUT);
    assert_eq!(status, ExitStatus { code: None, signal: Some(15) });
    test_host.assert_no_event(Duration::from_millis(50));
}

/// A program can fill the folder of its control socket. That must neither overflow the stack of the cleanup thread nor
/// keep it busy for ever (S6.2).
#[test]
fn a_deeply_nested_socket_folder_does_not_stop_the_cleanup() {
    const DEPTH: u32 = 40_000;
    let programs = tempfile::tempdir().unwrap();
    write_script(&programs.path().join("mpv"), "echo playing; exec sleep 600");
    // In memory if possible, because a busy disk takes minutes.
    let folder = Path::new(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" });
    let mut test_host = TestHost::with_options(|options| {
        options.containment = Some(containments()[0]);
        options.search_path = format!("{}:/usr/bin:/bin", programs.path().display()).into();
        options.socket_folder = folder.to_owned();
    });
    let entry = films(&mut test_host);
    let session = test_host.start(entry);
    session.wait_for_output("playing");
    let sockets = folder.join(format!("shepherd-{}", session.session_id));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut folder_fd = rustix::fs::open(&sockets, flags, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&folder_fd, c"d", Mode::RWXU).unwrap();
        folder_fd = rustix::fs::openat(&folder_fd, c"d", flags, Mode::empty()).unwrap();
    }
    drop(folder_fd);
    test_host.stop(&session, 10 * TEST_TIMEOUT);
    // On a slow machine some of the folder may be left, but the session's handle is gone.
    test_host.wait_for_cleanup();
    assert!(Command::new("rm").arg("-rf").arg(&sockets).status().unwrap().success());
}
