//! Runs the commands of the documentation.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{ShepherddFixture, policy, program, sleep_entry};

/// Returns the folder of the sources, which are part of an archive of tests.
fn sources() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).join("../..")
}

/// Returns the code blocks of a page with this marker.
fn blocks(page: &str, mark: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sources().join("docs").join(page)).unwrap();
    let begin = format!("```{mark}\n");
    let inside = |rest: &str| rest.split("```").next().unwrap().to_owned();
    let blocks: Vec<String> = text.split(&begin).skip(1).map(inside).collect();
    assert!(!blocks.is_empty(), "no `{mark}` in {page}");
    blocks
}

const POLICY: &str = policy!(sleep_entry!("tuxmath", ""));

/// S11.1: `socat` and a text editor are enough to use the protocol.
#[test]
fn socat_and_the_lines_of_the_page_are_enough() {
    let fixture = ShepherddFixture::running(POLICY);
    let line = blocks("protocol.md", "sh").concat();
    let line = line.replace("/run/shepherd/shepherd.sock", fixture.socket().to_str().unwrap());
    assert!(line.starts_with("socat "), "{line}");
    let mut socat = Command::new("sh")
        .args(["-c", &format!("exec {line}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut typed, heard) = (socat.stdin.take().unwrap(), BufReader::new(socat.stdout.take().unwrap()));
    let said = blocks("protocol.md", "json say").concat();
    typed.write_all(said.as_bytes()).unwrap();
    let asked: BTreeMap<u64, String> = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|message| message["type"] == "request")
        .map(|message| (message["id"].as_u64().unwrap(), message["command"]["type"].to_string()))
        .collect();
    let mut answers: BTreeMap<u64, Value> = BTreeMap::new();
    let mut kinds: Vec<String> = Vec::new();
    for line in heard.lines() {
        let line = line.expect("socat is missing: run `cargo xtask setup`");
        let message: Value = serde_json::from_str(&line).unwrap();
        kinds.push(message["type"].as_str().unwrap().to_owned());
        if message["type"] == "response" {
            answers.insert(message["id"].as_u64().unwrap(), message["result"].clone());
        }
        if answers.len() == asked.len() && kinds.iter().any(|kind| kind == "event") {
            break;
        }
    }
    drop(typed);
    socat.kill().unwrap();
    socat.wait().unwrap();
    assert_eq!(kinds[0], "welcome");
    assert_eq!(answers.keys().collect::<Vec<_>>(), asked.keys().collect::<Vec<_>>(), "{kinds:?}");
    for (id, answer) in &answers {
        assert!(answer["ok"].is_object(), "{}: {answer}", asked[id]);
    }
    fixture.wait_until_idle();
}

#[test]
fn the_installed_files_are_where_the_unit_expects_them_and_the_daemon_starts() {
    let place = tempfile::tempdir().unwrap();
    let built = place.path().join("built");
    std::fs::create_dir(&built).unwrap();
    let daemon = program("shepherdd", env!("CARGO_BIN_EXE_shepherdd"));
    for name in ["shepherdd", "shepherd", "shepherd-notify"] {
        std::fs::copy(&daemon, built.join(name)).unwrap();
    }
    let commands = blocks("install.md", "sh install").concat();
    let commands = commands.replace("target/release", built.to_str().unwrap());
    let root = place.path().join("root");
    let shell =
        Command::new("sh").args(["-euc", &commands]).current_dir(sources()).env("DESTDIR", &root).output();
    let shell = shell.unwrap();
    assert!(shell.status.success(), "{}", String::from_utf8_lossy(&shell.stderr));
    for unit in ["system/shepherdd", "user/shepherdd", "user/shepherd-notify"] {
        let unit = root.join(format!("usr/lib/systemd/{unit}.service"));
        let unit = std::fs::read_to_string(unit).unwrap();
        let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).unwrap();
        let mode = std::fs::metadata(root.join(start)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{start}");
    }
    for file in ["etc/xdg/autostart/shepherd-notify.desktop", "usr/share/applications/shepherd.desktop"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let program = text.lines().find_map(|line| line.strip_prefix("TryExec=")).unwrap();
        assert!(root.join("usr/bin").join(program).exists(), "{file} starts {program}");
        assert!(text.lines().any(|line| line.starts_with("Exec=") && line.contains(program)), "{file}");
    }
    // Every login shell reads this file, so it must never fail, and outside a terminal do nothing.
    let login = root.join("etc/profile.d/shepherd-notify.sh");
    let read = Command::new("sh").args(["-euc", ". \"$0\""]).arg(&login).output().unwrap();
    assert!(read.status.success() && read.stderr.is_empty(), "{read:?}");
    let policy = std::fs::read_to_string(root.join("etc/shepherd/policy.toml")).unwrap();
    let fixture = ShepherddFixture::running(&policy);
    assert!(fixture.health().ready, "{:?}", fixture.health());
}

#[test]
fn the_policies_of_the_pages_are_valid() {
    let pages =
        [("install.md", "toml policy"), ("install.md", "toml guest policy"), ("../README.md", "toml policy")];
    for (page, kind) in pages {
        let policies = blocks(page, kind);
        assert!(!policies.is_empty(), "{page} has no block `{kind}`");
        for policy in policies {
            let version = if policy.contains("config_version") { "" } else { "config_version = 1\n" };
            let text = format!("{version}{policy}");
            if let Err(report) = shepherd_config::load_bytes(page, text.as_bytes()) {
                panic!("{text}\n{:?}", report.lines());
            }
        }
    }
}
