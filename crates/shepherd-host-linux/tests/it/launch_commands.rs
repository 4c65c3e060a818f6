//! The command lines of each kind of entry, as stand-ins for the real programs get them (S6.6).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use shepherd_api::EntryKind;
use shepherd_core::policy::{CustomDriver, MediaLibrary, PolicyRules};
use shepherd_host_api::ExitStatus;
use tempfile::TempDir;

use crate::harness::{
    MarkedScript, TEST_TIMEOUT, TestHost, containments, entry, fake_entry, wait_until, write_script,
};

/// A stand-in that prints its arguments.
const ECHO: &str = "for word in \"$@\"; do echo \"[$word]\"; done";

/// Returns a host that finds the given scripts first, and otherwise only system programs.
fn host_with_programs(programs: &[(&str, &str)]) -> (TestHost, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in programs {
        write_script(&folder.path().join(name), text);
    }
    let test_host = TestHost::with_options(|options| {
        options.containment = Some(containments()[0]);
        options.search_path = format!("{}:/usr/bin:/bin", folder.path().display()).into();
    });
    (test_host, folder)
}

fn custom(type_name: &str, payload: Value) -> EntryKind {
    EntryKind::Custom { type_name: type_name.to_owned(), payload }
}

fn vm(driver: &str, args: &Value) -> EntryKind {
    let args = args.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    EntryKind::Vm { driver: driver.to_owned(), args }
}

/// Returns the arguments that the stand-in was given.
fn words(test_host: &mut TestHost, kind: EntryKind) -> Vec<String> {
    let session = test_host.start(entry(kind));
    test_host.wait_for_exit(&session);
    test_host.wait_for_cleanup();
    session.output().lines().map(|line| line.trim_matches(['[', ']']).to_owned()).collect()
}

#[test]
fn flatpak_snap_and_steam_get_their_apps() {
    let programs = [("flatpak", ECHO), ("snap", ECHO), ("steam", ECHO)];
    let (mut test_host, _folder) = host_with_programs(&programs);
    let mut check =
        |kind, payload, wanted: &[&str]| assert_eq!(words(&mut test_host, custom(kind, payload)), wanted);
    check("flatpak", json!({"app": "org.x.Y", "args": ["--a", "b c"]}), &["run", "org.x.Y", "--a", "b c"]);
    check("flatpak", json!("org.x.Y"), &["run", "org.x.Y"]);
    check("snap", json!({"app": "gimp.help"}), &["run", "gimp.help"]);
    check("steam", json!({"app": 620, "args": ["-x"]}), &["-applaunch", "620", "-x"]);
}

#[test]
fn invalid_apps_are_refused() {
    let (mut test_host, _folder) = host_with_programs(&[("flatpak", ECHO), ("snap", ECHO), ("steam", ECHO)]);
    let mut check = |kind, payload, wanted: &str| {
        assert_eq!(test_host.spawn_failure(entry(custom(kind, payload))), format!("entry `game`: {wanted}"));
    };
    check("flatpak", json!({}), "type `flatpak` needs `app`; add `app`");
    check("flatpak", json!({"app": "--command=sh"}), "`--command=sh` is not an app name; correct it");
    check(
        "snap",
        json!({"app": "x", "arg": "y"}),
        "unknown key `arg` for type `snap`; valid keys are `app` and `args`",
    );
    check("snap", json!([1]), "invalid payload [1] for type `snap`; give the name of the app");
    check(
        "steam",
        json!({"app": "Portal"}),
        "`Portal` is not a Steam app number; give the number of the app",
    );
    check(
        "trains",
        json!({}),
        "no driver for entries of type `trains`; use `flatpak`, `snap` or `steam`, or name a program under `[drivers]`",
    );
}

