//! Programs: their arguments and environment, their output, and messages about programs that can't be started (S6.1,
//! S6.4, S6.5).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use shepherd_api::EntryKind;
use shepherd_core::policy::{PolicyEntry, ResourceLimits, RunPolicy};
use shepherd_host_api::{ExitStatus, HostAdapter};
use shepherd_host_linux::RunAsRoot;
use ward_process::Containment;

use crate::harness::{TestHost, containments, entry, process, script, wait_until};

/// Returns a host with the strongest containment.
fn strongest_host() -> TestHost {
    TestHost::new(containments()[0])
}

/// Runs a program to its end and returns its output.
fn output_of(test_host: &mut TestHost, entry: PolicyEntry) -> String {
    let session = test_host.start(entry);
    assert_eq!(test_host.wait_for_exit(&session), ExitStatus { code: Some(0), signal: None });
    test_host.wait_for_cleanup();
    session.output()
}

fn with_limits(limits: ResourceLimits, mut entry: PolicyEntry) -> PolicyEntry {
    entry.run = RunPolicy { limits, ..RunPolicy::default() };
    entry
}

/// S6.1.
#[test]
fn arguments_arrive_exactly_and_no_shell_reads_them() {
    let argv = ["printf", "<%s>", "$HOME", "a b", "", "*", ";echo x", "ü\n"];
    assert_eq!(output_of(&mut strongest_host(), entry(process(&argv))), "<$HOME><a b><><*><;echo x><ü\n>");
}

/// S6.1.
#[test]
fn folder_and_variables_are_those_of_the_entry() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().canonicalize().unwrap();
    let kind = EntryKind::Process {
        argv: vec!["sh".into(), "-c".into(), "pwd; echo \"$COLOUR $PATH\"".into()],
        env: BTreeMap::from([("COLOUR".into(), "blue".into()), ("PATH".into(), "/bin:/usr/bin".into())]),
        cwd: Some(inside.to_str().unwrap().to_owned()),
    };
    let output = output_of(&mut strongest_host(), entry(kind));
    assert_eq!(output, format!("{}\nblue /bin:/usr/bin\n", inside.display()));
}

/// S6.5.
#[test]
fn only_listed_variables_of_the_daemon_are_passed_on() {
    let mut test_host = TestHost::with_options(|options| {
        options.environment = ["LANG", "LD_PRELOAD", "SHEPHERD_SECRET", "PATH", "DBUS_SESSION_BUS_ADDRESS"]
            .map(|name| (name.into(), "x".into()))
            .into();
    });
    let output = output_of(&mut test_host, entry(process(&["env"])));
    let names: Vec<&str> = output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names, ["WARD_TREE", "LANG", "PATH"]);
    assert!(output.contains("PATH=/usr/local/bin:/usr/bin:/bin:"), "{output}");
}

/// S6.1, S6.5.
#[test]
fn a_program_has_a_session_of_its_own_and_gains_no_privileges() {
    let script = "grep -E '^NoNewPrivs' /proc/self/status; umask; cut -d' ' -f5,6 /proc/$$/stat; echo $$";
    let output =
        output_of(&mut TestHost::new(Containment::ProcessGroup), entry(process(&["sh", "-c", script])));
    let lines: Vec<&str> = output.lines().collect();
    let [privileges, umask, group_and_session, own] = lines[..] else { panic!("{output}") };
    assert_eq!((privileges, umask), ("NoNewPrivs:\t1", "0077"));
    assert_eq!(group_and_session, format!("{own} {own}"));
}

/// S6.4.
#[test]
fn output_is_kept_up_to_its_limit_and_only_the_owner_can_read_it() {
    let mut test_host = strongest_host();
    let mut chatter = script("print 100000; exit 0");
    chatter.run.output_limit = Some(1_000);
    let session = test_host.start(chatter);
    test_host.wait_for_exit(&session);
    test_host.wait_for_cleanup();
    let kept = session.output();
    assert!(kept.starts_with(&"x".repeat(1_000)) && kept.len() < 1_200, "{} bytes", kept.len());
    assert_eq!(session.output, test_host.state().join(format!("logs/{}.log", session.session_id)));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&session.output), 0o600);
    assert_eq!(mode(&test_host.state().join("logs")), 0o700);
    assert_eq!(mode(&test_host.state().join("sessions")), 0o700);
}

/// S6.5.
#[test]
fn limits_are_enforced_or_reported_as_not_enforced() {
    for containment in containments() {
        let mut test_host = TestHost::new(containment);
        let limits = ResourceLimits {
            open_files: Some(64),
            file_size: Some(1 << 20),
            cpu_percent: Some(50),
            memory: Some(1 << 30),
            processes: Some(500),
        };
        let entry = entry(process(&["sh", "-c", "ulimit -n; ulimit -f"]));
        let session = test_host.start(with_limits(limits, entry));
        test_host.wait_for_exit(&session);
        test_host.wait_for_cleanup();
        assert_eq!(session.output(), "64\n2048\n", "{containment}");
        let controller = "the tree has no cgroup with this controller";
        let unenforced = session.shortcomings.iter().filter(|sentence| sentence.contains(controller)).count();
        let by_address_space =
            session.shortcomings.iter().any(|sentence| sentence.contains("each process's address space"));
        // A cgroup can have a controller for each limit. The others can't enforce all limits, and say so.
        if containment != Containment::Cgroup {
            assert!(by_address_space && unenforced >= 1, "{containment}: {:?}", session.shortcomings);
        }
    }
}

