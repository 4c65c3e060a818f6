//! The daemon's own log (S13.1). A log that is not read neither blocks nor ends the daemon (S13.3b, S13.4).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use shepherd_api::EndReason;

use crate::harness::{ShepherddFixture, policy, sleep_entry, wait_until};

const POLICY: &str = policy!(sleep_entry!(
    "nap",
    r#"max_run = "2s"
warnings = []"#
));

/// Fills a pipe through another open file description, so that the daemon's end stays blocking.
fn fill(pipe: &OwnedFd) {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    let mut again = File::options().write(true).custom_flags(flags).open(path).unwrap();
    for size in [4_096, 1] {
        while again.write(&vec![b'x'; size]).is_ok() {}
    }
}

/// Launches an entry, and checks that its session ends on time.
fn check_session_ends_on_time(fixture: &ShepherddFixture) {
    let mut listener = fixture.subscriber();
    let launched = Instant::now();
    let session = fixture.launch("nap");
    assert_eq!(listener.wait_for_end(&session.session_id), EndReason::Expired);
    assert!(launched.elapsed() >= Duration::from_secs(2), "never early");
    assert!(launched.elapsed() < Duration::from_secs(10), "on time: {:?}", launched.elapsed());
    fixture.wait_until_idle();
}

#[test]
fn heavy_a_log_that_nobody_reads_delays_nothing() {
    let mut fixture = ShepherddFixture::new(POLICY).with_variable("SHEPHERD_LOG", "trace");
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    fixture.start_logging_to(writer.try_clone().unwrap().into());
    fill(&writer);
    check_session_ends_on_time(&fixture);
    assert!(fixture.end().success(), "nor does it keep the daemon from ending");
    drop(reader);
}

#[test]
fn dropped_log_lines_are_counted() {
    let mut fixture = ShepherddFixture::new(POLICY);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    fixture.start_logging_to(writer.try_clone().unwrap().into());
    fill(&writer);
    // Each reload logs more than a kilobyte of faults.
    let faulty = format!("config_version = 1\n{}", "[[entries]]\nid = \"x\"\nfoo = 1\n".repeat(400));
    fixture.write_policy(&faulty);
    for _ in 0..40 {
        let _ = fixture.call(shepherd_api::Command::ReloadConfig {});
    }
    let lost = || {
        let text = fixture.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix("shepherd_log_lines_lost_total "));
        line.unwrap_or_else(|| panic!("{text}")).parse::<u64>().unwrap()
    };
    wait_until("lines are lost", || lost() > 0);
    drop(writer);
    // The next reader finds the number of lost lines.
    let mut reader = File::from(reader);
    let mut text = String::new();
    let mut piece = [0; 65_536];
    wait_until("the line about lost lines", || {
        let count = reader.read(&mut piece).unwrap();
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
        text.contains("log lines were dropped")
    });
}

/// Opens a pseudo-terminal.
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
fn heavy_a_daemon_outlives_the_terminal_it_was_started_in() {
    let mut fixture = ShepherddFixture::new(POLICY);
    let (controller, terminal) = terminal();
    fixture.start_logging_to(terminal.into());
    drop(controller);
    // The kernel sends SIGHUP then, which makes the daemon reload its policy.
    kill_process(fixture.daemon_pid(), Signal::HUP).unwrap();
    check_session_ends_on_time(&fixture);
    kill_process(fixture.daemon_pid(), Signal::HUP).unwrap();
    assert!(fixture.health().ready);
}

#[test]
fn the_log_is_json_for_programs_when_they_ask_for_it() {
    let mut fixture = ShepherddFixture::new(POLICY).with_variable("SHEPHERD_LOG_FORMAT", "json");
    fixture.start();
    let session = fixture.launch("nap");
    fixture.wait_until_idle();
    assert!(fixture.end().success());
    let log = fixture.log();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let started = lines.iter().find(|line| line["message"] == "started").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(started["level"], "info");
    assert_eq!(started["session_id"], session.session_id.to_string());
    assert!(started["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{started}");
}

#[test]
fn lines_for_the_journal_have_a_priority() {
    let mut fixture = ShepherddFixture::new(POLICY);
    let path = fixture.folder().join("journal");
    let file = File::create(&path).unwrap();
    let metadata = file.metadata().unwrap();
    fixture = fixture.with_variable("JOURNAL_STREAM", &format!("{}:{}", metadata.dev(), metadata.ino()));
    fixture.start_logging_to(file.into());
    fixture.write_policy("nonsense");
    let log = || std::fs::read_to_string(&path).unwrap();
    wait_until("the fault is logged", || log().lines().any(|line| line.starts_with("<4>")));
    wait_until("the daemon is ready", || {
        log().lines().any(|line| line.starts_with("<6>") && line.contains("ready"))
    });
    // A daemon that inherited the variable but logs elsewhere doesn't write for the journal.
    fixture.kill();
    fixture.start();
    assert!(!fixture.log().contains("<6>"), "{}", fixture.log());
}

#[test]
fn an_invalid_log_setting_is_reported() {
    for (variable, value) in [("SHEPHERD_LOG", "loud=very=much"), ("SHEPHERD_LOG_FORMAT", "xml")] {
        let mut fixture = ShepherddFixture::new(POLICY).with_variable(variable, value);
        fixture.start();
        wait_until(variable, || {
            fixture.log().lines().any(|line| line.contains(variable) && line.contains(value))
        });
    }
}
