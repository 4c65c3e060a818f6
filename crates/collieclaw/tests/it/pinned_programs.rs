//! Programs of the user's home (C16): found through `PATH`, pinned by their real path, and run with their toolchains.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use collieclaw_agent::workspaces::{
    PinnedProgram, ToolchainPlaces, WorkspaceNetwork, WorkspaceRules, toolchain_access,
};
use serde_json::{Value, json};

use crate::support::{AgentOutput, TestAgent, agent_output};

/// Writes an executable script.
fn write_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Runs a command with the folders of `path` before those of the system.
fn run_with_path(test_agent: &TestAgent, path: &str, arguments: &[&str]) -> AgentOutput {
    let mut command = test_agent.command(arguments);
    agent_output(command.env("PATH", format!("{path}:/usr/bin:/bin")).output().unwrap())
}

fn explain(test_agent: &TestAgent, line: &str) -> Value {
    let call = json!({ "command": line }).to_string();
    test_agent.run(&["policy", "explain", "shell", "--json", &call, "--output", "json"]).json()
}

fn pinned(test_agent: &TestAgent) -> Value {
    test_agent.run(&["workspace", "show", "--output", "json"]).json()["pinned_programs"].clone()
}

/// A home with a toolchain manager: `cargo` is a link to `rustup`, as real installations have it.
fn with_toolchain() -> (TestAgent, PathBuf) {
    let test_agent = TestAgent::new();
    let bin = test_agent.path().canonicalize().unwrap().join(".cargo/bin");
    write_program(&bin.join("rustup"), "#!/bin/sh\necho \"run as $0\"\n");
    symlink("rustup", bin.join("cargo")).unwrap();
    (test_agent, bin)
}

/// C16: programs of the user's home are pinned at the moment they are allowed.
#[test]
fn a_program_in_the_home_is_pinned_by_its_real_path() {
    let (test_agent, bin) = with_toolchain();
    assert_eq!(explain(&test_agent, "cargo build")["decision"], "deny");
    let allowed = run_with_path(&test_agent, bin.to_str().unwrap(), &["allow", "cargo"]);
    assert!(
        allowed.code == 0 && allowed.out.contains("cargo: ") && allowed.out.contains(", pinned"),
        "{allowed:?}"
    );
    assert_eq!(
        pinned(&test_agent),
        json!({ "cargo": { "found": bin.join("cargo"), "real": bin.join("rustup") } })
    );
    // Later calls don't depend on `PATH`.
    let verdict = explain(&test_agent, "cargo build");
    assert_eq!((&verdict["decision"], &verdict["risk"]), (&json!("ask"), &json!("medium")), "{verdict}");
    let doctor = test_agent.run(&["doctor"]).out;
    assert!(
        doctor.contains(&format!("✓ program cargo: pinned to {}", bin.join("rustup").display())),
        "{doctor}"
    );
    let shown = test_agent.run(&["config", "show"]).out;
    assert!(shown.contains(&format!("# pinned:      cargo = {}", bin.join("rustup").display())), "{shown}");
}

#[test]
fn a_pinned_program_that_changed_its_place_is_refused() {
    let (test_agent, bin) = with_toolchain();
    run_with_path(&test_agent, bin.to_str().unwrap(), &["allow", "cargo"]);
    let elsewhere = test_agent.path().join("elsewhere/rustup");
    write_program(&elsewhere, "#!/bin/sh\n");
    let changes: [&dyn Fn(); 3] = [
        // Others could write another program.
        &|| fs::set_permissions(bin.join("rustup"), Permissions::from_mode(0o757)).unwrap(),
        // A link takes the place of the program.
        &|| {
            fs::rename(bin.join("rustup"), bin.join("moved")).unwrap();
            symlink(&elsewhere, bin.join("rustup")).unwrap();
        },
        &|| fs::remove_file(bin.join("rustup")).unwrap(),
    ];
    for change in changes {
        change();
        let verdict = explain(&test_agent, "cargo build");
        assert_eq!(verdict["decision"], "deny", "{verdict}");
        let detail = verdict["reasons"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("is no longer the program"), "{detail}");
        assert!(detail.contains("`collieclaw allow cargo`"), "{detail}");
        let doctor = test_agent.run(&["doctor"]).out;
        assert!(
            doctor.contains("✗ program cargo: ") && doctor.contains("collieclaw allow cargo"),
            "{doctor}"
        );
    }
    // The cure works.
    fs::rename(bin.join("moved"), bin.join("rustup")).unwrap();
    fs::set_permissions(bin.join("rustup"), Permissions::from_mode(0o755)).unwrap();
    run_with_path(&test_agent, bin.to_str().unwrap(), &["allow", "cargo"]);
    assert_eq!(explain(&test_agent, "cargo build")["decision"], "ask");
}