#[test]
fn a_driver_of_the_policy_gets_the_payload_on_its_standard_input() {
    let (mut test_host, _folder) = host_with_programs(&[]);
    let argv = ["sh", "-c", "echo \"[$1]\"; cat; echo ]", "driver", "alps"].map(str::to_owned).into();
    let drivers = BTreeMap::from([("trains".to_owned(), CustomDriver { argv })]);
    test_host.apply_rules(PolicyRules { drivers, ..PolicyRules::default() });
    // The payload is larger than a pipe buffer.
    let payload = json!({"layout": "x".repeat(300_000), "speed": 3});
    let session = test_host.start(entry(custom("trains", payload.clone())));
    test_host.wait_for_exit(&session);
    test_host.wait_for_cleanup();
    assert_eq!(session.output(), format!("[alps]\n{payload}]\n"));
}

#[test]
fn flatpak_is_asked_to_kill_an_application_that_ignores_the_signal() {
    let marked = MarkedScript::new();
    let stubborn = format!(
        "if [ $1 = kill ]; then echo \"$@\" > ${{0%/*}}/killed; else exec {} '{}'; fi",
        fake_entry().display(),
        marked.script("ignore term; FOREVER")
    );
    let (mut test_host, folder) = host_with_programs(&[("flatpak", &stubborn)]);
    let session = test_host.start(entry(custom("flatpak", json!({"app": "org.x.Y"}))));
    marked.wait_for_arrivals(1);
    let status = test_host.stop(&session, Duration::from_secs(2));
    assert_eq!(status, ExitStatus { code: None, signal: Some(9) });
    wait_until("kill by Flatpak", || folder.path().join("killed").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join("killed")).unwrap(), "kill org.x.Y\n");
}

#[test]
fn steam_is_not_started_while_a_client_outside_would_take_over() {
    let (mut test_host, folder) = host_with_programs(&[("steam", ECHO)]);
    // The client is a binary, because the process name of a script is that of its interpreter.
    let client = folder.path().join("client/steam");
    std::fs::create_dir(client.parent().unwrap()).unwrap();
    std::fs::copy("/bin/sleep", &client).unwrap();
    let mut outside = std::process::Command::new(&client).arg("600").spawn().unwrap();
    wait_until("the process name", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", outside.id()));
        name.is_ok_and(|name| name == "steam\n")
    });
    assert_eq!(
        test_host.spawn_failure(entry(custom("steam", json!({"app": 620})))),
        "entry `game`: `steam` is already running outside of any session and would take over the launch; quit it \
         first, and let nothing else start it"
    );
    outside.kill().unwrap();
    outside.wait().unwrap();
    let session = test_host.start(entry(custom("steam", json!({"app": 620}))));
    assert!(session.shortcomings.iter().any(|sentence| sentence.contains("client that is already running")));
    test_host.wait_for_exit(&session);
}

/// A stop command that hangs could otherwise end the next session of its app.
#[test]
fn a_stop_command_ends_with_its_session() {
    let hangs = "if [ $1 = -shutdown ]; then touch ${0%/*}/requested; exec sleep 612; fi; exec sleep 600";
    let (mut test_host, folder) = host_with_programs(&[("steam", hangs)]);
    let session = test_host.start(entry(custom("steam", json!({"app": 620}))));
    test_host.request_stop(&session, 10 * TEST_TIMEOUT);
    wait_until("request", || folder.path().join("requested").exists());
    assert_eq!(test_host.stop(&session, Duration::ZERO), ExitStatus { code: None, signal: Some(9) });
    let is_hanging = |pid: &str| {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            let marker = format!("WARD_TREE=stop-{}", session.session_id);
            environment.starts_with(marker.as_bytes())
        })
    };
    let processes = || std::fs::read_dir("/proc").unwrap().flatten();
    wait_until("end of the command", || {
        !processes().any(|process| process.file_name().to_str().is_some_and(is_hanging))
    });
}

