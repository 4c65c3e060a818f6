//! The daemon's own log (S13.1): it says what an operator wants to know, and nobody who does not read it can stop or
//! end the daemon (S13.3b, S13.4).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use shepherd_api::{EndReason, EventKind};

use crate::harness::{ShepherddFixture, wait_until};

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
max_run = "2s"
warnings = []
"#;

/// Puts so much into a pipe that nothing fits any more, without a word to whoever else writes to it.
fn fill(pipe: &OwnedFd) {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    let mut again = File::options().write(true).custom_flags(flags).open(path).unwrap();
    for size in [4_096, 1] {
        while again.write(&vec![b'x'; size]).is_ok() {}
    }
}

/// Launches, and waits until the time is up.
fn check_session_ends_on_time(household: &ShepherddFixture) {
    let mut listener = household.subscriber();
    let launched = Instant::now();
    household.launch("nap");
    let end = listener.wait_for(|event| match event {
        EventKind::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, EndReason::Expired);
    assert!(launched.elapsed() >= Duration::from_secs(2), "never early");
    assert!(launched.elapsed() < Duration::from_secs(10), "on time: {:?}", launched.elapsed());
    household.wait_until_idle();
}

#[test]
fn a_log_that_nobody_reads_delays_nothing() {
    let mut household = ShepherddFixture::new(POLICY).with_variable("SHEPHERD_LOG", "trace");
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    household.start_logging_to(writer.try_clone().unwrap().into());
    fill(&writer);
    check_session_ends_on_time(&household);
    assert!(household.end().success(), "nor does it keep the daemon from ending");
    drop(reader);
}

#[test]
fn what_was_not_logged_is_counted() {
    let mut household = ShepherddFixture::new(POLICY);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    household.start_logging_to(writer.try_clone().unwrap().into());
    fill(&writer);
    // Each says more than a kilobyte: its faults.
    let faulty = format!("config_version = 1\n{}", "[[entries]]\nid = \"x\"\nfoo = 1\n".repeat(400));
    household.write_policy(&faulty);
    for _ in 0..40 {
        let _ = household.call(shepherd_api::Command::ReloadConfig {});
    }
    let lost = || {
        let text = household.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix("shepherd_log_lines_lost_total "));
        line.unwrap_or_else(|| panic!("{text}")).parse::<u64>().unwrap()
    };
    wait_until("lines are lost", || lost() > 0);
    drop(writer);
    // And whoever reads at last is told.
    let mut reader = File::from(reader);
    let mut text = String::new();
    let mut piece = [0; 65_536];
    wait_until("the loss is told", || {
        let count = reader.read(&mut piece).unwrap();
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
        text.contains("log lines were dropped")
    });
}

/// A terminal with a daemon in it.
fn terminal() -> (OwnedFd, File) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let terminal = File::options().read(true).write(true).custom_flags(flags).open(name).unwrap();
    (controller, terminal)
}

#[test]
fn a_daemon_outlives_the_terminal_it_was_started_in() {
    let mut household = ShepherddFixture::new(POLICY);
    let (controller, terminal) = terminal();
    household.start_logging_to(terminal.into());
    drop(controller);
    // What the kernel sends then, and what the daemon takes for a wish to read the policy again.
    kill_process(household.daemon_pid(), Signal::HUP).unwrap();
    check_session_ends_on_time(&household);
    kill_process(household.daemon_pid(), Signal::HUP).unwrap();
    assert!(household.health().ready);
}

#[test]
fn the_log_is_json_for_programs_when_they_ask_for_it() {
    let mut household = ShepherddFixture::new(POLICY).with_variable("SHEPHERD_LOG_FORMAT", "json");
    household.start();
    let session = household.launch("nap");
    household.wait_until_idle();
    assert!(household.end().success());
    let log = household.log();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let started = lines.iter().find(|line| line["message"] == "started").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(started["level"], "info");
    assert_eq!(started["session_id"], session.session_id.to_string());
    assert!(started["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{started}");
}

#[test]
fn the_journal_is_told_how_bad_it_is() {
    let mut household = ShepherddFixture::new(POLICY);
    let path = household.folder().join("journal");
    let file = File::create(&path).unwrap();
    let metadata = file.metadata().unwrap();
    household = household.with_variable("JOURNAL_STREAM", &format!("{}:{}", metadata.dev(), metadata.ino()));
    household.start_logging_to(file.into());
    household.write_policy("nonsense");
    let log = || std::fs::read_to_string(&path).unwrap();
    wait_until("the fault is logged", || log().lines().any(|line| line.starts_with("<4>")));
    wait_until("it is ready", || log().lines().any(|line| line.starts_with("<6>") && line.contains("ready")));
    // Whoever inherited the variable of a session but writes elsewhere is no journal.
    household.kill();
    household.start();
    assert!(!household.log().contains("<6>"), "{}", household.log());
}

#[test]
fn a_setting_that_means_nothing_is_told() {
    for (variable, value) in [("SHEPHERD_LOG", "loud=very=much"), ("SHEPHERD_LOG_FORMAT", "xml")] {
        let mut household = ShepherddFixture::new(POLICY).with_variable(variable, value);
        household.start();
        wait_until(variable, || {
            household.log().lines().any(|line| line.contains(variable) && line.contains(value))
        });
    }
}
