//! Installing, listing and removing plugins.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::plugin_fixture::{PLAIN, manifest};
use crate::support::TestAgent;

const RUN: &str = "#!/bin/sh\necho '{\"output\": \"sunny\"}'\n";

#[test]
fn a_plugin_is_shown_asked_about_installed_listed_and_removed() {
    let test_agent = TestAgent::new();
    let tool = "command = \"./run\"\nschema = { type = \"object\" }\nworkspace = \"write\"\nnetwork = true\n\
                timeout = \"5s\"\nrisk = \"high\"";
    let folder = test_agent
        .write_plugin_folder("weather", &[("manifest.toml", &manifest("weather", tool)), ("run", RUN)]);
    let folder = folder.to_str().unwrap();

    let nobody = test_agent.run(&["plugin", "install", folder]);
    assert_eq!((nobody.code, nobody.out.as_str()), (5, ""), "{nobody:?}");
    for shown in [
        "weather 1.0.0: 2 files",
        "reads and changes all of it",
        "requested; off unless the configuration allows it",
        "high",
        "5 s at most",
    ] {
        assert!(nobody.err.contains(shown), "{shown}: {}", nobody.err);
    }
    let no = test_agent.at_terminal(&["plugin", "install", folder], &[("Install it? [y/N]", "\n")]);
    assert_eq!(no.code, 4, "{no:?}");
    assert!(!test_agent.home().join("plugins/weather").exists());

    let yes = test_agent.at_terminal(&["plugin", "install", folder], &[("Install it? [y/N]", "y\n")]);
    assert_eq!(yes.code, 0, "{yes:?}");
    let listed = test_agent.run(&["plugin", "list", "--output", "json"]).json();
    assert_eq!(listed[0]["name"], "weather");
    assert_eq!(listed[0]["state"], "as installed");
    let listed = &listed[0]["tools"][0];
    assert_eq!((listed["name"].as_str(), listed["timeout"].as_str()), (Some("weather_now"), Some("5s")));
    assert_eq!((listed["workspace"].as_str(), &listed["network"]["given"]), (Some("write"), &false.into()));
    let listed = test_agent.run(&["plugin", "list"]).out;
    let powers = "risk high; workspace: reads and changes all of it; network: requested, but not allowed";
    assert!(listed.contains(powers), "{listed}");
    assert!(test_agent.run(&["tool", "list"]).out.contains("weather_now"));

    let allowed = test_agent.with_config_change("tools_allow = [", "tools_allow = [\"weather_now\", ");
    assert_eq!(allowed.run(&["config", "validate"]).code, 0);
    let removed = allowed.run(&["plugin", "remove", "weather"]);
    // The plugin is removed; the list that still names its tool causes a warning and no error.
    assert_eq!(removed.code, 0, "{removed:?}");
    let absent = "`channels.cli.tools_allow` lists `weather_now`, but no such tool exists";
    for actual in [removed, allowed.run(&["config", "validate"])] {
        assert!(actual.err.contains(absent), "{actual:?}");
    }
    assert!(allowed.run(&["doctor"]).out.contains(absent));
    assert_eq!(allowed.run(&["agent", "-m", "hello"]).code, 0);
    assert_eq!(allowed.run(&["plugin", "list", "--output", "json"]).out.trim(), "[]");
    assert_eq!(allowed.run(&["plugin", "remove", "weather"]).code, 2);
    assert_eq!(allowed.run(&["plugin", "remove", "../workspace"]).code, 2);
}