/// The user's own shell would run the first program in `PATH`, so the agent does as well.
#[test]
fn the_first_folder_of_the_path_decides() {
    let test_agent = TestAgent::new();
    let bin = test_agent.path().canonicalize().unwrap().join(".local/bin");
    write_program(&bin.join("uname"), "#!/bin/sh\necho mine\n");
    run_with_path(&test_agent, bin.to_str().unwrap(), &["allow", "uname"]);
    assert_eq!(pinned(&test_agent)["uname"]["real"], json!(bin.join("uname")));
    // Allowed again with another `PATH`, the program of the system takes its place.
    test_agent.run(&["allow", "uname"]);
    assert_eq!(pinned(&test_agent), json!({}));
    // A command that was not allowed again keeps its meaning, whatever `PATH` says.
    write_program(&bin.join("ls"), "#!/bin/sh\necho mine\n");
    run_with_path(&test_agent, bin.to_str().unwrap(), &["allow", "uname"]);
    assert!(pinned(&test_agent).get("ls").is_none());
}

#[test]
fn folders_that_others_or_tools_can_change_do_not_count() {
    let test_agent = TestAgent::new();
    let home = test_agent.path().canonicalize().unwrap();
    let open = home.join("open");
    let in_workspace = test_agent.workspace().canonicalize().unwrap().join("bin");
    let linked = home.join("linked");
    for folder in [&open, &in_workspace, &home.join("relative")] {
        write_program(&folder.join("hay"), "#!/bin/sh\n");
    }
    fs::create_dir(&linked).unwrap();
    symlink(in_workspace.join("hay"), linked.join("hay")).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    for (path, why) in [
        ("relative", "a relative folder in `PATH`"),
        (".", ""),
        (open.to_str().unwrap(), "other users could replace the program"),
        (in_workspace.to_str().unwrap(), "tools can change this folder"),
        (linked.to_str().unwrap(), "tools can change this folder"),
    ] {
        let allowed = run_with_path(&test_agent, path, &["allow", "hay"]);
        assert!(allowed.err.contains("no installed program is called `hay`"), "{path}: {allowed:?}");
        assert!(allowed.err.contains(why), "{path}: {allowed:?}");
        assert_eq!(pinned(&test_agent), json!({}), "{path}");
        assert_eq!(explain(&test_agent, "hay")["decision"], "deny", "{path}");
    }
}

#[test]
fn toolchains_are_readable_and_their_secrets_closed() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let at = |path: &str| home.join(path);
    for (file, text) in [
        (".cargo/bin/cargo", ""),
        (".cargo/credentials.toml", "token"),
        (".cargo/registry/cache/index.crates.io-1/hay-1.0.0.crate", "crate"),
        (".cargo/registry/index/index.crates.io-1/.cache/ha/y/hay", "index"),
        (".nvm/versions/node/v20/bin/node", ""),
        (".nvm/.npmrc", "token"),
        (".nvm/versions/node/v20/etc/npmrc", "token"),
        (".nvm/versions/node/v22/etc/other", ""),
        (".rustup/settings.toml", ""),
        (".collieclaw/config.toml", ""),
    ] {
        fs::create_dir_all(at(file).parent().unwrap()).unwrap();
        fs::write(at(file), text).unwrap();
    }
    let (user_home, own_home, variables) = (home.clone(), at(".collieclaw"), BTreeMap::new());
    let places = ToolchainPlaces { user_home: &user_home, own_home: &own_home, variables: &variables };
    let mut rules = WorkspaceRules::new(&at("project"), None);
    assert_eq!(
        toolchain_access(&rules, &places).unwrap(),
        Default::default(),
        "nothing is allowed, nothing is open"
    );
    rules.allowed_commands.insert("cargo".to_owned());
    rules.toolchain_folders.extend([
        at(".cargo"),
        at(".nvm"),
        home.clone(),
        at(".collieclaw"),
        at("missing"),
    ]);
    let access = toolchain_access(&rules, &places).unwrap();
    assert!(access.read.contains(&at(".cargo")) && access.read.contains(&at(".rustup")), "{access:?}");
    assert!(!access.read.contains(&home) && !access.read.contains(&at(".collieclaw")), "{access:?}");
    let secrets =
        [".cargo/credentials", ".cargo/credentials.toml", ".nvm/.npmrc", ".nvm/versions/node/v20/etc/npmrc"];
    assert_eq!(access.closed, secrets.map(at), "existing ones, and those that may appear");
    let cache = places.cache_folder(&rules.path);
    assert!(cache.starts_with(at(".cache/collieclaw")), "{cache:?}");
    assert_eq!(access.write, std::slice::from_ref(&cache));
    // Without settings of the user, `git` must not read those that a command has written into its home.
    let settings = cache.with_extension("gitconfig");
    assert!(access.read.contains(&settings), "{access:?}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "");
    let variable =
        |name: &str| access.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    for (name, value) in [
        ("CARGO_HOME", cache.join("cargo")),
        ("HOME", cache.join("home")),
        ("npm_config_cache", cache.join("npm")),
        ("PIP_CACHE_DIR", cache.join("pip")),
        ("GOCACHE", cache.join("go-build")),
        ("GOMODCACHE", cache.join("go-mod")),
        ("GOPATH", cache.join("go")),
        ("RUSTUP_HOME", at(".rustup")),
        ("GIT_CONFIG_GLOBAL", settings),
    ] {
        assert_eq!(variable(name), Some(&value.into_os_string()), "{name}");
    }
    // Cargo finds the crates that the user has, and can't change the user's files.
    let seeded = cache.join("cargo/registry");
    let krate = seeded.join("cache/index.crates.io-1/hay-1.0.0.crate");
    assert_eq!(fs::read_link(&krate).unwrap(), at(".cargo/registry/cache/index.crates.io-1/hay-1.0.0.crate"));
    let index = seeded.join("index/index.crates.io-1/.cache/ha/y/hay");
    assert!(fs::symlink_metadata(&index).unwrap().is_file());
    assert_eq!(fs::read_to_string(index).unwrap(), "index");
}

