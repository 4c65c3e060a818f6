//! Another policy while the daemon runs (S7.3): whole or not at all, and what runs keeps its end.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid, kill_process};
use shepherd_api::{AuditKind, Command, CommandReply, EndReason, ErrorCode, EventKind};
use shepherd_ipc::CallError;

use crate::harness::{ShepherddFixture, wait_until};

const POLICY: &str = r#"
config_version = 1
reload_on_change = true

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "3s"
"#;

const OTHER: &str = r#"
config_version = 1
reload_on_change = true

[[entries]]
id = "rest"
argv = ["sleep", "TOKEN"]
always = true
"#;

/// Not even TOML, and a policy that nobody can have meant.
const GARBAGE: [&str; 2] =
    ["\u{0}\u{1}[[[", "config_version = 1\n[[entries]]\nid = \"nap\"\nargv = []\nalways = true\n"];

fn rejections(household: &ShepherddFixture, by: &str) -> usize {
    let records = household.audit();
    let is_meant =
        |what: &AuditKind| matches!(what, AuditKind::PolicyRejected { faults } if !faults.is_empty());
    records.iter().filter(|record| record.line.actor.starts_with(by) && is_meant(&record.line.what)).count()
}

fn reload(household: &ShepherddFixture) -> Result<usize, shepherd_api::ApiError> {
    match household.call(Command::ReloadConfig {}) {
        Ok(CommandReply::PolicyApplied { entry_count }) => Ok(entry_count),
        Err(CallError::Refused(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn garbage_in_place_of_the_policy_is_told_and_changes_nothing() {
    let household = ShepherddFixture::running(POLICY);
    let launched = Instant::now();
    household.launch("nap");
    household.wait_for_program();
    assert_eq!(household.failed_check("policy"), None);
    for garbage in GARBAGE {
        let (noticed, hung_up) = (rejections(&household, "file change"), rejections(&household, "SIGHUP"));
        household.write_policy(garbage);
        wait_until("the change is noticed", || rejections(&household, "file change") > noticed);
        kill_process(household.daemon_pid(), Signal::HUP).unwrap();
        wait_until("the signal is heard", || rejections(&household, "SIGHUP") > hung_up);
        let error = reload(&household).unwrap_err();
        assert_eq!(error.code, ErrorCode::PolicyRejected);
        assert!(error.faults.iter().any(|fault| fault.contains("policy.toml:")), "{:?}", error.faults);
        let complaint = household.failed_check("policy").unwrap();
        assert!(complaint.starts_with("the previous policy still applies: "), "{complaint}");
        assert_eq!(household.state().entry_count, 1);
    }
    assert!(household.state().session.is_some(), "all this took {:?}", launched.elapsed());
    household.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(3), "never early: {:?}", launched.elapsed());
    assert_eq!(
        household.count_audit_records(|what| matches!(
            what,
            AuditKind::SessionEnded { end: EndReason::Expired, .. }
        )),
        1
    );
    // By the old rules things go on, until there are new ones.
    household.launch("nap");
    household.write_policy(OTHER);
    wait_until("the new policy applies", || household.failed_check("policy").is_none());
    assert_eq!(household.refusal("nap").reasons[0].code(), "unknown-entry");
}

#[test]
fn a_first_start_with_a_bad_policy_is_locked_until_there_is_a_good_one() {
    for bad in [Some(GARBAGE[1]), None] {
        let mut household = ShepherddFixture::new(bad.unwrap_or_default());
        if bad.is_none() {
            std::fs::remove_file(household.policy_path()).unwrap();
        }
        household.start();
        let complaint = household.failed_check("policy").unwrap();
        assert!(complaint.starts_with("every launch is denied: "), "{complaint}");
        assert!(complaint.contains("policy.toml"), "{complaint}");
        assert_eq!(household.refusal("nap").reasons[0].code(), "unknown-entry");
        assert_eq!(rejections(&household, "shepherdd"), 1);
        // Whoever has no policy waits for one.
        household.write_policy(POLICY);
        wait_until("the new policy applies", || household.failed_check("policy").is_none());
        assert!(household.health().ready);
        household.launch("nap");
        household.wait_for_program();
    }
}

#[test]
fn an_entry_that_is_gone_runs_to_its_end_and_never_again() {
    let household = ShepherddFixture::running(&POLICY.replace("reload_on_change = true", ""));
    let mut listener = household.subscriber();
    let session = household.launch("nap");
    household.wait_for_program();
    household.write_policy(OTHER);
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        household.refusal("rest").reasons.iter().any(|reason| reason.code() == "unknown-entry"),
        "nobody asked for it"
    );
    assert_eq!(reload(&household).unwrap(), 1);
    let told = listener.wait_for(|event| match event {
        EventKind::PolicyReloaded { entry_count } => Some(*entry_count),
        _ => None,
    });
    assert_eq!(told, 1);
    assert_eq!(household.state().session.map(|running| running.session_id), Some(session.session_id));
    household.wait_until_idle();
    assert_eq!(household.refusal("nap").reasons[0].code(), "unknown-entry");
    household.launch("rest");
}

#[test]
fn a_policy_that_is_sent_replaces_the_file_or_leaves_it() {
    let mut household = ShepherddFixture::running(POLICY);
    let file = || std::fs::read_to_string(household.policy_path()).unwrap();
    let before = file();
    let set = |text: &str| household.call(Command::SetPolicy { text: household.fill_token(text) });
    match set(GARBAGE[1]) {
        Err(CallError::Refused(error)) => {
            assert_eq!(error.code, ErrorCode::PolicyRejected);
            assert!(error.faults.iter().any(|fault| fault.contains("argv")), "{:?}", error.faults);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(file(), before);
    assert_eq!(set(OTHER).unwrap(), CommandReply::PolicyApplied { entry_count: 1 });
    assert_eq!(file(), household.fill_token(OTHER));
    let entries = std::fs::read_dir(household.folder()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["data", "log", "policy.toml", "socket", "socket.lock"],
        "nothing half-written is left"
    );
    household.launch("rest");
    household.wait_for_program();
    // What was sent and applied is what is there after a restart.
    household.kill();
    household.start();
    assert_eq!(household.failed_check("policy"), None);
    assert_eq!(
        household.state().session.map(|session| session.entry_id.to_string()),
        Some("rest".to_owned())
    );
}

/// A household that waits for so long when it has opened a certain file.
fn with_slow_open(household: ShepherddFixture, file: &std::path::Path, delay: Duration) -> ShepherddFixture {
    let inject = format!("inject=openat:delay_exit={}", delay.as_micros());
    let strace = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat", "-e", &inject];
    let mut household = household.with_wrapper(&[&strace[..], &["-P", file.to_str().unwrap()]].concat());
    household.start();
    household
}

/// A household whose policy takes a while to be read after its file was opened.
fn fixture_with_slow_policy_reads(policy: &str) -> ShepherddFixture {
    let household = ShepherddFixture::new(policy);
    let path = household.policy_path();
    with_slow_open(household, &path, Duration::from_millis(1_500))
}

// S13.3b: no file that has to do with a policy is read by the loop.
#[test]
fn nobody_waits_while_the_accounts_of_a_new_policy_are_looked_up() {
    let household = ShepherddFixture::new(&POLICY.replace("reload_on_change = true", ""));
    let household = with_slow_open(household, "/etc/passwd".as_ref(), Duration::from_secs(3));
    let mut slow = household.client();
    let mut quick = household.client();
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || slow.call(Command::ReloadConfig {}));
        std::thread::sleep(Duration::from_millis(500));
        let asked = Instant::now();
        quick.call(Command::GetState {}).unwrap();
        let took = asked.elapsed();
        assert!(!slow.is_finished(), "there was nothing to wait for");
        assert!(took < Duration::from_millis(1_500), "{took:?}");
        assert_eq!(slow.join().unwrap().unwrap(), CommandReply::PolicyApplied { entry_count: 1 });
    });
}

fn reading_threads(household: &ShepherddFixture) -> usize {
    let tasks = format!("/proc/{}/task", household.daemon_pid().as_raw_nonzero());
    let names = std::fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path().join("comm"));
    names.filter(|name| std::fs::read_to_string(name).is_ok_and(|name| name == "files\n")).count()
}

