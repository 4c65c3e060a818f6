//! A secret is used and never shown: with a canary for a key, everything is run and everything is searched for it (C3.2).

use std::fs;
use std::path::Path;

use crate::support::{House, done};

const CANARY: &str = "sk-canary-4711-do-not-show";

fn search(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, found);
        } else if fs::read(&path).unwrap().windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn the_canary_is_in_no_output_no_log_no_database_and_no_receipt() {
    let house = House::new()
        .with("autonomy = \"supervised\"", "autonomy = \"full\"")
        .with("base_url = \"http://localhost:1234/v1\"", "base_url = \"http://127.0.0.1:1/v1\"");
    let commands: &[&[&str]] = &[
        &["config", "show"],
        &["config", "validate"],
        &["provider", "list"],
        &["provider", "test", "openai_compatible"],
        &["doctor"],
        &["agent", "-m", "run env"],
        &["agent", "-m", "run cat /proc/self/environ"],
        &["agent", "-m", "run sh -c 'cat /proc/$PPID/environ'"],
        &["agent", "-m", "read /proc/self/environ"],
        &["agent", "--provider", "openai_compatible", "-m", "hello"],
        &["tool", "run", "shell", "--json", r#"{"command":"printenv"}"#],
        &["policy", "explain", "shell", "--json", r#"{"command":"echo $OPENAI_API_KEY"}"#],
        &["memory", "list"],
        &["receipt", "list"],
    ];
    for log in ["json", "info"] {
        for arguments in commands {
            let mut command = house.command(arguments);
            let told =
                done(command.env("OPENAI_API_KEY", CANARY).env("COLLIECLAW_LOG", log).output().unwrap());
            assert!(!told.out.contains(CANARY) && !told.err.contains(CANARY), "{arguments:?}: {told:?}");
        }
    }
    let mut found = Vec::new();
    search(house.path(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}
