//! C7.4: files opened through the handle of the workspace are inside it, whatever their names say.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use collieclaw_agent::security::{
    FileError, ListingDepth, ListingEntry, ListingKind, OutputMode, WriteOutcome,
};
use collieclaw_gate::{PathBounds, absolute_tool_path};

use crate::test_workspace::{SECRET, TestWorkspace};

fn read(test_workspace: &TestWorkspace, path: &str) -> Result<String, String> {
    let place =
        absolute_tool_path(path, &test_workspace.policy).map_err(|reason| reason.code().to_owned())?;
    let file = test_workspace.access().open_for_reading(&place).map_err(error_code)?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn replace(test_workspace: &TestWorkspace, path: &str, text: &str) -> Result<WriteOutcome, String> {
    let place =
        absolute_tool_path(path, &test_workspace.policy).map_err(|reason| reason.code().to_owned())?;
    test_workspace.access().replace(&place, text.as_bytes()).map_err(error_code)
}

fn error_code(error: FileError) -> String {
    match error {
        FileError::Refused(reason) => reason.code().to_owned(),
        other => other.to_string(),
    }
}

fn make_fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
}

#[test]
fn files_of_the_workspace_are_read_by_any_way_that_stays_inside() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("notes/today.txt", "hello");
    test_workspace.link("notes", "inner");
    test_workspace.link("notes/today.txt", "latest");
    test_workspace.link(test_workspace.path.join("notes/today.txt"), "absolute");
    test_workspace.link(test_workspace.path.join("notes"), "absolute-folder");
    let full = test_workspace.path.join("notes/today.txt");
    for path in [
        "notes/today.txt",
        "./notes//today.txt",
        "notes/../notes/today.txt",
        "inner/today.txt",
        "latest",
        "absolute",
        "absolute-folder/today.txt",
        full.to_str().unwrap(),
        "~/workspace/notes/today.txt",
    ] {
        assert_eq!(read(&test_workspace, path).as_deref(), Ok("hello"), "{path}");
    }
}

#[test]
fn no_way_leads_out_of_the_workspace() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("a/b/file", "x");
    test_workspace.link("/etc/passwd", "passwd");
    test_workspace.link("../secret", "up");
    test_workspace.link("..", "parent");
    test_workspace.link("a/b/../../../secret", "winding");
    test_workspace.link("/proc/self/root", "root");
    test_workspace.link("/proc/self/cwd", "cwd");
    test_workspace.link(&test_workspace.home, "home");
    for path in [
        "/etc/passwd",
        "../secret",
        "a/../../secret",
        "passwd",
        "up",
        "parent/secret",
        "winding",
        "root/etc/passwd",
        "cwd",
        "home/secret",
        "home/.ssh/id",
        "~/secret",
        "~//etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
    ] {
        let found = read(&test_workspace, path).unwrap_err();
        let refused = ["outside-workspace", "own-home", "forbidden-path"].contains(&found.as_str())
            || found.starts_with("can't be resolved");
        assert!(refused, "{path}: {found}");
        assert!(replace(&test_workspace, path, "overwritten").is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(test_workspace.home.join("secret")).unwrap(), SECRET);
}

#[test]
fn a_path_is_a_path_and_nothing_else() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("file", "text");
    let long = "x".repeat(300);
    for (path, fault) in [
        ("", "not-a-path"),
        ("a\0b", "not-a-path"),
        ("~root/x", "not-a-path"),
        ("file/", "is not a folder"),
        ("file/.", "is not a folder"),
        ("file/x", "is not a folder"),
        (".", "is a folder"),
        ("FILE", "does not exist"),
        ("ｆile", "does not exist"),
        ("file ", "does not exist"),
        (&long, "can't be accessed: File name too long (os error 36)"),
    ] {
        assert_eq!(read(&test_workspace, path), Err(fault.to_owned()), "{path:?}");
    }
}

