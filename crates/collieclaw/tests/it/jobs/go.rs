//! C16, C19.5: a Go project is built and tested with a toolchain in the user's home.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::{JobFolder, JobScript};

/// A script in the place of `go`, whose toolchain has more than 400 megabytes. It does what `go` does in the sandbox: it
/// reads the files of its installation, compiles into the temporary folder, runs the result from there, and writes into
/// its caches, in which the files of modules are read-only.
const STAND_IN: &str = r#"#!/bin/sh
set -eu
root=$(dirname "$(dirname "$(readlink -f "$0")")")
read -r version < "$root/VERSION"
test -r "$root/src/runtime/proc.go" && test -x "$root/pkg/tool/compile"
case $1 in
version) echo "go version $version linux/amd64" ;;
env) eval "echo \$$2" ;;
test)
    work=$(mktemp -d "${TMPDIR:-/tmp}/go-build.XXXXXX")
    echo 'int main(void) { return 0; }' > "$work/main.c"
    gcc -o "$work/flock.test" "$work/main.c"
    echo object > "$GOCACHE/object"
    mkdir -p "$GOMODCACHE/example.org/dep" "$GOPATH/bin"
    [ -e "$GOMODCACHE/example.org/dep/go.mod" ] || echo module > "$GOMODCACHE/example.org/dep/go.mod"
    chmod 0444 "$GOMODCACHE/example.org/dep/go.mod"
    "$work/flock.test"
    printf 'ok  \texample.org/flock\t0.01s\n' ;;
esac
"#;

#[test]
fn a_go_project_is_tested_with_a_toolchain_in_the_home() {
    let mut job = JobFolder::create(&[
        ("go.mod", "module example.org/flock\n\ngo 1.22\n"),
        ("flock.go", "package flock\n\nfunc Count(sheep []string) int { return len(sheep) }\n"),
    ]);
    let root = job.test_agent.path().canonicalize().unwrap().join("sdk/go1.22.0");
    for (file, text, mode) in [
        ("bin/go", STAND_IN, 0o755),
        ("pkg/tool/compile", "", 0o755),
        ("src/runtime/proc.go", "package runtime\n", 0o644),
        ("VERSION", "go1.22.0\n", 0o644),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
        fs::set_permissions(root.join(file), Permissions::from_mode(mode)).unwrap();
    }
    job.search_path = format!("{}:/usr/bin:/bin", root.join("bin").display());
    job.trust(&["--preset", "go"]);
    let script = JobScript::default()
        .shell("go version", "go1.22.0")
        .shell("go env GOCACHE", "/.cache/collieclaw/")
        .shell("go test ./...", "ok  \texample.org/flock")
        .shell("GOFLAGS=-count=1 go test -race -run 'TestCount/a' ./... 2>&1 | tail -n 1", "ok  ")
        // The home of the commands is kept, with everything that a toolchain puts there.
        .shell("mkdir -p \"$HOME/.config\" && echo kept > \"$HOME/.config/tool\"", "exit_code: 0")
        .shell("cat \"$HOME/.config/tool\"", "kept\n")
        .shell("for package in ./...; do go test \"$package\" || exit 1; done; echo all", "all");
    assert_eq!(job.run(&script), 7, "the number of questions");
    let show = job.command(&["workspace", "show"]).output().unwrap();
    let shown = String::from_utf8(show.stdout).unwrap();
    assert!(shown.contains(&format!("go = {}", root.join("bin/go").display())), "{shown}");
}