/// Commands can write to the cache, also something that would keep CollieClaw from starting again.
#[test]
fn a_cache_that_commands_have_damaged_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let (own_home, variables) = (home.join(".collieclaw"), BTreeMap::new());
    let places = ToolchainPlaces { user_home: &home, own_home: &own_home, variables: &variables };
    let mut rules = WorkspaceRules::new(&home.join("project"), None);
    rules.allowed_commands.insert("x".to_owned());
    let cache = places.cache_folder(&rules.path);
    fs::create_dir_all(&cache).unwrap();
    symlink("gone", cache.join("npm")).unwrap();
    symlink(&home, cache.join("home")).unwrap();
    fs::write(cache.join("pip"), "text").unwrap();
    fs::create_dir(cache.join("go")).unwrap();
    for closed in ["go", ""] {
        fs::set_permissions(cache.join(closed), Permissions::from_mode(0o000)).unwrap();
    }
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    toolchain_access(&rules, &places).unwrap();
    for name in ["npm", "home", "pip", "go", ""] {
        let found = cache.join(name).symlink_metadata().unwrap();
        assert_eq!((found.is_dir(), found.mode() & 0o777), (true, 0o700), "{name}");
    }
    assert_eq!(home.metadata().unwrap().mode() & 0o777, 0o755, "the target of a symlink");
}

/// The kernel reports real paths, and the gate compares them with the policy.
#[test]
fn the_cache_is_a_real_path_also_behind_a_symlink() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let (own_home, mut variables) = (home.join(".collieclaw"), BTreeMap::new());
    symlink("big-disk", home.join(".cache")).unwrap();
    symlink(home.join("big-disk"), home.join("caches")).unwrap();
    let real = home.join("big-disk/collieclaw");
    let rules = WorkspaceRules::new(&home.join("project"), None);
    for variable in [None, Some(home.join("caches").display().to_string())] {
        variables.extend(variable.map(|folder| ("XDG_CACHE_HOME".to_owned(), folder)));
        let places = ToolchainPlaces { user_home: &home, own_home: &own_home, variables: &variables };
        assert_eq!(places.all_caches(), real);
        assert!(places.cache_folder(&rules.path).starts_with(&real));
        fs::create_dir_all(&real).unwrap();
    }
}

#[test]
fn nothing_of_a_removed_cache_remains() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let (own_home, variables) = (home.join(".collieclaw"), BTreeMap::new());
    let places = ToolchainPlaces { user_home: &home, own_home: &own_home, variables: &variables };
    let workspace = home.join("project");
    let other = places.all_caches().join("other.gitconfig");
    let mut rules = WorkspaceRules::new(&workspace, None);
    rules.allowed_commands.insert("x".to_owned());
    for _ in 0..2 {
        toolchain_access(&rules, &places).unwrap();
        fs::write(&other, "").unwrap();
        assert_eq!(fs::read_dir(places.all_caches()).unwrap().count(), 3);
        places.remove_cache(&workspace).unwrap();
        let left: Vec<_> =
            fs::read_dir(places.all_caches()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, std::slice::from_ref(&other));
        places.remove_cache(&workspace).unwrap();
    }
}