#[test]
fn special_files_are_neither_opened_nor_waited_for() {
    let test_workspace = TestWorkspace::new();
    make_fifo(&test_workspace.path.join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(test_workspace.path.join("socket")).unwrap();
    fs::create_dir(test_workspace.path.join("folder")).unwrap();
    for (path, fault) in [
        ("pipe", "is neither a file nor a folder"),
        ("socket", "is neither a file nor a folder"),
        ("folder", "is a folder"),
    ] {
        assert_eq!(read(&test_workspace, path), Err(fault.to_owned()), "{path}");
        assert_eq!(replace(&test_workspace, path, "x"), Err(fault.to_owned()), "{path}");
        let output =
            test_workspace.access().open_for_output(&test_workspace.path.join(path), OutputMode::Truncate);
        assert_eq!(output.map_err(error_code).unwrap_err(), fault, "{path}");
    }
}

#[test]
fn forbidden_places_and_our_own_home_are_out_of_reach_inside_the_workspace_too() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.write("vault/key", SECRET);
    test_workspace.write("own/config.toml", SECRET);
    test_workspace.link("vault", "alias");
    test_workspace.policy.forbidden_paths.push(test_workspace.path.join("vault"));
    test_workspace.policy.own_home = test_workspace.path.join("own");
    for (path, code) in [
        ("vault/key", "forbidden-path"),
        ("alias/key", "forbidden-path"),
        ("vault/new", "forbidden-path"),
        ("alias/new/deep", "forbidden-path"),
        ("own/config.toml", "own-home"),
        ("own/new", "own-home"),
    ] {
        assert_eq!(replace(&test_workspace, path, "x"), Err(code.to_owned()), "{path}");
        let output =
            test_workspace.access().open_for_output(&test_workspace.path.join(path), OutputMode::Append);
        // A redirection creates no folders.
        let code = if path == "alias/new/deep" { "does not exist" } else { code };
        assert_eq!(output.map_err(error_code).unwrap_err(), code, "{path}");
    }
    assert_eq!(read(&test_workspace, "alias/key"), Err("forbidden-path".to_owned()));
    assert_eq!(
        (test_workspace.text("vault/key"), test_workspace.text("own/config.toml")),
        (SECRET.into(), SECRET.into())
    );
    let names: Vec<_> = fs::read_dir(test_workspace.path.join("vault")).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing was made there");

    let listing = test_workspace.access().list(&test_workspace.path, ListingDepth::Recursive, 100).unwrap();
    let paths: Vec<_> = listing.entries.iter().map(|entry| entry.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["alias", "own", "vault"]);
}

#[test]
fn a_file_is_made_with_its_folders_or_replaced_as_a_whole() {
    let test_workspace = TestWorkspace::new();
    assert_eq!(replace(&test_workspace, "new/deep/file.txt", "one"), Ok(WriteOutcome::Created));
    assert_eq!(replace(&test_workspace, "new/deep/file.txt", "two"), Ok(WriteOutcome::Replaced));
    assert_eq!(test_workspace.text("new/deep/file.txt"), "two");
    let names: Vec<_> = fs::read_dir(test_workspace.path.join("new/deep")).unwrap().collect();
    assert_eq!(names.len(), 1, "no sibling is left");
    for path in ["new/", "other/", "other/.", "missing/../x"] {
        assert!(replace(&test_workspace, path, "x").is_err(), "{path}");
    }
}

#[test]
fn a_replaced_file_keeps_its_mode_and_open_readers_keep_the_old_text() {
    let test_workspace = TestWorkspace::new();
    let place = test_workspace.write("script.sh", "old");
    fs::set_permissions(&place, PermissionsExt::from_mode(0o4750)).unwrap();
    let mut held = File::open(&place).unwrap();
    assert_eq!(replace(&test_workspace, "script.sh", "new"), Ok(WriteOutcome::Replaced));
    let mut old = String::new();
    held.read_to_string(&mut old).unwrap();
    assert_eq!((old.as_str(), test_workspace.text("script.sh").as_str()), ("old", "new"));
    // The set-uid bit is not restored.
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[test]
fn a_link_is_written_through_and_one_that_leads_nowhere_is_refused() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("real/file", "old");
    test_workspace.link("real/file", "link");
    test_workspace.link("nothing", "dangling");
    test_workspace.link("/nowhere/at/all", "away");
    assert_eq!(replace(&test_workspace, "link", "new"), Ok(WriteOutcome::Replaced));
    assert_eq!(test_workspace.text("real/file"), "new");
    assert!(fs::symlink_metadata(test_workspace.path.join("link")).unwrap().is_symlink());
    assert_eq!(replace(&test_workspace, "dangling", "x"), Err("is a broken symlink".to_owned()));
    assert!(replace(&test_workspace, "away", "x").is_err());
    let output =
        test_workspace.access().open_for_output(&test_workspace.path.join("dangling"), OutputMode::Truncate);
    assert_eq!(error_code(output.unwrap_err()), "is a broken symlink");
    assert!(!test_workspace.path.join("nothing").exists());
}

