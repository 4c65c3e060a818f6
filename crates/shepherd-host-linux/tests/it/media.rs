//! A real mpv with a film, told to quit before it is signalled (S6.6).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use shepherd_api::EntryKind;
use shepherd_core::policy::{MediaLibrary, PolicyEntry, PolicyRules};
use shepherd_host_api::{ExitStatus, HostAdapter, HostEvent, HostStopRequest};

use crate::harness::{TEST_TIMEOUT, TestHost, containments, entry, wait_until, write_script};

/// Ten seconds of grey, sixteen pixels wide.
fn write_film(path: &Path) {
    let mut film = b"YUV4MPEG2 W16 H16 F25:1 Ip A1:1 C420\n".to_vec();
    for _ in 0..250 {
        film.extend(b"FRAME\n");
        film.extend([128; 16 * 16 * 3 / 2]);
    }
    std::fs::write(path, film).unwrap();
}

fn films(ground: &mut TestHost) -> PolicyEntry {
    let folder = ground.folder.path().join("films");
    std::fs::create_dir(&folder).unwrap();
    write_film(&folder.join("grey.y4m"));
    let library = MediaLibrary { paths: vec![folder.to_str().unwrap().to_owned()], player: None };
    let libraries = BTreeMap::from([("films".to_owned(), library)]);
    ground.apply_rules(PolicyRules { libraries, ..PolicyRules::default() });
    let args = ["--no-config", "--vo=null", "--ao=null", "--loop-playlist=inf", "--term-status-msg="];
    entry(EntryKind::Media { library_id: "films".to_owned(), args: args.map(str::to_owned).into() })
}

#[test]
fn mpv_plays_a_film_and_quits_when_it_is_told_to() {
    assert!(Path::new("/usr/bin/mpv").exists(), "no mpv: `cargo xtask setup` installs it");
    for containment in containments() {
        let mut ground = TestHost::new(containment);
        let entry = films(&mut ground);
        let session = ground.start(entry);
        session.wait_for_output("VO: [null]");
        // A signal would give the code 4, and come only when half of the grace is over.
        let status = ground.stop(&session, 10 * TEST_TIMEOUT);
        assert_eq!(status, ExitStatus { code: Some(0), signal: None }, "{containment}: {}", session.output());
    }
}

/// The way to ask it is part of what is written down.
#[test]
fn mpv_is_told_to_quit_by_a_later_daemon_too() {
    let mut ground = TestHost::new(containments()[0]);
    let entry = films(&mut ground);
    let session = ground.start(entry);
    session.wait_for_output("VO: [null]");
    let sockets = Path::new("/tmp").join(format!("shepherd-{}", session.session_id));
    assert!(sockets.join("mpv").exists());
    let TestHost { host, folder, .. } = ground;
    drop(host);
    let mut later = TestHost::with_options(|options| options.state_folder = folder.path().join("state"));
    later.host.reattach(&session.session_id, None);
    assert!(matches!(later.next_event(), HostEvent::Reattached { .. }));
    later.host.stop(HostStopRequest { session_id: session.session_id, grace: 10 * TEST_TIMEOUT });
    assert!(matches!(later.next_event(), HostEvent::Exited { .. }));
    wait_until("end without sockets", || !sockets.exists());
}

#[test]
fn a_player_that_does_not_listen_is_signalled_at_once() {
    let programs = tempfile::tempdir().unwrap();
    write_script(&programs.path().join("mpv"), "echo playing; exec sleep 600");
    let mut ground = TestHost::with_options(|options| {
        options.containment = Some(containments()[0]);
        options.search_path = format!("{}:/usr/bin:/bin", programs.path().display()).into();
    });
    let entry = films(&mut ground);
    let session = ground.start(entry);
    session.wait_for_output("playing");
    let status = ground.stop(&session, 10 * TEST_TIMEOUT);
    assert_eq!(status, ExitStatus { code: None, signal: Some(15) });
    ground.assert_no_event(Duration::from_millis(50));
}

/// Its sockets are in a folder that it owns; the janitor's stack and patience are ours (S6.2).
#[test]
fn a_bottomless_folder_beside_the_socket_brings_nobody_down() {
    const DEPTH: u32 = 40_000;
    let programs = tempfile::tempdir().unwrap();
    write_script(&programs.path().join("mpv"), "echo playing; exec sleep 600");
    // In memory, if that is possible: a busy disk takes minutes.
    let folder = Path::new(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" });
    let mut ground = TestHost::with_options(|options| {
        options.containment = Some(containments()[0]);
        options.search_path = format!("{}:/usr/bin:/bin", programs.path().display()).into();
        options.socket_folder = folder.to_owned();
    });
    let entry = films(&mut ground);
    let session = ground.start(entry);
    session.wait_for_output("playing");
    let sockets = folder.join(format!("shepherd-{}", session.session_id));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = rustix::fs::open(&sockets, flags, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&at, c"d", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, c"d", flags, Mode::empty()).unwrap();
    }
    drop(at);
    ground.stop(&session, 10 * TEST_TIMEOUT);
    // A slow machine may leave some of it, but it is forgotten.
    ground.wait_for_cleanup();
    assert!(Command::new("rm").arg("-rf").arg(&sockets).status().unwrap().success());
}