#[test]
fn a_newer_version_takes_the_place_of_the_older_one_whole() {
    let test_agent = TestAgent::new().with_full_autonomy().with_plugin("weather", PLAIN, RUN);
    let newer = manifest("weather", PLAIN).replace("1.0.0", "2.0.0");
    let run = "#!/bin/sh\necho '{\"output\": \"rain\"}'\n";
    let folder =
        test_agent.write_plugin_folder("newer", &[("manifest.toml", &newer), ("run", run), ("data/x", "1")]);
    let done = test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("It replaces version 1.0.0."), "{}", done.err);
    assert_eq!(test_agent.call_output("weather_now", "{}"), "rain");
    let left: Vec<_> = std::fs::read_dir(test_agent.home().join("plugins")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn every_fault_of_a_manifest_is_reported_at_once() {
    let test_agent = TestAgent::new();
    let text = r#"name = "Weather Report"
version = ""
capabilities = ["tool", "root"]
colour = "blue"

[[tools]]
name = "shell"
description = "Looks harmless."
command = "/bin/sh"
schema = { type = "array" }

[[tools]]
name = "a__b"
description = ""
command = ["../run", "x"]
schema = "not-there.json"
risk = "low"
network = true
workspace = "all"
timeout = "soon"

[[tools]]
name = "twice"
description = "One."
command = "run"
schema = '{"type": "object", "properties": {"x": {"type": "strnig"}}}'

[[tools]]
name = "twice"
description = "Two."
command = "run"
schema = { type = "object" }
"#;
    let folder = test_agent.write_plugin_folder("weather", &[("manifest.toml", text), ("run", RUN)]);
    let done = test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(done.code, 3, "{done:?}");
    let lines: Vec<&str> =
        done.err.lines().filter_map(|line| line.strip_prefix(folder.to_str().unwrap())).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert!(!test_agent.home().join("plugins").exists());
}

#[test]
fn forbidden_files_in_a_plugin_are_refused() {
    let check = |expected: &str, make: &dyn Fn(&TestAgent, &std::path::Path)| {
        let test_agent = TestAgent::new();
        let folder = test_agent
            .write_plugin_folder("weather", &[("manifest.toml", &manifest("weather", PLAIN)), ("run", RUN)]);
        make(&test_agent, &folder);
        let done = test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
        assert_ne!(done.code, 0, "{expected}: {done:?}");
        assert!(done.err.contains(expected), "{expected}: {}", done.err);
        let left = std::fs::read_dir(test_agent.home().join("plugins")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{expected}");
    };
    check("neither a regular file nor a folder", &|_, folder| {
        symlink("/etc/passwd", folder.join("data")).unwrap();
    });
    check("neither a regular file nor a folder", &|_, folder| {
        let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
        assert!(made.success());
    });
    check("the plugin has more than 256 files", &|_, folder| {
        for number in 0..300 {
            std::fs::write(folder.join(number.to_string()), "").unwrap();
        }
    });
    check("16 MB", &|_, folder| {
        std::fs::File::create(folder.join("big")).unwrap().set_len(17 << 20).unwrap();
    });
    check("no such file `manifest.toml`", &|_, folder| {
        std::fs::remove_file(folder.join("manifest.toml")).unwrap();
    });
    check("a tool named `time` already exists", &|_, folder| {
        let text = manifest("weather", PLAIN).replace("weather_now", "time");
        std::fs::write(folder.join("manifest.toml"), text).unwrap();
    });
}

#[test]
fn no_plugin_takes_a_name_of_another_one() {
    let test_agent = TestAgent::new().with_plugin("weather", PLAIN, RUN);
    let text = manifest("other", PLAIN).replace("other_now", "weather_now");
    let folder = test_agent.write_plugin_folder("other", &[("manifest.toml", &text), ("run", RUN)]);
    let done = test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("a tool named `weather_now` already exists"), "{}", done.err);
}

#[test]
fn a_plugin_that_was_put_into_its_place_waits_for_an_approval() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let folder = test_agent.write_plugin_folder(
        "dropped",
        &[("manifest.toml", &manifest("dropped", PLAIN)), ("run", "#!/bin/sh\ntouch /tmp/never\n")],
    );
    let plugins = test_agent.home().join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::rename(folder, plugins.join("dropped")).unwrap();
    let listed = test_agent.run(&["plugin", "list"]);
    let waits = "dropped 1.0.0, waits for your approval; to see what it may do, run `collieclaw plugin install dropped`";
    assert!(listed.out.contains(waits), "{listed:?}");
    let listed = test_agent.run(&["plugin", "list", "--output", "json"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["state"]), (&"dropped".into(), &"waiting".into()));
    // Until then it is no tool, and everybody who starts the agent is told.
    assert_eq!(test_agent.call_tool("dropped_now", "{}").code, 4);
    let agent = test_agent.run(&["agent", "-m", "hello"]);
    assert!(agent.err.contains("the plugin `dropped` waits for your approval"), "{agent:?}");
    assert_eq!(test_agent.run(&["plugin", "install", "dropped"]).code, 5, "nobody can be asked");
    std::fs::write(plugins.join("dropped/run"), RUN).unwrap();
    let yes = test_agent.at_terminal(&["plugin", "install", "dropped"], &[("Install it? [y/N]", "y\n")]);
    assert_eq!(yes.code, 0, "{yes:?}");
    assert!(test_agent.run(&["plugin", "list"]).out.contains("dropped 1.0.0, as installed"));
    assert_eq!(test_agent.call_output("dropped_now", "{}"), "sunny");
}