#[test]
fn steam_and_machines_of_other_drivers_are_ended_by_their_own_command_first() {
    let ends = "if [ $1 = -shutdown ]; then touch ${0%/*}/stop; else while [ ! -e ${0%/*}/stop ]; do sleep 0.02; done; exit 5; fi";
    let (mut test_host, folder) = host_with_programs(&[("steam", ends), ("box", ends)]);
    let argv = [folder.path().join("box").to_str().unwrap().to_owned(), "run".to_owned()];
    let stop = [folder.path().join("box").to_str().unwrap().to_owned(), "-shutdown".to_owned()];
    let kinds = [custom("steam", json!({"app": "620"})), vm("command", &json!({"argv": argv, "stop": stop}))];
    for kind in kinds {
        let session = test_host.start(entry(kind));
        // The signal would come after half of the grace, and would give no exit code.
        let status = test_host.stop(&session, 10 * TEST_TIMEOUT);
        assert_eq!(status, ExitStatus { code: Some(5), signal: None });
        std::fs::remove_file(folder.path().join("stop")).unwrap();
    }
}

#[test]
fn a_machine_is_built_from_its_settings() {
    let (mut test_host, _folder) = host_with_programs(&[("qemu-system-x86_64", ECHO), ("my-qemu", ECHO)]);
    let least = words(&mut test_host, vm("qemu", &json!({"disk": "/srv/a,b.qcow2"})));
    let socket = least[3].clone();
    assert!(socket.starts_with("unix:/tmp/shepherd-session-") && socket.ends_with("/qmp,server=on,wait=off"));
    let disk = "file=/srv/a,,b.qcow2,format=qcow2,if=virtio";
    let mut wanted = vec!["-nodefaults", "-no-user-config", "-qmp", &socket, "-m", "1024", "-smp", "1"];
    wanted.extend(["-accel", "kvm", "-accel", "tcg", "-drive", disk, "-vga", "std", "-display", "gtk"]);
    wanted.extend(["-nic", "none"]);
    assert_eq!(least, wanted);
    let all = json!({
        "memory": 512, "cpus": 2, "disk": ["/srv/a.img", "/srv/b.qcow2"], "cdrom": "/srv/c.iso", "snapshot": true,
        "kernel": "/k", "initrd": "/i", "append": "quiet x=y", "machine": "pc", "accel": "tcg", "display": "none",
        "network": "user", "serial": "log", "program": "my-qemu", "extra": ["-no-reboot"],
    });
    let all = words(&mut test_host, vm("qemu", &all));
    let mut wanted = vec!["-m", "512", "-smp", "2", "-machine", "pc", "-accel", "tcg"];
    wanted.extend(["-drive", "file=/srv/a.img,format=raw,if=virtio"]);
    wanted.extend(["-drive", "file=/srv/b.qcow2,format=qcow2,if=virtio"]);
    wanted.extend(["-drive", "file=/srv/c.iso,format=raw,media=cdrom,readonly=on", "-snapshot"]);
    wanted.extend(["-kernel", "/k", "-initrd", "/i", "-append", "quiet x=y", "-display", "none"]);
    wanted.extend(["-nic", "user,model=virtio-net-pci", "-serial", "stdio", "-no-reboot"]);
    assert_eq!(all[4..], wanted);
}

#[test]
fn unknown_and_invalid_settings_are_refused_by_name() {
    let (mut test_host, _folder) = host_with_programs(&[("qemu-system-x86_64", ECHO)]);
    let mut check = |driver, args, wanted: &str| {
        let failure = test_host.spawn_failure(entry(vm(driver, &args)));
        assert!(failure.contains(wanted), "{failure}");
    };
    check(
        "qemu",
        json!({"memmory": 512}),
        "unknown key `memmory` for driver `qemu`; valid keys are `memory`, `cpus`,",
    );
    check(
        "qemu",
        json!({"cpus": "two"}),
        "invalid value `cpus = \"two\"` for driver `qemu`; `cpus` must be a number",
    );
    check("qemu", json!({"network": "bridge"}), "`network` must be `none` or `user`");
    check("qemu", json!({"serial": "pty"}), "`serial` must be `none` or `log`");
    check("command", json!({}), "driver `command` needs `argv`; add `argv`");
    check("command", json!({"argv": ["true"], "stop": ["no-such"]}), "program `no-such` not found");
    check("bochs", json!({}), "no such driver `bochs` for virtual machines; use `qemu` or `command`");
}

