//! Commands that need no daemon: `tour`, `doctor`, `audit verify` and `policy`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};

use serde_json::{Map, Value, json};
use ward_ledger::{Ledger, LedgerFormat, LedgerKey, LedgerOptions};

use crate::support::{command, text};

fn shepherd(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn start(arguments: &[&str]) -> Child {
    command(arguments).spawn().unwrap()
}

fn write_three_records(folder: &Path, options: LedgerOptions) -> PathBuf {
    let path = folder.join("audit.log");
    let (mut ledger, _) = Ledger::open(&path, options).unwrap();
    for number in 1..=3 {
        ledger.append(Map::from_iter([("n".to_owned(), json!(number))])).unwrap();
    }
    path
}

fn unsigned_options() -> LedgerOptions {
    LedgerOptions::new(LedgerFormat::new("event_hash").unwrap())
}

#[test]
fn output_that_cannot_be_written_is_a_failure_unless_its_reader_left() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command(&["completions", "bash"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).starts_with("error: could not write the output: "),
        "{}",
        text(&output.stderr)
    );
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&["completions", "bash"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn the_tour_passes_its_checks_and_leaves_nothing_behind() {
    let tour = start(&["tour"]);
    let number = tour.id();
    let output = tour.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    assert!(shown.contains("processes are gone"), "{shown}");
    assert!(shown.contains("broken at record 2"), "{shown}");
    assert!(!shown.contains('\x1b'), "colours only on a terminal");
    assert_eq!(commands_with(&format!("sleep\0{}", 600_000_000 + number)), Vec::<String>::new());
    assert_eq!(groups_with(&format!("ward-tour-{number}-")), Vec::<PathBuf>::new());
    assert_eq!(private_folders_with(&format!("ward-{number}-")), Vec::<String>::new());
}

fn commands_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).into_owned());
    commands.filter(|command| command.contains(text)).collect()
}

/// Finds control groups by a unique prefix. They are created below our own group, so all groups are searched.
fn groups_with(prefix: &str) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let mut open: Vec<PathBuf> =
        mount.and_then(|line| line.split(' ').nth(1)).map(PathBuf::from).into_iter().collect();
    let mut found = Vec::new();
    while let Some(group) = open.pop() {
        let inside = std::fs::read_dir(&group).into_iter().flatten().flatten().map(|entry| entry.path());
        open.extend(inside.filter(|path| path.is_dir()));
        if group.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)) {
            found.push(group);
        }
    }
    found
}

/// Finds temporary folders of sandboxes.
fn private_folders_with(prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/tmp").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn doctor_prints_text_and_json() {
    let shown = text(&shepherd(&["doctor"]).stdout);
    assert!(shown.contains("process group:"), "{shown}");
    assert!(shown.contains("filesystem:"), "{shown}");
    // S6.2: a containment that is only available is not reported as in use.
    assert!(shown.contains(": would be used\n") && !shown.contains(": in use\n"), "{shown}");
    let json: Value = serde_json::from_slice(&shepherd(&["doctor", "--output", "json"]).stdout).unwrap();
    assert_eq!(json["containments"]["offers"].as_array().unwrap().len(), 4);
    assert!(json["sandbox"]["filesystem"]["state"].is_string());
}