/// A program in `~/X/bin` needs the parts of its installation, not everything that is in `~/X`.
#[test]
fn only_the_parts_of_an_installation_become_readable() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let at = |path: &str| home.join(path);
    for file in [
        "tools/bin/herd",
        "tools/lib/herd.so",
        "tools/share/herd/data",
        "tools/diary.txt",
        "tools/private/key",
        "tools/.env",
        ".secretive/bin/count",
        ".secretive/token",
        "venv/bin/python",
        "venv/pyvenv.cfg",
        "venv/notes",
        "jdk/bin/java",
        "jdk/lib/modules",
        "jdk/conf/net.properties",
        "golang/bin/go",
        "golang/VERSION",
        "golang/pkg/tool/compile",
        "golang/src/runtime/proc.go",
        "golang/notes",
        ".nvm/versions/node/v20/bin/node",
        ".nvm/versions/node/v20/lib/node_modules/npm/index.js",
        "diaries/today",
    ] {
        fs::create_dir_all(at(file).parent().unwrap()).unwrap();
        fs::write(at(file), "text").unwrap();
    }
    // A symlink is no part of the installation that it is in.
    symlink(at("diaries"), at("tools/libexec")).unwrap();
    let (user_home, own_home, variables) = (home.clone(), at(".collieclaw"), BTreeMap::new());
    let places = ToolchainPlaces { user_home: &user_home, own_home: &own_home, variables: &variables };
    let read = |program: &str| {
        let mut rules = WorkspaceRules::new(&at("project"), None);
        rules.allowed_commands.insert("x".to_owned());
        let pinned = PinnedProgram { found: at(program), real: at(program) };
        rules.programs.insert("x".to_owned(), pinned);
        let mut read = toolchain_access(&rules, &places).unwrap().read;
        // The file with the user's name for commits.
        read.retain(|path| path.extension() != Some("gitconfig".as_ref()));
        read
    };
    for (program, parts) in [
        ("tools/bin/herd", &["tools/bin", "tools/lib", "tools/share"][..]),
        (".secretive/bin/count", &[".secretive/bin"]),
        ("venv/bin/python", &["venv/bin", "venv/pyvenv.cfg"]),
        ("jdk/bin/java", &["jdk/bin", "jdk/conf", "jdk/lib"]),
        ("golang/bin/go", &["golang/VERSION", "golang/bin", "golang/pkg", "golang/src"]),
        // The secrets of toolchain managers are known.
        (".nvm/versions/node/v20/bin/node", &[".nvm/versions/node/v20", ".nvm/versions/node/v20/bin"]),
    ] {
        assert_eq!(read(program), parts.iter().map(|part| at(part)).collect::<Vec<_>>(), "{program}");
    }
}

/// Without a network, package managers fail at once instead of trying again.
#[test]
fn programs_are_told_whether_there_is_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let (own_home, variables) = (home.join(".collieclaw"), BTreeMap::new());
    let places = ToolchainPlaces { user_home: &home, own_home: &own_home, variables: &variables };
    for (network, expected) in [(WorkspaceNetwork::None, true), (WorkspaceNetwork::Listed, false)] {
        let mut rules = WorkspaceRules { network, ..WorkspaceRules::new(&home.join("project"), None) };
        rules.allowed_commands.insert("npm".to_owned());
        let environment = toolchain_access(&rules, &places).unwrap().environment;
        let value =
            |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        for name in ["CARGO_NET_OFFLINE", "npm_config_offline", "PIP_RETRIES", "UV_OFFLINE", "GOTOOLCHAIN"] {
            assert_eq!(value(name).is_some(), expected, "{name}");
        }
        // `go` uses the modules that the user has downloaded, and asks nobody else.
        let downloads = home.join("go/pkg/mod/cache/download");
        assert_eq!(value("GOPROXY"), expected.then(|| "off".into()));
        fs::create_dir_all(&downloads).unwrap();
        let environment = toolchain_access(&rules, &places).unwrap().environment;
        let proxy = environment.into_iter().find(|(name, _)| name == "GOPROXY");
        let address = format!("file://{}", downloads.display());
        assert_eq!(proxy.map(|(_, value)| value), expected.then(|| address.into()));
        fs::remove_dir_all(home.join("go")).unwrap();
    }
}
