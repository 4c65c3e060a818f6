//! `file_search` and `file_glob`: confined to the workspace, bounded, and in linear time.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{agent_with_files, lines, refused};

#[test]
fn lines_are_found_with_their_paths_and_numbers() {
    let test_agent = agent_with_files(&[
        ("src/main.rs", "fn main() {\n    hello();\n}\nfn hello() {}\n"),
        ("src/lib.py", "def hello(): pass\n"),
        ("notes.txt", "Hello\n"),
        (".gitignore", "/target/\n*.log\n!keep.log\n"),
        ("target/out.txt", "hello\n"),
        ("a.log", "hello\n"),
        ("keep.log", "hello\n"),
        (".hidden", "hello\n"),
        ("sub/.gitignore", "inner.txt\n"),
        ("sub/inner.txt", "hello\n"),
        (".git/config", "hello\n"),
    ]);
    let search = |arguments| lines(&test_agent, "file_search", &arguments);
    assert_eq!(
        search(json!({ "pattern": "hello" })),
        [
            "keep.log:1:hello",
            "src/lib.py:1:def hello(): pass",
            "src/main.rs:2:    hello();",
            "src/main.rs:4:fn hello() {}"
        ]
    );
    assert_eq!(
        search(json!({ "pattern": "^fn h", "path": "src", "glob": "*.rs" })),
        ["src/main.rs:4:fn hello() {}"]
    );
    assert_eq!(
        search(json!({ "pattern": "HELLO", "ignore_case": true, "path": "notes.txt" })),
        ["notes.txt:1:Hello"]
    );
    assert_eq!(search(json!({ "pattern": "hello()", "fixed": true })).len(), 3);
    assert_eq!(
        search(json!({ "pattern": "hello\\(\\);", "context": 1 })),
        ["src/main.rs-1-fn main() {", "src/main.rs:2:    hello();", "src/main.rs-3-}"]
    );
    assert_eq!(search(json!({ "pattern": "hello", "hidden": true, "ignored": true })).len(), 8);
    assert_eq!(search(json!({ "pattern": "nowhere" })), ["no matches"]);
    let first = test_agent.call_output("file_search", &json!({ "pattern": "hello", "limit": 3 }).to_string());
    assert!(first.contains("next_offset: 3"), "{first}");
    assert_eq!(
        search(json!({ "pattern": "hello", "limit": 3, "offset": 3 })),
        ["src/main.rs:4:fn hello() {}"]
    );
}

