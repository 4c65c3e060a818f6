//! What the pages on plugins and MCP say is true.

use crate::docs::{blocks, document, words};
use crate::support::House;

fn commands_exist(page: &str) {
    let house = House::empty();
    let commands = blocks(page, "console");
    assert!(!commands.is_empty());
    for line in commands.iter().flat_map(|block| block.lines()) {
        let arguments = words(line.strip_prefix("$ collieclaw ").unwrap());
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.push("--help");
        assert_eq!(house.run(&arguments).code, 0, "{line}");
    }
}

fn configurations_are_valid(page: &str) {
    let house = House::new();
    let config = house.home().join("config.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    for block in blocks(page, "toml config") {
        std::fs::write(&config, format!("{before}\n{block}")).unwrap();
        let validate = house.run(&["config", "validate"]);
        assert_eq!(validate.code, 0, "{block}\n{}", validate.err);
    }
}

#[test]
fn the_plugin_of_the_page_counts_words() {
    let page = document("docs/collieclaw-plugins.md");
    let [manifest, program] = ["toml manifest", "python count.py"].map(|info| blocks(&page, info).concat());
    let house = House::new();
    let folder = house.plugin("words", &[("manifest.toml", &manifest), ("count.py", &program)]);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.join("count.py"), executable).unwrap();
    let done = house.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    std::fs::write(house.workspace().join("notes.txt"), "three little words").unwrap();
    assert_eq!(house.output("count_words", r#"{"path": "notes.txt"}"#), "3");
    assert_eq!(house.call("count_words", r#"{"path": "not-there"}"#).code, 1);
    commands_exist(&page);
    configurations_are_valid(&page);
}

#[test]
fn the_page_on_mcp_is_right() {
    let page = document("docs/collieclaw-mcp.md");
    commands_exist(&page);
    configurations_are_valid(&page);
    for block in blocks(&page, "json client") {
        let client: serde_json::Value = serde_json::from_str(&block).unwrap();
        assert_eq!(client["mcpServers"]["collieclaw"]["args"], serde_json::json!(["mcp", "serve"]));
    }
    for scenario in crate::mcp::NOT_OFFERED.lines().filter_map(|line| line.strip_prefix("  - ")) {
        assert!(page.contains(&format!("`{scenario}`")), "{scenario}");
    }
}