// S7.3: of two policies the one that was asked for last applies in the end.
#[test]
fn an_older_policy_never_overtakes_a_newer_one() {
    let household = fixture_with_slow_policy_reads(&POLICY.replace("reload_on_change = true", ""));
    let newer = household.fill_token(&OTHER.replace("reload_on_change = true", ""));
    std::thread::scope(|scope| {
        let slow = [household.client(), household.client()]
            .map(|mut client| scope.spawn(move || client.call(Command::ReloadConfig {})));
        std::thread::sleep(Duration::from_millis(500));
        assert!(!slow[0].is_finished(), "there is nothing to overtake");
        assert_eq!(reading_threads(&household), 1);
        let quick = household.call(Command::SetPolicy { text: newer.clone() }).unwrap();
        assert_eq!(quick, CommandReply::PolicyApplied { entry_count: 1 });
        for slow in slow {
            assert_eq!(slow.join().unwrap().unwrap(), CommandReply::PolicyApplied { entry_count: 1 });
        }
    });
    assert_eq!(std::fs::read_to_string(household.policy_path()).unwrap(), newer);
    assert_eq!(household.refusal("nap").reasons[0].code(), "unknown-entry", "the old one is in force");
}

/// Whoever reads a pipe waits for somebody who writes to it.
#[test]
fn a_pipe_is_no_policy_and_nobody_waits_for_it() {
    let mut household = ShepherddFixture::new(POLICY);
    let pipe = household.policy_path();
    let put_pipe = || {
        std::fs::remove_file(&pipe).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
    };
    put_pipe();
    household.start();
    let complaint = household.failed_check("policy").unwrap();
    assert!(complaint.contains("not a regular file"), "{complaint}");
    std::fs::remove_file(household.policy_path()).unwrap();
    household.write_policy(POLICY);
    assert_eq!(reload(&household).unwrap(), 1);
    put_pipe();
    let error = reload(&household).unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyRejected);
    assert_eq!(household.state().entry_count, 1);
}