#[test]
fn verify_exits_0_for_an_unchanged_log_and_1_for_a_changed_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = write_three_records(folder.path(), unsigned_options());
    let output = shepherd(&["audit", "verify", log.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let edited = std::fs::read_to_string(&log).unwrap().replace("\"n\":2", "\"n\":7");
    std::fs::write(&log, edited).unwrap();
    let output = shepherd(&["audit", "verify", log.to_str().unwrap(), "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["broken"]["sequence"], 2);
    assert_eq!(json["broken"]["kind"], "edited");
}

#[test]
fn a_signed_log_needs_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    let log = write_three_records(
        folder.path(),
        unsigned_options().with_key(LedgerKey::load_or_create(&key_file).unwrap()),
    );
    let log = log.to_str().unwrap();
    assert_eq!(shepherd(&["audit", "verify", log]).status.code(), Some(1));
    let output = shepherd(&["audit", "verify", log, "--key", key_file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn command_line_mistakes_exit_2_and_missing_files_exit_3() {
    assert_eq!(shepherd(&["adit"]).status.code(), Some(2));
    let output = shepherd(&["audit", "verify", "/nonexistent/audit.log", "--hash-field", "sequence"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let output = shepherd(&["audit", "verify", "/nonexistent/audit.log"]);
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stderr);
    assert!(shown.starts_with("error: could not check /nonexistent/audit.log: "), "{shown}");
}

#[test]
fn help_has_examples() {
    let help = text(&shepherd(&["--help"]).stdout);
    assert!(help.contains("Examples:\n  shepherd "), "{help}");
}

#[test]
fn the_name_of_an_entry_in_place_of_a_command_leads_to_launch() {
    let shown = |arguments: &[&str]| {
        let output = shepherd(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    let advice = "To start a program, type `shepherd launch tuxmath`.\n";
    assert!(shown(&["tuxmath"]).ends_with(advice), "{}", shown(&["tuxmath"]));
    assert!(!shown(&["policy", "tuxmath"]).contains("launch"));
    assert!(!shown(&["lsit"]).contains("launch"), "it is a mistyped command");
}

fn policies(name: &str) -> String {
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    format!("{manifest}/../../policies/{name}")
}

#[test]
fn a_valid_policy_is_checked_and_shown() {
    // S7.4.
    let output = shepherd(&["policy", "check", &policies("family.toml")]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(
        text(&output.stdout).contains("is valid: 5 entries, 9 examples passed"),
        "{}",
        text(&output.stdout)
    );
    let shown = text(&shepherd(&["policy", "show", &policies("family.toml")]).stdout);
    assert!(shown.contains("tuxmath"), "{shown}");
    let schema: Value = serde_json::from_slice(&shepherd(&["policy", "schema"]).stdout).unwrap();
    let checked_in: Value =
        serde_json::from_str(&std::fs::read_to_string(policies("policy.schema.json")).unwrap()).unwrap();
    assert_eq!(schema, checked_in);
}

/// S7.4: a valid policy that does not fit this machine passes with warnings, so that a parent learns of it first.
#[test]
fn a_policy_that_does_not_fit_this_machine_passes_with_warnings() {
    const POLICY: &str = r#"
config_version = 1
[access]
admins = ["@no-such-group"]
[profiles.kid]
accounts = ["no-such-kid"]
[libraries.films]
paths = ["/nonexistent/films"]
[[entries]]
id = "fits"
argv = ["sh", "-c", "true"]
cwd = "/"
always = true
[[entries]]
id = "game"
argv = ["no-such-game"]
user = "no-such-user"
always = true
[[entries]]
id = "same-game"
argv = ["no-such-game", "--easy"]
always = true
[[entries]]
id = "own-game"
argv = ["/opt/no-such-game/start"]
always = true
[[entries]]
id = "lost"
argv = ["/bin/sh"]
cwd = "/nonexistent"
always = true
[[entries]]
id = "films"
kind = "media"
library = "films"
always = true
"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).unwrap();
    let name = file.to_str().unwrap();
    let output = shepherd(&["policy", "check", name]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("is valid: 6 entries"), "{}", text(&output.stdout));
    let remarks = text(&output.stderr);
    let expected = [
        "no such group `no-such-group` on this machine; ",
        "no such user `no-such-kid` on this machine; ",
        "entry `game`: no such user `no-such-user` on this machine; ",
        "entries `game`, `same-game`: program `no-such-game` not found in ",
        "entry `own-game`: program `/opt/no-such-game/start` not found; ",
        "entry `lost`: folder `/nonexistent` does not exist; ",
        "entry `films`: library `films`: could not read `/nonexistent/films`: ",
    ];
    assert_eq!(remarks.lines().count(), expected.len(), "{remarks}");
    let json: Value =
        serde_json::from_slice(&shepherd(&["policy", "check", name, "--output", "json"]).stdout).unwrap();
    let warnings = json["warnings"].as_array().unwrap();
    for (warning, start) in warnings.iter().zip(expected) {
        let warning = warning.as_str().unwrap();
        assert!(warning.starts_with(start), "{warning}");
        assert!(remarks.contains(&format!("warning: {warning}\n")), "{remarks}");
    }
    assert_eq!(warnings.len(), expected.len());
}

#[test]
fn a_policy_that_is_probably_not_meant_passes_with_warnings() {
    const POLICY: &str = r#"
config_version = 1
[profiles.kid]
accounts = ["nobody"]
[access]
admins = ["nobody"]
[modes]
names = ["school", "holiday"]
[[modes.dates]]
mode = "holiday"
on = 2020-12-24
[[entries]]
id = "machine"
kind = "vm"
driver = "command"
args = { argv = ["sh"] }
always = true
max_run = 30
"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).unwrap();
    let name = file.to_str().unwrap();
    let output = shepherd(&["policy", "check", name]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected = [
        format!("warning: {name}:18:11: `max_run` is only 30 seconds, "),
        "warning: user `nobody` of profile `kid` is also an administrator, ".to_owned(),
        "warning: all days in `[[modes.dates]]` are over, the last one on 2020-12-24; ".to_owned(),
    ];
    let remarks = text(&output.stderr);
    assert_eq!(remarks.lines().count(), expected.len(), "{remarks}");
    for (line, start) in remarks.lines().zip(&expected) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn the_starter_policy_has_no_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    assert_eq!(shepherd(&["policy", "init", file.to_str().unwrap()]).status.code(), Some(0));
    let output = shepherd(&["policy", "check", file.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn an_invalid_policy_exits_1_with_every_fault_and_its_help() {
    // S7.2, S7.4.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, "config_version = 1\n[[entries]]\nid = \"game\"\nkind = \"process\"\nargv = []\nalways = true\nmax_rum = \"1h\"\n").unwrap();
    let name = file.to_str().unwrap();
    let output = shepherd(&["policy", "check", name]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(shown.contains(&format!("{name}:5:")) && shown.contains(&format!("{name}:7:")), "{shown}");
    assert!(shown.contains("max_run") && shown.contains("help: "), "{shown}");
    assert!(!shown.contains('\x1b'), "colours only on a terminal");
    assert!(text(&output.stderr).starts_with("error: the policy is not valid: "), "{}", text(&output.stderr));
    let json: Value =
        serde_json::from_slice(&shepherd(&["policy", "check", name, "--output", "json"]).stdout).unwrap();
    let lines: Vec<u64> =
        json["faults"].as_array().unwrap().iter().filter_map(|fault| fault["line"].as_u64()).collect();
    assert!(lines.contains(&5) && lines.contains(&7), "{lines:?}");
    let missing = shepherd(&["policy", "check", "/nonexistent/policy.toml"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).starts_with("error: could not read /nonexistent/policy.toml: "));
}
