//! Completions, manual pages and docs/cli.md match the command line.

use crate::support::{command, text};

#[test]
fn completions_are_generated_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&command(&["completions", shell]).output().unwrap().stdout);
        assert!(script.contains("shepherd") && script.contains("revoke"), "{shell}");
    }
    assert_eq!(command(&["completions", "nosuch"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let page = text(&command(&["man"]).output().unwrap().stdout);
    assert!(page.contains(".TH shepherd 1") && page.contains("Examples:"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let output = command(&["man", "--dir", folder.path().to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for name in ["shepherd.1", "shepherd-grant.1", "shepherd-policy-check.1", "shepherd-audit-verify.1"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

/// docs/cli.md mentions every command.
#[test]
fn the_document_mentions_every_command() {
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let document = std::fs::read_to_string(format!("{manifest}/../../docs/cli.md")).unwrap();
    let help = text(&command(&["--help"]).output().unwrap().stdout);
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names {
        assert!(document.contains(&format!("shepherd {name}")), "docs/cli.md does not mention `{name}`");
    }
}
