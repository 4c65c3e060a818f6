//! What becomes of entries of each kind: command lines, as programs get them that stand in for the real ones (S6.6).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use shepherd_api::EntryKind;
use shepherd_core::policy::{CustomDriver, MediaLibrary, PolicyRules};
use shepherd_host_api::ExitStatus;
use tempfile::TempDir;

use crate::harness::{
    SHORT_GRACE, TEST_TIMEOUT, TestHost, containments, entry, fake_entry, wait_until, write_script,
};

/// Says what it was given, and leaves.
const ECHO: &str = "for word in \"$@\"; do echo \"[$word]\"; done";

/// A host that finds only what the test puts into its folder, and what a shell needs.
fn host_with_programs(programs: &[(&str, &str)]) -> (TestHost, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in programs {
        write_script(&folder.path().join(name), text);
    }
    let ground = TestHost::with_options(|options| {
        options.containment = Some(containments()[0]);
        options.search_path = format!("{}:/usr/bin:/bin", folder.path().display()).into();
    });
    (ground, folder)
}

fn custom(type_name: &str, payload: Value) -> EntryKind {
    EntryKind::Custom { type_name: type_name.to_owned(), payload }
}

fn vm(driver: &str, args: &Value) -> EntryKind {
    let args = args.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    EntryKind::Vm { driver: driver.to_owned(), args }
}

/// The words that the stand-in was given.
fn words(ground: &mut TestHost, kind: EntryKind) -> Vec<String> {
    let session = ground.start(entry(kind));
    ground.wait_for_exit(&session);
    ground.wait_for_cleanup();
    session.output().lines().map(|line| line.trim_matches(['[', ']']).to_owned()).collect()
}

#[test]
fn flatpak_snap_and_steam_get_their_apps() {
    let programs = [("flatpak", ECHO), ("snap", ECHO), ("steam", ECHO)];
    let (mut ground, _folder) = host_with_programs(&programs);
    let mut check =
        |kind, payload, wanted: &[&str]| assert_eq!(words(&mut ground, custom(kind, payload)), wanted);
    check("flatpak", json!({"app": "org.x.Y", "args": ["--a", "b c"]}), &["run", "org.x.Y", "--a", "b c"]);
    check("flatpak", json!("org.x.Y"), &["run", "org.x.Y"]);
    check("snap", json!({"app": "gimp.help"}), &["run", "gimp.help"]);
    check("steam", json!({"app": 620, "args": ["-x"]}), &["-applaunch", "620", "-x"]);
}

#[test]
fn what_is_no_app_is_refused() {
    let (mut ground, _folder) = host_with_programs(&[("flatpak", ECHO), ("snap", ECHO), ("steam", ECHO)]);
    let mut check = |kind, payload, wanted: &str| {
        assert_eq!(ground.spawn_failure(entry(custom(kind, payload))), format!("entry `game`: {wanted}"));
    };
    check("flatpak", json!({}), "type `flatpak` needs `app`; add `app`");
    check("flatpak", json!({"app": "--command=sh"}), "`--command=sh` is no name of an app; correct it");
    check("snap", json!({"app": "x", "arg": "y"}), "type `snap` knows no `arg`; it knows `app` and `args`");
    check("snap", json!([1]), "type `snap` does not understand [1]; give the name of the app");
    check("steam", json!({"app": "Portal"}), "`Portal` is no app of Steam's; give its number");
    check(
        "trains",
        json!({}),
        "nothing here runs entries of type `trains`; it is `flatpak`, `snap` or `steam`, or the policy's `[drivers]` \
         names a program for it",
    );
}

#[test]
fn a_driver_of_the_policy_gets_the_payload_on_its_standard_input() {
    let (mut ground, _folder) = host_with_programs(&[]);
    let argv = ["sh", "-c", "echo \"[$1]\"; cat; echo ]", "driver", "alps"].map(str::to_owned).into();
    let drivers = BTreeMap::from([("trains".to_owned(), CustomDriver { argv })]);
    ground.apply_rules(PolicyRules { drivers, ..PolicyRules::default() });
    // More than any pipe holds.
    let payload = json!({"layout": "x".repeat(300_000), "speed": 3});
    let session = ground.start(entry(custom("trains", payload.clone())));
    ground.wait_for_exit(&session);
    ground.wait_for_cleanup();
    assert_eq!(session.output(), format!("[alps]\n{payload}]\n"));
}