#[test]
fn files_are_found_by_name_or_by_their_age() {
    let test_agent = agent_with_files(&[
        ("a.rs", ""),
        ("src/b.rs", ""),
        ("src/deep/c.rs", ""),
        ("src/d.py", ""),
        ("build/e.rs", ""),
        (".gitignore", "build\n"),
        (".secret.rs", ""),
    ]);
    let glob = |arguments| lines(&test_agent, "file_glob", &arguments);
    assert_eq!(glob(json!({ "pattern": "**/*.rs" })), ["a.rs", "src/b.rs", "src/deep/c.rs"]);
    assert_eq!(glob(json!({ "pattern": "*.rs", "path": "src" })), ["src/b.rs", "src/deep/c.rs"]);
    assert_eq!(glob(json!({ "pattern": "src/*.{rs,py}" })), ["src/b.rs", "src/d.py"]);
    assert_eq!(glob(json!({ "pattern": "*.rs", "hidden": true, "ignored": true })).len(), 5);
    assert_eq!(glob(json!({ "pattern": "*.go" })), ["no files match"]);
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options()
        .write(true)
        .open(test_agent.workspace().join("a.rs"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert_eq!(glob(json!({ "pattern": "*.rs", "sort": "newest" })).last().unwrap(), "a.rs");
    assert_eq!(glob(json!({ "pattern": "*.rs", "limit": 1, "offset": 1 })), ["src/b.rs"]);
}

#[test]
fn nothing_outside_and_nothing_forbidden_is_searched() {
    let test_agent = agent_with_files(&[("a.txt", "needle\n"), ("kept/secret/key", "needle\n")]);
    let (workspace, outside) = (test_agent.workspace(), test_agent.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "needle\n").unwrap();
    symlink(&outside, workspace.join("folder")).unwrap();
    symlink(outside.join("x"), workspace.join("file")).unwrap();
    let test_agent = test_agent.with_config_change(
        "forbidden_paths = [",
        &format!("forbidden_paths = [\"{}\", ", workspace.join("kept/secret").display()),
    );
    assert_eq!(lines(&test_agent, "file_search", &json!({ "pattern": "needle" })), ["a.txt:1:needle"]);
    assert_eq!(lines(&test_agent, "file_glob", &json!({ "pattern": "**/x" })), ["no files match"]);
    assert_eq!(lines(&test_agent, "file_glob", &json!({ "pattern": "**/key" })), ["no files match"]);
    for (path, reason) in [
        ("folder", "outside-workspace"),
        ("file", "outside-workspace"),
        ("kept/secret", "forbidden-path"),
        ("/etc", "forbidden-path"),
        ("~/.collieclaw", "own-home"),
    ] {
        let arguments = json!({ "pattern": "needle", "path": path });
        assert_eq!(refused(&test_agent, "file_search", &arguments), (4, reason.to_owned()), "{path}");
        assert_eq!(refused(&test_agent, "file_glob", &arguments), (4, reason.to_owned()), "{path}");
    }
}

#[test]
fn a_folder_that_becomes_a_symlink_during_the_walk_leads_nowhere() {
    let test_agent = agent_with_files(&[("a.txt", "inside\n")]);
    let (workspace, outside) = (test_agent.workspace(), test_agent.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "needle\n").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (place, spare) = (workspace.join("z"), workspace.join("y"));
            fs::create_dir(&place).unwrap();
            fs::write(place.join("x"), "inside\n").unwrap();
            symlink(&outside, &spare).unwrap();
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !done.load(Ordering::SeqCst) {
                rustix::fs::renameat_with(rustix::fs::CWD, &place, rustix::fs::CWD, &spare, flags).unwrap();
            }
        });
        for _ in 0..20 {
            let found = test_agent.call_output("file_search", &json!({ "pattern": "needle" }).to_string());
            assert!(found.starts_with("no matches"), "{found}");
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn hostile_patterns_and_files_are_harmless() {
    let test_agent = agent_with_files(&[("a.txt", &format!("{}\n", "a".repeat(100_000)))]);
    let workspace = test_agent.workspace();
    fs::write(workspace.join("binary"), b"needle\0needle\n").unwrap();
    fs::File::create(workspace.join("huge")).unwrap().set_len(10 << 30).unwrap();
    fs::write(workspace.join(std::ffi::OsStr::from_bytes(b"new\nline\x1b[2J\xff")), "needle\x1b[2J\n")
        .unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join("pipe"), 0o600.into()).unwrap();
    let found = lines(&test_agent, "file_search", &json!({ "pattern": "needle" }));
    assert_eq!(found, ["new\\nline\\u{1b}[2J\u{fffd}:1:needle\\u{1b}[2J"]);
    // A backtracking engine would need ages for this.
    assert_eq!(lines(&test_agent, "file_search", &json!({ "pattern": "(a+)+$b" })), ["no matches"]);
    for pattern in ["(a{1000}){1000}", "[", "(?<=a)b", ""] {
        let arguments = json!({ "pattern": pattern });
        assert_eq!(
            refused(&test_agent, "file_search", &arguments),
            (1, "bad-arguments".to_owned()),
            "{pattern}"
        );
    }
    for pattern in ["[", "{a", ""] {
        let arguments = json!({ "pattern": pattern });
        assert_eq!(
            refused(&test_agent, "file_glob", &arguments),
            (1, "bad-arguments".to_owned()),
            "{pattern}"
        );
    }
    let long = test_agent.call_output("file_search", &json!({ "pattern": "aaa" }).to_string());
    assert!(long.len() < 1000, "{}", long.len());
}

#[test]
fn heavy_a_folder_with_many_files_is_bounded_in_size_and_time() {
    let test_agent =
        agent_with_files(&[]).with_config_change("tool_timeout = \"30s\"", "tool_timeout = \"10m\"");
    let folder = test_agent.workspace().join("many");
    fs::create_dir(&folder).unwrap();
    for number in 0..100_000 {
        fs::File::create(folder.join(format!("{number:06}"))).unwrap();
    }
    let found = test_agent.call_output("file_glob", &json!({ "pattern": "many/*" }).to_string());
    assert!(found.contains("total: 100000") && found.len() < 40_000, "{}", found.len());
    let arguments = json!({ "pattern": "nowhere" }).to_string();
    // Looking at so many files takes longer than a millisecond on every machine.
    let hurried = test_agent.with_config_change("tool_timeout = \"10m\"", "tool_timeout = \"1ms\"");
    for tool in ["file_search", "file_glob"] {
        hurried.assert_call_fails(tool, &arguments, "took longer than 0.001 s");
    }
}