/// The policy language and the host agree on every key.
#[test]
fn every_setting_that_a_policy_can_have_is_known_here() {
    let (mut test_host, _folder) = host_with_programs(&[("qemu-system-x86_64", ECHO)]);
    for driver in ["qemu", "command", "flatpak", "snap", "steam"] {
        for key in shepherd_config::setting_keys(driver).unwrap() {
            // No setting is a list of booleans, so every known setting is refused by its name.
            let mut args = json!({key: [[true]]});
            if key == "args" {
                args["app"] = json!("620");
            }
            let kind =
                if matches!(driver, "qemu" | "command") { vm(driver, &args) } else { custom(driver, args) };
            let failure = test_host.spawn_failure(entry(kind));
            assert!(failure.contains(&format!("invalid value `{key} = ")), "{failure}");
        }
    }
}

#[test]
fn a_player_gets_the_files_of_the_library_in_order() {
    let (mut test_host, folder) = host_with_programs(&[("mpv", ECHO), ("viewer", ECHO)]);
    let films = folder.path().join("films");
    std::fs::create_dir_all(films.join("b-folder/.hidden")).unwrap();
    for file in
        ["c.MKV", "a film.mp4", "notes.txt", ".hidden.mp4", "b-folder/1.webm", "b-folder/.hidden/2.webm"]
    {
        std::fs::write(films.join(file), "").unwrap();
    }
    std::os::unix::fs::symlink(&films, films.join("b-folder/circle.mp4")).unwrap();
    std::fs::write(folder.path().join("single"), "").unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let paths = vec![path("single"), path("films")];
    let library =
        |player: Option<&str>| MediaLibrary { paths: paths.clone(), player: player.map(str::to_owned) };
    let libraries = BTreeMap::from([
        ("films".to_owned(), library(None)),
        ("pictures".to_owned(), library(Some("viewer"))),
    ]);
    test_host.apply_rules(PolicyRules { libraries, ..PolicyRules::default() });
    let files = ["single", "films/a film.mp4", "films/b-folder/1.webm", "films/c.MKV"].map(path);
    let media =
        |library: &str| EntryKind::Media { library_id: library.into(), args: vec!["--fullscreen".into()] };
    let played = words(&mut test_host, media("films"));
    assert!(played[0].starts_with("--input-ipc-server=/tmp/shepherd-session-"), "{}", played[0]);
    assert_eq!(played[1..3], ["--fullscreen", "--"]);
    assert_eq!(played[3..], files);
    let viewed = words(&mut test_host, media("pictures"));
    assert_eq!((viewed[0].as_str(), &viewed[1..]), ("--fullscreen", &files[..]));
}

#[test]
fn a_library_without_files_is_reported() {
    let (mut test_host, folder) = host_with_programs(&[("mpv", ECHO)]);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let library = |path: &str| MediaLibrary { paths: vec![path.to_owned()], player: None };
    let libraries = BTreeMap::from([
        ("lost".to_owned(), library("/nowhere/films")),
        ("near".to_owned(), library("films")),
        ("empty".to_owned(), library(folder.path().join("empty").to_str().unwrap())),
    ]);
    test_host.apply_rules(PolicyRules { libraries, ..PolicyRules::default() });
    let mut check = |library: &str, wanted: &str| {
        let kind = EntryKind::Media { library_id: library.to_owned(), args: Vec::new() };
        assert_eq!(test_host.spawn_failure(entry(kind)), format!("entry `game`: {wanted}"));
    };
    let cure = "correct its `paths`, or mount the missing disk";
    let missing = "No such file or directory (os error 2)";
    check("lost", &format!("library `lost`: could not read `/nowhere/films`: {missing}; {cure}"));
    check("near", &format!("library `near`: `films` is not an absolute path; {cure}"));
    check(
        "empty",
        "library `empty` contains no media files; add some to its folders, or correct its `paths`",
    );
    check("other", "no such library `other`; add it to `[libraries]`");
}