#[test]
fn flatpak_is_told_to_kill_what_ignores_the_signal() {
    let stubborn = format!(
        "if [ $1 = kill ]; then echo \"$@\" > ${{0%/*}}/killed; else exec {} 'ignore term; arrive; sleep 600000'; fi",
        fake_entry().display()
    );
    let (mut ground, folder) = host_with_programs(&[("flatpak", &stubborn)]);
    let session = ground.start(entry(custom("flatpak", json!({"app": "org.x.Y"}))));
    // So that it has come to where it ignores the signal.
    std::thread::sleep(SHORT_GRACE);
    let status = ground.stop(&session, Duration::from_secs(2));
    assert_eq!(status, ExitStatus { code: None, signal: Some(9) });
    wait_until("kill by Flatpak", || folder.path().join("killed").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join("killed")).unwrap(), "kill org.x.Y\n");
}

/// A command that hangs would end the next session of its app.
#[test]
fn steam_is_not_started_while_a_client_outside_would_take_over() {
    let (mut ground, folder) = host_with_programs(&[("steam", ECHO)]);
    // A name that stays what it is: a script would become its interpreter.
    let client = folder.path().join("client/steam");
    std::fs::create_dir(client.parent().unwrap()).unwrap();
    std::fs::copy("/bin/sleep", &client).unwrap();
    let mut outside = std::process::Command::new(&client).arg("600").spawn().unwrap();
    wait_until("its name", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", outside.id()));
        name.is_ok_and(|name| name == "steam\n")
    });
    assert_eq!(
        ground.spawn_failure(entry(custom("steam", json!({"app": 620})))),
        "entry `game`: `steam` runs already, outside of any session, and would take it over; end that one first, and \
         let nothing else start it"
    );
    outside.kill().unwrap();
    outside.wait().unwrap();
    let session = ground.start(entry(custom("steam", json!({"app": 620}))));
    assert!(session.shortcomings.iter().any(|sentence| sentence.contains("client that runs already")));
    ground.wait_for_exit(&session);
}

