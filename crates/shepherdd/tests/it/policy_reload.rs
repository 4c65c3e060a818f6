//! Policy reloads (S7.3): a policy applies as a whole or not at all, and a running session keeps its end.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid, kill_process};
use shepherd_api::{AuditKind, Command, CommandReply, EndReason, ErrorCode, EventKind};
use shepherd_ipc::CallError;

use crate::harness::{ShepherddFixture, assert_stays, policy, sleep_entry, wait_until};

const POLICY: &str = policy!("reload_on_change = true\n", sleep_entry!("nap", r#"max_run = "3s""#));

const OTHER: &str = policy!("reload_on_change = true\n", sleep_entry!("rest", ""));

/// A file that isn't TOML, and an invalid policy.
const GARBAGE: [&str; 2] =
    ["\u{0}\u{1}[[[", "config_version = 1\n[[entries]]\nid = \"nap\"\nargv = []\nalways = true\n"];

fn rejections(fixture: &ShepherddFixture, by: &str) -> usize {
    let records = fixture.audit();
    let is_meant =
        |what: &AuditKind| matches!(what, AuditKind::PolicyRejected { faults } if !faults.is_empty());
    records.iter().filter(|record| record.line.actor.starts_with(by) && is_meant(&record.line.what)).count()
}

fn reload(fixture: &ShepherddFixture) -> Result<usize, shepherd_api::ApiError> {
    match fixture.call(Command::ReloadConfig {}) {
        Ok(CommandReply::PolicyApplied { entry_count }) => Ok(entry_count),
        Err(CallError::Refused(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn heavy_an_invalid_policy_file_is_reported_and_changes_nothing() {
    let fixture = ShepherddFixture::running(POLICY);
    let launched = Instant::now();
    fixture.launch("nap");
    fixture.wait_for_program();
    assert_eq!(fixture.health().rejected_policy, None);
    let mut since = None;
    for (garbage, line) in GARBAGE.into_iter().zip([1, 4]) {
        let (noticed, hung_up) = (rejections(&fixture, "file change"), rejections(&fixture, "SIGHUP"));
        fixture.write_policy(garbage);
        wait_until("the change is noticed", || rejections(&fixture, "file change") > noticed);
        kill_process(fixture.daemon_pid(), Signal::HUP).unwrap();
        wait_until("the signal is heard", || rejections(&fixture, "SIGHUP") > hung_up);
        let error = reload(&fixture).unwrap_err();
        assert_eq!(error.code, ErrorCode::PolicyRejected);
        assert!(error.faults.iter().any(|fault| fault.contains("policy.toml:")), "{:?}", error.faults);
        let health = fixture.health();
        assert!(health.ready, "{health:?}");
        let rejected = health.rejected_policy.unwrap();
        let sentence = format!("{} has 1 mistake, in line {line}", fixture.policy_path().display());
        assert_eq!(rejected.sentence, sentence);
        assert_eq!(
            (rejected.path.as_ref(), rejected.fault_count),
            (fixture.policy_path().to_str().unwrap(), 1)
        );
        let first = *since.get_or_insert(rejected.since);
        assert_eq!(rejected.since, first, "since the first mistake");
        assert_eq!(fixture.state().entry_count, 1);
    }
    assert!(fixture.state().session.is_some(), "all this took {:?}", launched.elapsed());
    fixture.wait_until_idle();
    assert!(launched.elapsed() >= Duration::from_secs(3), "never early: {:?}", launched.elapsed());
    assert_eq!(fixture.recorded_ends(), [EndReason::Expired]);
    // The old policy applies until there is a valid one.
    fixture.launch("nap");
    fixture.write_policy(OTHER);
    wait_until("the new policy applies", || fixture.health().rejected_policy.is_none());
    assert_eq!(fixture.refusal("nap").reasons[0].code(), "unknown-entry");
}

/// S7.3, S13.2: a mistake in the file must not cost the family its rules when the computer restarts.
#[test]
fn the_last_valid_policy_still_applies_after_a_restart() {
    let mut fixture = ShepherddFixture::running(&POLICY.replace("reload_on_change = true", ""));
    fixture.write_policy(OTHER);
    assert_eq!(reload(&fixture).unwrap(), 1);
    let mut since = None;
    for (before, damage) in [Some(GARBAGE[1]), None].into_iter().enumerate() {
        match damage {
            Some(text) => fixture.write_policy(text),
            None => std::fs::remove_file(fixture.policy_path()).unwrap(),
        }
        fixture.kill();
        let restarted = jiff::Timestamp::now();
        fixture.start();
        let health = fixture.health();
        assert!(health.ready, "{health:?}");
        let rejected = health.rejected_policy.unwrap();
        assert!(rejected.since < restarted, "{rejected:?}");
        assert_eq!(*since.get_or_insert(rejected.since), rejected.since, "since the first mistake");
        assert_eq!(fixture.refusal("nap").reasons[0].code(), "unknown-entry");
        let CommandReply::Policy { text, .. } = fixture.call(Command::GetPolicy {}).unwrap() else {
            panic!("another reply")
        };
        assert_eq!(text, Some(fixture.fill_token(OTHER)));
        // The record may come a moment after the daemon is ready, and the next kill would lose it.
        wait_until("the rejection is recorded", || rejections(&fixture, "shepherdd") == before + 1);
    }
    // New rules are the wrong cure for a family whose rules are in force.
    let error = reload(&fixture).unwrap_err();
    assert!(error.sentence.ends_with("the old rules still apply"), "{error:?}");
    assert!(!error.sentence.contains("policy init"), "{error:?}");
    // The rules in force can be written back into the file.
    let text = fixture.fill_token(OTHER);
    fixture.call(Command::SetPolicy { text: text.clone() }).unwrap();
    assert_eq!(std::fs::read_to_string(fixture.policy_path()).unwrap(), text);
    assert_eq!(fixture.health().rejected_policy, None);
    fixture.launch("rest");
}

/// S7.3: the copy of the last valid policy belongs to its file.
#[test]
fn rules_of_another_policy_file_never_apply() {
    let mut fixture = ShepherddFixture::running(POLICY);
    let first = fixture.policy_path();
    fixture.kill();
    fixture = fixture.with_policy_file("other.toml");
    fixture.write_policy(GARBAGE[1]);
    fixture.start();
    assert!(fixture.failed_check("policy").is_some_and(|why| why.starts_with("every launch is denied: ")));
    assert_eq!(fixture.refusal("nap").reasons[0].code(), "unknown-entry");
    let reason = format!("it belongs to {}", first.display());
    let limitations = fixture.health().limitations;
    assert!(
        limitations.iter().any(|text| text.contains(&reason) && text.ends_with("`sudo shepherd reload`")),
        "{limitations:?}"
    );
}

#[test]
fn a_copy_of_the_rules_that_can_not_be_kept_is_a_limitation() {
    let fixture = ShepherddFixture::running(POLICY);
    let limitation = || {
        let limitations = fixture.health().limitations;
        limitations.into_iter().find(|text| text.contains("the copy of the rules"))
    };
    assert_eq!(limitation(), None);
    let copy = fixture.data().join("last-valid-policy.toml");
    std::fs::remove_file(&copy).unwrap();
    std::fs::create_dir(&copy).unwrap();
    reload(&fixture).unwrap();
    assert!(limitation().is_some_and(|text| text.contains("directory")), "{:?}", limitation());
    std::fs::remove_dir(&copy).unwrap();
    reload(&fixture).unwrap();
    assert_eq!(limitation(), None);
}

#[test]
fn a_first_start_with_a_bad_policy_is_locked_until_there_is_a_good_one() {
    for bad in [Some(GARBAGE[1]), None] {
        let mut fixture = ShepherddFixture::new(bad.unwrap_or_default());
        if bad.is_none() {
            std::fs::remove_file(fixture.policy_path()).unwrap();
        }
        fixture.start();
        let complaint = fixture.failed_check("policy").unwrap();
        assert!(complaint.starts_with("every launch is denied: "), "{complaint}");
        assert!(complaint.contains("policy.toml"), "{complaint}");
        assert_eq!(fixture.refusal("nap").reasons[0].code(), "unknown-entry");
        assert_eq!(rejections(&fixture, "shepherdd"), 1);
        // A daemon without a policy watches the file.
        fixture.write_policy(POLICY);
        wait_until("the new policy applies", || fixture.failed_check("policy").is_none());
        assert!(fixture.health().ready);
        fixture.launch("nap");
        fixture.wait_for_program();
    }
}

#[test]
fn an_entry_that_is_gone_runs_to_its_end_and_never_again() {
    let fixture = ShepherddFixture::running(&POLICY.replace("reload_on_change = true", ""));
    let mut listener = fixture.subscriber();
    let session = fixture.launch("nap");
    fixture.wait_for_program();
    fixture.write_policy(OTHER);
    assert_stays("the old policy applies until a reload is requested", Duration::from_millis(300), || {
        fixture.refusal("rest").reasons.iter().any(|reason| reason.code() == "unknown-entry")
    });
    assert_eq!(reload(&fixture).unwrap(), 1);
    let reported = listener.wait_for(|event| match event {
        EventKind::PolicyReloaded { entry_count, .. } => Some(*entry_count),
        _ => None,
    });
    assert_eq!(reported, 1);
    assert_eq!(fixture.state().session.map(|running| running.session_id), Some(session.session_id));
    fixture.wait_until_idle();
    assert_eq!(fixture.refusal("nap").reasons[0].code(), "unknown-entry");
    fixture.launch("rest");
}

#[test]
fn a_sent_policy_replaces_the_file_only_if_it_is_valid() {
    let mut fixture = ShepherddFixture::running(POLICY);
    let file = || std::fs::read_to_string(fixture.policy_path()).unwrap();
    let before = file();
    let set = |text: &str| fixture.call(Command::SetPolicy { text: fixture.fill_token(text) });
    match set(GARBAGE[1]) {
        Err(CallError::Refused(error)) => {
            assert_eq!(error.code, ErrorCode::PolicyRejected);
            assert!(error.faults.iter().any(|fault| fault.contains("argv")), "{:?}", error.faults);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(file(), before);
    assert_eq!(fixture.health().rejected_policy, None, "the file has no mistake");
    assert_eq!(set(OTHER).unwrap(), CommandReply::PolicyApplied { entry_count: 1 });
    assert_eq!(file(), fixture.fill_token(OTHER));
    let entries = std::fs::read_dir(fixture.folder()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["data", "log", "policy.toml", "socket", "socket.lock"],
        "nothing half-written is left"
    );
    fixture.launch("rest");
    fixture.wait_for_program();
    // The policy that was set still applies after a restart.
    fixture.kill();
    fixture.start();
    assert_eq!(fixture.failed_check("policy"), None);
    assert_eq!(fixture.state().session.map(|session| session.entry_id.to_string()), Some("rest".to_owned()));
}

/// Starts a daemon that is delayed whenever it opens this file.
fn with_slow_open(fixture: ShepherddFixture, file: &std::path::Path, delay: Duration) -> ShepherddFixture {
    let inject = format!("inject=openat:delay_exit={}", delay.as_micros());
    let strace = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat", "-e", &inject];
    let mut fixture = fixture.with_wrapper(&[&strace[..], &["-P", file.to_str().unwrap()]].concat());
    fixture.start();
    fixture
}

/// Starts a daemon that takes a while to read its policy.
fn fixture_with_slow_policy_reads(policy: &str) -> ShepherddFixture {
    let fixture = ShepherddFixture::new(policy);
    let path = fixture.policy_path();
    with_slow_open(fixture, &path, Duration::from_millis(1_500))
}

/// S13.3b: the loop reads no files for a policy.
#[test]
fn clients_are_served_while_the_accounts_of_a_new_policy_are_read() {
    let fixture = ShepherddFixture::new(&POLICY.replace("reload_on_change = true", ""));
    let fixture = with_slow_open(fixture, "/etc/passwd".as_ref(), Duration::from_secs(3));
    let mut slow = fixture.client();
    let mut quick = fixture.client();
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || slow.call(Command::ReloadConfig {}));
        wait_until("the thread that reads files", || reading_threads(&fixture) == 1);
        quick.call(Command::GetState {}).unwrap();
        assert_eq!(reading_threads(&fixture), 1, "the answer came only after the file was read");
        assert_eq!(slow.join().unwrap().unwrap(), CommandReply::PolicyApplied { entry_count: 1 });
    });
}

fn reading_threads(fixture: &ShepherddFixture) -> usize {
    let tasks = format!("/proc/{}/task", fixture.daemon_pid().as_raw_nonzero());
    let names = std::fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path().join("comm"));
    names.filter(|name| std::fs::read_to_string(name).is_ok_and(|name| name == "files\n")).count()
}

/// S7.3: the policy that was requested last applies in the end.
#[test]
fn an_older_policy_never_overtakes_a_newer_one() {
    let fixture = fixture_with_slow_policy_reads(&POLICY.replace("reload_on_change = true", ""));
    let newer = fixture.fill_token(&OTHER.replace("reload_on_change = true", ""));
    std::thread::scope(|scope| {
        let slow = [fixture.client(), fixture.client()]
            .map(|mut client| scope.spawn(move || client.call(Command::ReloadConfig {})));
        wait_until("the thread that reads files", || reading_threads(&fixture) == 1);
        assert!(!slow[0].is_finished(), "there is nothing to overtake");
        let quick = fixture.call(Command::SetPolicy { text: newer.clone() }).unwrap();
        assert_eq!(quick, CommandReply::PolicyApplied { entry_count: 1 });
        for slow in slow {
            assert_eq!(slow.join().unwrap().unwrap(), CommandReply::PolicyApplied { entry_count: 1 });
        }
    });
    assert_eq!(std::fs::read_to_string(fixture.policy_path()).unwrap(), newer);
    assert_eq!(fixture.refusal("nap").reasons[0].code(), "unknown-entry", "the old one is in force");
}

/// A read from a pipe would wait for a writer.
#[test]
fn a_pipe_is_rejected_as_a_policy_without_waiting() {
    let mut fixture = ShepherddFixture::new(POLICY);
    let pipe = fixture.policy_path();
    let put_pipe = || {
        std::fs::remove_file(&pipe).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
    };
    put_pipe();
    fixture.start();
    let complaint = fixture.failed_check("policy").unwrap();
    assert!(complaint.contains("not a regular file"), "{complaint}");
    std::fs::remove_file(fixture.policy_path()).unwrap();
    fixture.write_policy(POLICY);
    assert_eq!(reload(&fixture).unwrap(), 1);
    put_pipe();
    let error = reload(&fixture).unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyRejected);
    assert_eq!(fixture.state().entry_count, 1);
}

/// A daemon that runs as root reports a policy file that other users can change.
#[test]
fn a_policy_that_others_can_change_is_a_limitation_of_a_daemon_that_is_root() {
    let fixture = ShepherddFixture::running(POLICY);
    let limitation = || {
        let limitations = fixture.health().limitations;
        limitations.into_iter().find(|text| text.contains("can change the policy"))
    };
    assert_eq!(limitation(), None);
    std::fs::set_permissions(fixture.policy_path(), std::fs::Permissions::from_mode(0o666)).unwrap();
    fixture.call(Command::ReloadConfig {}).unwrap();
    if !geteuid().is_root() {
        assert_eq!(limitation(), None, "nobody expects that of it");
        return;
    }
    let path = fixture.policy_path();
    let expected = format!("{} has mode 0666, so other users", path.display());
    assert!(limitation().is_some_and(|text| text.starts_with(&expected)), "{:?}", limitation());
    wait_until("the error is logged", || fixture.log().contains(&expected));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&path, Some(65_001), None).unwrap();
    fixture.call(Command::ReloadConfig {}).unwrap();
    let expected = format!("{} belongs to user 65001, who", path.display());
    assert!(limitation().is_some_and(|text| text.starts_with(&expected)), "{:?}", limitation());
}

#[test]
fn messages_before_the_first_policy_name_no_previous_one() {
    let fixture = ShepherddFixture::running(GARBAGE[1]);
    wait_until("the fault is logged", || fixture.log().contains("policy.toml has 1 mistake"));
    assert!(!fixture.log().contains("still apply"), "{}", fixture.log());
    let Err(CallError::Refused(error)) = fixture.call(Command::ReloadConfig {}) else { panic!("valid") };
    assert!(error.sentence.ends_with("there are no old rules, so every launch is denied"), "{error:?}");
    fixture.write_policy(POLICY);
    fixture.call(Command::ReloadConfig {}).unwrap();
    fixture.write_policy(GARBAGE[1]);
    let Err(CallError::Refused(error)) = fixture.call(Command::ReloadConfig {}) else { panic!("valid") };
    assert!(error.sentence.ends_with("the old rules still apply"), "{error:?}");
}