/// A daemon that is root and obeys a file of the child's says so wherever somebody looks.
#[test]
fn a_policy_that_others_can_change_is_a_limitation_of_a_daemon_that_is_root() {
    let household = ShepherddFixture::running(POLICY);
    let limitation = || {
        let limitations = household.health().limitations;
        limitations.into_iter().find(|text| text.contains("can change the policy"))
    };
    assert_eq!(limitation(), None);
    std::fs::set_permissions(household.policy_path(), std::fs::Permissions::from_mode(0o666)).unwrap();
    household.call(Command::ReloadConfig {}).unwrap();
    if !geteuid().is_root() {
        assert_eq!(limitation(), None, "nobody expects that of it");
        return;
    }
    let path = household.policy_path();
    let expected = format!("{} has mode 0666, so other users", path.display());
    assert!(limitation().is_some_and(|text| text.starts_with(&expected)), "{:?}", limitation());
    wait_until("it is logged", || household.log().contains(&expected));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&path, Some(65_001), None).unwrap();
    household.call(Command::ReloadConfig {}).unwrap();
    let expected = format!("{} belongs to user 65001, who", path.display());
    assert!(limitation().is_some_and(|text| text.starts_with(&expected)), "{:?}", limitation());
}

#[test]
fn nobody_is_told_of_a_policy_before_the_first() {
    let household = ShepherddFixture::running(GARBAGE[1]);
    wait_until("the fault is logged", || household.log().contains("is not a valid policy"));
    assert!(!household.log().contains("stays in force"), "{}", household.log());
    let Err(CallError::Refused(error)) = household.call(Command::ReloadConfig {}) else { panic!("valid") };
    assert!(error.sentence.ends_with("there is no previous policy, so every launch is denied"), "{error:?}");
    household.write_policy(POLICY);
    household.call(Command::ReloadConfig {}).unwrap();
    household.write_policy(GARBAGE[1]);
    let Err(CallError::Refused(error)) = household.call(Command::ReloadConfig {}) else { panic!("valid") };
    assert!(error.sentence.ends_with("the previous policy still applies"), "{error:?}");
}
