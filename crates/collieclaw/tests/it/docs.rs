//! The lists in the documentation are complete: keys, exit codes, scenarios. Its examples are run by `documented`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use collieclaw_agent::config::SetupChoices;

use crate::support::TestAgent;

pub(crate) fn document(name: &str) -> String {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let path = PathBuf::from(root).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the code blocks with this info string.
pub(crate) fn blocks(text: &str, info: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{info}") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n") + "\n");
        }
    }
    blocks
}

#[test]
fn the_default_configuration_is_the_default() {
    let reference = document("docs/collieclaw-config.md");
    assert_eq!(
        blocks(&reference, "toml default"),
        [collieclaw_agent::config::config_template(&SetupChoices::default())]
    );
}

#[test]
fn every_key_that_is_in_force_is_in_the_reference() {
    let reference = document("docs/collieclaw-config.md");
    let mut shown = TestAgent::new().run(&["config", "show", "--output", "json"]).json();
    // The rules of the workspace have files and a page of their own.
    assert!(shown.as_object_mut().unwrap().remove("workspace").is_some());
    let mut keys = Vec::new();
    collect_keys(&shown, "", &mut keys);
    for key in keys {
        let key = key.replace(".local.", ".NAME.").replace(".openai_compatible.", ".NAME.");
        assert!(reference.contains(&format!("| `{key}` |")), "{key}");
    }
}

/// Returns the known keys of a table, taken from the error for an unknown key.
#[test]
fn the_reference_lists_every_key_that_there_is_and_no_other() {
    let reference = document("docs/collieclaw-config.md");
    let documented: BTreeSet<String> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" | "))
        .flat_map(|(keys, _)| {
            // In `web_search.title`, `link`, the second key is in the same table.
            let mut keys = keys.split("`, `").map(|key| key.trim_matches('`'));
            let first = keys.next().unwrap_or_default();
            let table = first.rsplit_once('.').map_or(String::new(), |(table, _)| format!("{table}."));
            let others: Vec<String> = keys.map(|key| format!("{table}{key}")).collect();
            std::iter::once(first.to_owned()).chain(others).collect::<Vec<_>>()
        })
        .collect();
    let kinds = [
        "kind = \"mock\"",
        "kind = \"openai-compatible\"\nbase_url = \"http://localhost/v1\"\nmodel = \"m\"",
        "kind = \"reliable\"\nproviders = [\"local\"]",
        "kind = \"router\"\ndefault = \"local\"",
    ];
    let models = kinds.map(|kind| ("providers.models.NAME", kind));
    let tables = [
        "",
        "security",
        "providers",
        "web_search",
        "channels.cli",
        "channels.gateway",
        "memory",
        "receipts",
        "limits",
    ];
    let test_agent = TestAgent::new();
    let mut known = BTreeSet::new();
    for (table, before) in tables.map(|table| (table, "")).into_iter().chain(models) {
        let header =
            if table.is_empty() { String::new() } else { format!("[{}]\n", table.replace("NAME", "n")) };
        fs::write(test_agent.home().join("config.toml"), format!("{header}{before}\nno_such_key = 1\n"))
            .unwrap();
        let actual = test_agent.run(&["config", "validate", "--output", "json"]).json();
        let faults = actual["faults"].as_array().unwrap();
        let unknown = faults.iter().find(|fault| fault["code"] == "unknown-key").unwrap();
        let (_, keys) = unknown["help"].as_str().unwrap().split_once("known keys: ").unwrap();
        let keys = keys.split('`').skip(1).step_by(2);
        known
            .extend(keys.map(|key| if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }));
    }
    // Skips tables, and keys that another page explains.
    let holds_others = |key: &str| {
        known.iter().any(|other| other.starts_with(&format!("{key}.")))
            || ["channels", "mcp", "plugins", "providers.models"].contains(&key)
    };
    let elsewhere = |key: &str| key.starts_with("mcp.") || key.starts_with("plugins.");
    // A secret in the file is a known key, which is refused with help.
    let refused = |key: &str| key.ends_with(".api_key");
    let known: BTreeSet<String> =
        known.iter().filter(|key| !holds_others(key) && !refused(key)).cloned().collect();
    let documented: BTreeSet<String> = documented.into_iter().filter(|key| !elsewhere(key)).collect();
    assert_eq!(documented, known);
}

fn collect_keys(value: &serde_json::Value, at: &str, keys: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                collect_keys(value, &at, keys);
            }
        }
        _ => keys.push(at.to_owned()),
    }
}

#[test]
fn the_page_on_mcp_names_every_scenario_that_is_not_offered() {
    let page = document("docs/collieclaw-mcp.md");
    for block in blocks(&page, "json client") {
        let client: serde_json::Value = serde_json::from_str(&block).unwrap();
        let client = &client["mcpServers"]["collieclaw"];
        assert_eq!(client["args"], serde_json::json!(["mcp", "serve"]));
        // Clients pass on only a few variables, and this one is not among them.
        assert!(client["env"]["COLLIECLAW_HOME"].is_string(), "{client}");
    }
    for scenario in crate::mcp::NOT_OFFERED.lines().filter_map(|line| line.strip_prefix("  - ")) {
        assert!(page.contains(&format!("`{scenario}`")), "{scenario}");
    }
}

#[test]
fn the_exit_codes_of_the_guide_are_those_of_the_help() {
    let guide = document("docs/collieclaw.md");
    let help = TestAgent::empty().run(&["--help"]).out;
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    let (codes, _) = codes.split_once("\n\n").unwrap();
    let actual: Vec<&str> = codes.lines().map(|code| code.trim().split_once(' ').unwrap().0).collect();
    assert_eq!(actual, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "130"]);
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let listed: Vec<&str> = rows.map(|(code, _)| code).filter(|code| code.parse::<u8>().is_ok()).collect();
    assert_eq!(listed, actual);
}

#[test]
fn completions_and_manual_pages_come_from_the_same_source() {
    let test_agent = TestAgent::empty();
    for shell in ["bash", "zsh", "fish"] {
        let completions = test_agent.run(&["completions", shell]);
        assert!(completions.code == 0 && completions.out.contains("collieclaw"), "{shell}");
    }
    let file = test_agent.path().join("completions.bash");
    fs::write(&file, test_agent.run(&["completions", "bash"]).out).unwrap();
    assert!(std::process::Command::new("bash").arg("-n").arg(&file).status().unwrap().success());
    assert!(test_agent.run(&["man"]).out.contains(".TH collieclaw"));
    let folder = test_agent.path().join("man");
    assert_eq!(test_agent.run(&["man", "--dir", folder.to_str().unwrap()]).code, 0);
    assert!(folder.join("collieclaw-policy-explain.1").is_file());
}