#[test]
fn a_stop_command_ends_with_its_session() {
    let hangs = "if [ $1 = -shutdown ]; then touch ${0%/*}/asked; exec sleep 612; fi; exec sleep 600";
    let (mut ground, folder) = host_with_programs(&[("steam", hangs)]);
    let session = ground.start(entry(custom("steam", json!({"app": 620}))));
    ground.order_stop(&session, 10 * TEST_TIMEOUT);
    wait_until("request", || folder.path().join("asked").exists());
    assert_eq!(ground.stop(&session, Duration::ZERO), ExitStatus { code: None, signal: Some(9) });
    let is_hanging = |pid: &str| {
        std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            let mark = format!("WARD_TREE=stop-{}", session.session_id);
            environment.starts_with(mark.as_bytes())
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
    let (mut ground, folder) = host_with_programs(&[("steam", ends), ("box", ends)]);
    let argv = [folder.path().join("box").to_str().unwrap().to_owned(), "run".to_owned()];
    let stop = [folder.path().join("box").to_str().unwrap().to_owned(), "-shutdown".to_owned()];
    let kinds = [custom("steam", json!({"app": "620"})), vm("command", &json!({"argv": argv, "stop": stop}))];
    for kind in kinds {
        let session = ground.start(entry(kind));
        // Nothing else would come before half of it is over, and a signal gives no code.
        let status = ground.stop(&session, 10 * TEST_TIMEOUT);
        assert_eq!(status, ExitStatus { code: Some(5), signal: None });
        std::fs::remove_file(folder.path().join("stop")).unwrap();
    }
}

#[test]
fn a_machine_is_built_from_its_settings() {
    let (mut ground, _folder) = host_with_programs(&[("qemu-system-x86_64", ECHO), ("my-qemu", ECHO)]);
    let least = words(&mut ground, vm("qemu", &json!({"disk": "/srv/a,b.qcow2"})));
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
    let all = words(&mut ground, vm("qemu", &all));
    let mut wanted = vec!["-m", "512", "-smp", "2", "-machine", "pc", "-accel", "tcg"];
    wanted.extend(["-drive", "file=/srv/a.img,format=raw,if=virtio"]);
    wanted.extend(["-drive", "file=/srv/b.qcow2,format=qcow2,if=virtio"]);
    wanted.extend(["-drive", "file=/srv/c.iso,format=raw,media=cdrom,readonly=on", "-snapshot"]);
    wanted.extend(["-kernel", "/k", "-initrd", "/i", "-append", "quiet x=y", "-display", "none"]);
    wanted.extend(["-nic", "user,model=virtio-net-pci", "-serial", "stdio", "-no-reboot"]);
    assert_eq!(all[4..], wanted);
}

#[test]
fn settings_that_nobody_knows_are_refused_by_name() {
    let (mut ground, _folder) = host_with_programs(&[("qemu-system-x86_64", ECHO)]);
    let mut check = |driver, args, wanted: &str| {
        let failure = ground.spawn_failure(entry(vm(driver, &args)));
        assert!(failure.contains(wanted), "{failure}");
    };
    check("qemu", json!({"memmory": 512}), "driver `qemu` knows no `memmory`; it knows `memory`, `cpus`,");
    check("qemu", json!({"cpus": "two"}), "does not understand `cpus = \"two\"`; `cpus` is a number");
    check("qemu", json!({"network": "bridge"}), "`network` is `none` or `user`");
    check("qemu", json!({"serial": "pty"}), "`serial` is `none` or `log`");
    check("command", json!({}), "driver `command` needs `argv`; add `argv`");
    check("command", json!({"argv": ["true"], "stop": ["no-such"]}), "there is no program `no-such`");
    check("bochs", json!({}), "there is no driver `bochs` for virtual machines; it is `qemu` or `command`");
}

/// The policy language and the host agree on every key.
#[test]
fn every_setting_that_a_policy_can_have_is_known_here() {
    let (mut ground, _folder) = host_with_programs(&[("qemu-system-x86_64", ECHO)]);
    for driver in ["qemu", "command", "flatpak", "snap", "steam"] {
        for key in shepherd_config::setting_keys(driver).unwrap() {
            // No setting is a list of truths, so that each one known is complained about by its name.
            let mut args = json!({key: [[true]]});
            if key == "args" {
                args["app"] = json!("620");
            }
            let kind =
                if matches!(driver, "qemu" | "command") { vm(driver, &args) } else { custom(driver, args) };
            let failure = ground.spawn_failure(entry(kind));
            assert!(failure.contains(&format!("does not understand `{key} = ")), "{failure}");
        }
    }
}

#[test]
fn a_player_gets_the_files_of_the_library_in_order() {
    let (mut ground, folder) = host_with_programs(&[("mpv", ECHO), ("viewer", ECHO)]);
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
    ground.apply_rules(PolicyRules { libraries, ..PolicyRules::default() });
    let files = ["single", "films/a film.mp4", "films/b-folder/1.webm", "films/c.MKV"].map(path);
    let media =
        |library: &str| EntryKind::Media { library_id: library.into(), args: vec!["--fullscreen".into()] };
    let played = words(&mut ground, media("films"));
    assert!(played[0].starts_with("--input-ipc-server=/tmp/shepherd-session-"), "{}", played[0]);
    assert_eq!(played[1..3], ["--fullscreen", "--"]);
    assert_eq!(played[3..], files);
    let viewed = words(&mut ground, media("pictures"));
    assert_eq!((viewed[0].as_str(), &viewed[1..]), ("--fullscreen", &files[..]));
}

#[test]
fn a_library_without_files_is_said_so() {
    let (mut ground, folder) = host_with_programs(&[("mpv", ECHO)]);
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let library = |path: &str| MediaLibrary { paths: vec![path.to_owned()], player: None };
    let libraries = BTreeMap::from([
        ("lost".to_owned(), library("/nowhere/films")),
        ("near".to_owned(), library("films")),
        ("empty".to_owned(), library(folder.path().join("empty").to_str().unwrap())),
    ]);
    ground.apply_rules(PolicyRules { libraries, ..PolicyRules::default() });
    let mut check = |library: &str, wanted: &str| {
        let kind = EntryKind::Media { library_id: library.to_owned(), args: Vec::new() };
        assert_eq!(ground.spawn_failure(entry(kind)), format!("entry `game`: {wanted}"));
    };
    let cure = "correct its `paths`, or mount what is missing";
    let missing = "No such file or directory (os error 2)";
    check("lost", &format!("library `lost`: `/nowhere/films` can't be read ({missing}); {cure}"));
    check("near", &format!("library `near`: `films` is no whole path; {cure}"));
    check("empty", "library `empty` has no files to play; put some into its folders, or correct its `paths`");
    check("other", "there is no library `other`; add it to `[libraries]`");
}
