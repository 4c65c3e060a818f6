//! What the documentation says is true: its configurations are read, its commands parsed, its keys compared.

use std::fs;
use std::path::PathBuf;

use collieclaw::config::Choices;

use crate::support::House;

pub(crate) fn document(name: &str) -> String {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let path = PathBuf::from(root).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks whose info string is this.
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
fn every_configuration_in_the_documents_is_valid_and_the_default_is_the_default() {
    let reference = document("docs/collieclaw-config.md");
    assert_eq!(blocks(&reference, "toml default"), [collieclaw::config::template(&Choices::default())]);
    let house = House::new();
    // One of the examples names it.
    fs::create_dir(house.path().join("fixtures")).unwrap();
    fs::write(house.path().join("fixtures/list.toml"), "[[round]]\ntext = \"hello\"\n").unwrap();
    let fixtures = document("docs/collieclaw-fixtures.md");
    let examples: Vec<String> = [reference, fixtures, document("docs/collieclaw-providers.md")]
        .iter()
        .flat_map(|text| blocks(text, "toml config"))
        .collect();
    assert!(examples.len() >= 3);
    for example in examples {
        fs::write(house.home().join("config.toml"), &example).unwrap();
        let validate = house.run(&["config", "validate"]);
        assert_eq!(validate.code, 0, "{example}\n{}", validate.err);
    }
}

#[test]
fn every_key_that_is_in_force_is_in_the_reference() {
    let reference = document("docs/collieclaw-config.md");
    let shown = House::new().run(&["config", "show", "--output", "json"]).json();
    let mut keys = Vec::new();
    leaves(&shown, "", &mut keys);
    for key in keys {
        let key = key.replace(".local.", ".NAME.").replace(".openai_compatible.", ".NAME.");
        assert!(reference.contains(&format!("| `{key}` |")), "{key}");
    }
}

fn leaves(value: &serde_json::Value, at: &str, keys: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                leaves(value, &at, keys);
            }
        }
        _ => keys.push(at.to_owned()),
    }
}

/// The page on providers: its rules choose as it says, and its limits are shown as it says.
#[test]
fn the_examples_of_the_page_on_providers_do_what_it_says() {
    let page = document("docs/collieclaw-providers.md");
    let example = |with: &str| {
        let found = blocks(&page, "toml config").into_iter().find(|block| block.contains(with));
        found.unwrap_or_else(|| panic!("no example with {with}"))
    };
    // The same rules, but with models that are here.
    let mut router = example("kind = \"router\"");
    for name in ["small", "large"] {
        let start = router.find(&format!("[providers.models.{name}]")).unwrap();
        let end = router[start..].find("\n\n").map_or(router.len(), |end| start + end);
        router.replace_range(
            start..end,
            &format!("[providers.models.{name}]\nkind = \"mock\"\nfixture = \"{name}.toml\""),
        );
    }
    let house = House::new();
    for name in ["small", "large"] {
        let script = format!("[[round]]\ntext = \"I am {name}.\"\n");
        fs::write(house.home().join(format!("{name}.toml")), script).unwrap();
    }
    fs::write(house.home().join("config.toml"), router).unwrap();
    assert_eq!(house.run(&["agent", "-m", "hi"]).out, "I am small.\n");
    assert_eq!(house.run(&["agent", "-m", "hi", "--hint", "thorough"]).out, "I am large.\n");

    fs::write(house.home().join("config.toml"), example("tokens_per_day")).unwrap();
    let shown = house.run(&["usage"]).out;
    let head = shown.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let table = blocks(&page, "text").remove(0);
    assert_eq!(table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" "), head);
    assert!(shown.contains("tokens_per_day: ") && shown.contains(" of 200000"), "{shown}");
}

#[test]
fn every_command_in_the_guide_exists() {
    let guides =
        ["docs/collieclaw.md", "docs/collieclaw-security.md", "docs/collieclaw-sop.md"].map(document);
    let house = House::empty();
    let mut seen = 0;
    for line in blocks(&guides.concat(), "console").iter().flat_map(|block| block.lines()) {
        let line = line.strip_prefix("$ collieclaw ").unwrap().split(" #").next().unwrap();
        let arguments = words(line);
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = house.run(&arguments);
        assert_eq!(help.code, 0, "{line}: {}", help.err);
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

/// As a shell would split a line with simple quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.trim().chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn the_exit_codes_of_the_guide_are_those_of_the_help() {
    let guide = document("docs/collieclaw.md");
    let help = House::empty().run(&["--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "130"] {
        assert!(guide.contains(&format!("| {code} | ")) && help.contains(&format!("{code} ")), "{code}");
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_same_source() {
    let house = House::empty();
    for shell in ["bash", "zsh", "fish"] {
        let completions = house.run(&["completions", shell]);
        assert!(completions.code == 0 && completions.out.contains("collieclaw"), "{shell}");
    }
    assert!(house.run(&["man"]).out.contains(".TH collieclaw"));
    let folder = house.path().join("man");
    assert_eq!(house.run(&["man", "--dir", folder.to_str().unwrap()]).code, 0);
    assert!(folder.join("collieclaw-policy-explain.1").is_file());
}