#[test]
fn a_file_with_another_name_is_read_but_not_written() {
    let test_workspace = TestWorkspace::new();
    fs::hard_link(test_workspace.home.join("secret"), test_workspace.path.join("twin")).unwrap();
    assert_eq!(replace(&test_workspace, "twin", "x"), Err("hard-link".to_owned()));
    for output in [OutputMode::Truncate, OutputMode::Append] {
        let opened = test_workspace.access().open_for_output(&test_workspace.path.join("twin"), output);
        assert_eq!(error_code(opened.unwrap_err()), "hard-link");
    }
    assert_eq!(read(&test_workspace, "twin").as_deref(), Ok(SECRET));
    assert_eq!(fs::read_to_string(test_workspace.home.join("secret")).unwrap(), SECRET);
}

#[test]
fn output_is_led_to_a_file_as_a_shell_does_it() {
    let test_workspace = TestWorkspace::new();
    let place = test_workspace.path.join("log");
    for (output, text) in
        [(OutputMode::Truncate, "one"), (OutputMode::Append, "two"), (OutputMode::Truncate, "three")]
    {
        let file = test_workspace.access().open_for_output(&place, output).unwrap();
        rustix::io::write(&file, text.as_bytes()).unwrap();
    }
    assert_eq!(test_workspace.text("log"), "three");
    let missing =
        test_workspace.access().open_for_output(&test_workspace.path.join("no/log"), OutputMode::Truncate);
    assert_eq!(error_code(missing.unwrap_err()), "does not exist");
}

#[test]
fn a_file_that_is_not_writable_is_not_replaced() {
    let test_workspace = TestWorkspace::new();
    let place = test_workspace.write("kept", "old");
    fs::set_permissions(&place, PermissionsExt::from_mode(0o444)).unwrap();
    // Root may write to everything.
    let may = rustix::process::geteuid().is_root();
    assert_eq!(replace(&test_workspace, "kept", "new").is_ok(), may);
}

#[test]
fn where_paths_may_lead_anywhere_forbidden_places_stay_forbidden() {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.bounds = PathBounds::Anywhere;
    test_workspace.link("../secret", "up");
    test_workspace.link("../.ssh", "keys");
    assert_eq!(read(&test_workspace, "~/secret").as_deref(), Ok(SECRET));
    assert_eq!(read(&test_workspace, "up").as_deref(), Ok(SECRET));
    for (path, code) in [
        ("keys/id", "forbidden-path"),
        ("~/.ssh/id", "forbidden-path"),
        ("/etc/passwd", "forbidden-path"),
        ("~/.collieclaw/config.toml", "own-home"),
    ] {
        assert_eq!(read(&test_workspace, path), Err(code.to_owned()), "{path}");
        assert_eq!(replace(&test_workspace, path, "x"), Err(code.to_owned()), "{path}");
    }
    let magic = read(&test_workspace, "/proc/self/root/etc/hostname").unwrap_err();
    assert!(magic.starts_with("can't be resolved"), "{magic}");
}

#[test]
fn a_listing_names_kinds_and_sizes_and_says_when_it_is_cut() {
    let test_workspace = TestWorkspace::new();
    test_workspace.write("b/deep/file", "12345");
    test_workspace.write("a.txt", "123");
    test_workspace.link("b", "link");
    make_fifo(&test_workspace.path.join("pipe"));
    let list = |depth, most| test_workspace.access().list(&test_workspace.path, depth, most).unwrap();
    let entry = |path: &str, kind| ListingEntry { path: path.into(), kind };
    let top = [
        entry("a.txt", ListingKind::File { bytes: 3 }),
        entry("b", ListingKind::Folder),
        entry("link", ListingKind::Link { to: "b".into() }),
        entry("pipe", ListingKind::Special),
    ];
    let listing = list(ListingDepth::Shallow, 100);
    assert_eq!((listing.entries.as_slice(), listing.truncated), (top.as_slice(), false));
    let all = list(ListingDepth::Recursive, 100).entries;
    let paths: Vec<PathBuf> = all.into_iter().map(|entry| entry.path).collect();
    let expected = ["a.txt", "b", "b/deep", "b/deep/file", "link", "pipe"];
    assert_eq!(paths, expected.map(PathBuf::from));
    let cut = list(ListingDepth::Recursive, 5);
    assert!(cut.truncated && cut.entries.len() == 5);
    assert!(list(ListingDepth::Shallow, 3).truncated);
    assert!(!list(ListingDepth::Shallow, 4).truncated);
}

#[test]
fn names_that_are_no_text_are_listed_too() {
    let test_workspace = TestWorkspace::new();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    fs::write(test_workspace.path.join(name), "").unwrap();
    let listing = test_workspace.access().list(&test_workspace.path, ListingDepth::Shallow, 10).unwrap();
    assert_eq!(listing.entries[0].path.as_os_str(), name);
}