#[test]
fn a_folder_that_was_not_installed_or_that_others_can_change_is_not_used() {
    let test_agent = TestAgent::new().with_full_autonomy().with_plugin("weather", PLAIN, RUN);
    let plugins = test_agent.home().join("plugins");
    std::fs::create_dir(plugins.join("dropped")).unwrap();
    std::fs::write(plugins.join("dropped/manifest.toml"), manifest("dropped", PLAIN)).unwrap();
    let listed = test_agent.run(&["plugin", "list"]);
    assert!(listed.out.contains("weather 1.0.0, as installed"), "{listed:?}");
    assert!(
        listed.err.contains("the folder \"dropped\" is not a plugin"),
        "its program is missing: {listed:?}"
    );

    let open = |mode| {
        std::fs::set_permissions(plugins.join("weather"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(0o777);
    let done = test_agent.call_tool("weather_now", "{}");
    assert_ne!(done.code, 0, "{done:?}");
    open(0o700);
    assert_eq!(test_agent.call_output("weather_now", "{}"), "sunny");
}

#[test]
fn escape_sequences_of_an_author_reach_no_terminal() {
    let test_agent = TestAgent::new();
    let text = manifest("weather", PLAIN).replace("Tells the weather.", "\\u001b[2J\\u202eTells.");
    let folder = test_agent.write_plugin_folder("weather", &[("manifest.toml", &text), ("run", RUN)]);
    let done = test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    let listed = test_agent.run(&["plugin", "list"]);
    let tools = test_agent.run(&["tool", "list"]);
    for shown in [done.err, listed.out, tools.out] {
        assert!(shown.contains("\\u{1b}[2J\\u{202e}Tells."), "{shown}");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    }
}

#[test]
fn an_installation_that_is_killed_leaves_the_old_one_or_the_new_one() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let version = |number: usize| {
        let text = manifest("weather", PLAIN).replace("1.0.0", &format!("{number}.0.0"));
        let run = format!("#!/bin/sh\necho '{{\"output\": \"{number}\"}}'\n");
        let folder = test_agent.write_plugin_folder(
            &format!("v{number}"),
            &[("manifest.toml", &text), ("run", &run), ("data", &"x".repeat(100_000))],
        );
        folder.to_str().unwrap().to_owned()
    };
    let folders = [version(1), version(2)];
    assert_eq!(test_agent.run(&["plugin", "install", "--yes", &folders[0]]).code, 0);
    for round in 0..24 {
        let mut child =
            test_agent.command(&["plugin", "install", "--yes", &folders[round % 2]]).spawn().unwrap();
        // A kill at any moment of the installation.
        std::thread::sleep(std::time::Duration::from_millis(round as u64 * 2));
        child.kill().unwrap();
        child.wait().unwrap();
        let listed = test_agent.run(&["plugin", "list", "--output", "json"]);
        assert_eq!((listed.code, listed.err.as_str()), (0, ""), "{listed:?}");
        let listed = listed.json();
        assert_eq!(listed[0]["state"], "as installed", "{listed}");
        let number = listed[0]["version"].as_str().unwrap().split('.').next().unwrap().to_owned();
        assert_eq!(test_agent.call_output("weather_now", "{}"), number);
    }
}

#[test]
fn a_program_that_can_not_be_run_is_refused_with_its_cure() {
    let test_agent = TestAgent::new();
    let install = |command: &str| {
        let tool = format!("command = {command}\nschema = {{ type = \"object\" }}");
        let folder = test_agent
            .write_plugin_folder("slow", &[("manifest.toml", &manifest("slow", &tool)), ("go.sh", RUN)]);
        test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()])
    };
    let refused = install("\"./go.sh\"");
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("the file `go.sh` of the plugin is not executable"), "{refused:?}");
    assert!(
        refused.err.contains("`chmod +x go.sh`, or name its interpreter: `command = [\"sh\", \"go.sh\"]`"),
        "{refused:?}"
    );
    let refused = install("\"./gone.sh\"");
    assert!(refused.code == 3 && refused.err.contains("no such file `gone.sh`"), "{refused:?}");
    assert_eq!(install("[\"sh\", \"go.sh\"]").code, 0);
}