#[test]
fn a_failed_start_is_reported_with_place_fault_and_cure() {
    let mut test_host = strongest_host();
    let mut check = |entry: PolicyEntry, wanted: &str| assert_eq!(test_host.spawn_failure(entry), wanted);
    check(
        entry(process(&["no-such-game"])),
        "entry `game`: program `no-such-game` not found in /usr/local/bin:/usr/bin:/bin:/usr/local/games:\
         /usr/games:/snap/bin; install it, or give its absolute path",
    );
    check(
        entry(process(&["./game"])),
        "entry `game`: `./game` is not an absolute path; write the whole path, such as \"/home/anna/game/start\"",
    );
    check(
        entry(process(&["/etc/passwd"])),
        "entry `game`: could not execute the program for `/etc/passwd`: Permission denied (os error 13); check \
         that the program and its folder exist and are open to the user it runs as",
    );
    check(entry(process(&[])), "entry `game`: the command is empty; name a program");
    let nul =
        EntryKind::Process { argv: vec!["echo".into(), "a\0b".into()], env: BTreeMap::new(), cwd: None };
    check(entry(nul), "entry `game`: an argument contains a NUL character; correct the entry");
    let lost = EntryKind::Process {
        argv: vec!["true".into()],
        env: BTreeMap::new(),
        cwd: Some("/nowhere".to_owned()),
    };
    check(
        entry(lost),
        "entry `game`: could not enter the working directory for `/usr/bin/true`: No such file or directory \
         (os error 2); check that the program and its folder exist and are open to the user it runs as",
    );
    let none = ResourceLimits { memory: Some(0), ..ResourceLimits::default() };
    check(
        with_limits(none, entry(process(&["true"]))),
        "entry `game`: nothing can run with `memory` limited to zero; correct the entry",
    );
}

/// A program whose handle can't be recorded doesn't run.
#[test]
fn without_its_state_folder_nothing_is_started() {
    let mut test_host = strongest_host();
    let proof = test_host.folder.path().join("it-ran");
    std::fs::remove_dir_all(test_host.state().join("sessions")).unwrap();
    let failure = test_host.spawn_failure(script(&format!("touch {}", proof.display())));
    assert!(failure.contains("could not store the record of the tree"), "{failure}");
    assert!(failure.contains("check that the data folder is writable"), "{failure}");
    assert!(!proof.exists());
}

/// S6.3: the handle of the session is gone, and no zombie is left.
#[test]
fn nothing_is_left_of_a_session() {
    for containment in containments() {
        let mut test_host = TestHost::new(containment);
        let session = test_host.start(entry(process(&["sleep", "600"])));
        assert_eq!(test_host.host.recorded_sessions(), std::slice::from_ref(&session.session_id));
        test_host.stop(&session, std::time::Duration::ZERO);
        test_host.wait_for_cleanup();
        let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id()));
        assert_eq!(children.unwrap_or_default(), "", "{containment}");
    }
}

#[test]
fn only_the_newest_logs_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("state/logs");
    std::fs::create_dir_all(&logs).unwrap();
    for number in 0..250 {
        std::fs::write(logs.join(format!("session-{number:032x}.log")), "").unwrap();
    }
    std::fs::write(logs.join("keep.txt"), "").unwrap();
    let mut test_host = TestHost::with_options(|options| options.state_folder = folder.path().join("state"));
    let count = || std::fs::read_dir(&logs).unwrap().count();
    wait_until("the removal of old logs", || count() == 201);
    let session = test_host.start(entry(process(&["true"])));
    test_host.wait_for_exit(&session);
    test_host.wait_for_cleanup();
    assert!(session.output.exists());
    wait_until("the removal of old logs", || count() == 201);
}

/// S5.1, S13.3.
#[test]
fn limitations_of_the_host_are_reported() {
    for containment in containments() {
        let test_host = TestHost::with_options(|options| {
            options.containment = Some(containment);
            options.search_path = "/nowhere".into();
        });
        let capabilities = test_host.host.capabilities();
        assert_eq!(capabilities.can_group_process_tree, containment != Containment::ProcessGroup);
        // S6.2.
        assert_eq!(capabilities.containment.as_deref(), Some(containment.code()));
        assert!(capabilities.can_kill_forcefully && !capabilities.can_observe_window_ready);
        let limitations = test_host.host.limitations().join("\n");
        let says = |text: &str| limitations.contains(text);
        assert_eq!(says("instead of a cgroup v2"), containment != Containment::Cgroup, "{limitations}");
        assert_eq!(says("can deliberately escape from a"), containment.is_escapable(), "{limitations}");
        assert!(
            says("`mpv` is not installed") && says("`qemu-system-x86_64` is not installed"),
            "{limitations}"
        );
    }
}

/// S6.5: no containment can hold a program that runs as root.
#[test]
fn root_requires_a_user_for_each_entry_unless_it_is_allowed_to_run_as_root() {
    let is_root = rustix::process::geteuid().is_root();
    for as_root in [RunAsRoot::Never, RunAsRoot::WithoutAccount] {
        let test_host = TestHost::with_options(|options| options.as_root = as_root);
        let is_strict = as_root == RunAsRoot::Never;
        assert_eq!(test_host.host.capabilities().needs_account, is_root && is_strict);
        let limitations = test_host.host.limitations().join("\n");
        assert_eq!(limitations.contains("Run the daemon as root, and set `user`"), !is_root, "{limitations}");
        assert_eq!(limitations.contains("without `--allow-root`"), is_root && !is_strict, "{limitations}");
    }
}
