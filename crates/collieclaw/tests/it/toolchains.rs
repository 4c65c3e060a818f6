//! C19.5: real toolchains work in the sandbox of a command. They run at the level `full`, from scripts, so that the
//! sandbox alone limits them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_agent::tools::ToolchainAccess;
use collieclaw_gate::AutonomyLevel;

use crate::test_workspace::{TestCallResult, TestWorkspace};

/// The time limit of a build. It is generous because the machine is shared.
const BUILD_TIMEOUT: Duration = Duration::from_secs(300);

fn open_workspace() -> TestWorkspace {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    test_workspace
}

fn run_script(test_workspace: &TestWorkspace, script: &str) -> TestCallResult {
    test_workspace.write("run.sh", script);
    test_workspace.gateway_with_shell_limits(BUILD_TIMEOUT, 1 << 20).shell("bash -eu run.sh")
}

fn check(test_workspace: &TestWorkspace, script: &str, expected: &str) {
    let outcome = run_script(test_workspace, script);
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}; if a program is missing: cargo xtask setup");
    assert!(outcome.output().contains(expected), "{expected}: {}", outcome.output());
}

#[test]
fn a_server_and_a_client_talk_inside_of_one_command() {
    let test_workspace = open_workspace();
    test_workspace.write("page.txt", "served inside");
    let script = "
exec 3< <(exec python3 -u -m http.server --bind 127.0.0.1 8000 2>&1)
read -r line <&3
curl -sS http://127.0.0.1:8000/page.txt http://localhost:8000/page.txt
";
    check(&test_workspace, script, "served insideserved inside");
}

#[test]
fn programs_find_their_user_their_home_and_certificates() {
    let test_workspace = open_workspace();
    let script = r#"
test "$(id -un)" = "$(whoami)" && id -gn
python3 -c 'import getpass, pwd, os; assert pwd.getpwuid(os.getuid()).pw_name == getpass.getuser()'
python3 -c 'import ssl; assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 0'
python3 -c 'import socket; assert socket.gethostbyname(socket.gethostname()) == "127.0.0.1"'
echo kept > "$HOME/file" && cat "$HOME/file"
git init -q . && git -c user.name=n -c user.email=e@example.org commit -q --allow-empty -m first && git log --format=%s
diff <(echo same) <(echo same) && echo text > /dev/stderr && head -c 1 /dev/full | wc -c
"#;
    check(&test_workspace, script, "kept\nfirst\n");
    // The replaced file names nobody but the user of the sandbox.
    let outcome =
        run_script(&test_workspace, "cut -d: -f1 /etc/passwd | sort | tr '\n' ' '; cat /etc/shadow || true");
    let names: Vec<&str> = outcome.output().lines().next().unwrap().split_whitespace().collect();
    assert!(names.iter().all(|name| ["nobody", "root", "user"].contains(name)), "{outcome:?}");
}

#[test]
fn python_tests_run_with_several_processes() {
    let test_workspace = open_workspace();
    test_workspace.write("calc.py", "def add(a, b):\n    return a + b\n");
    test_workspace.write(
        "test_calc.py",
        "import concurrent.futures, multiprocessing, unittest\nfrom calc import add\n\n\
         class AddTest(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n\
         \x20   def test_pool(self):\n        context = multiprocessing.get_context('spawn')\n\
         \x20       with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:\n\
         \x20           self.assertEqual(list(pool.map(abs, [-1, -2])), [1, 2])\n",
    );
    check(&test_workspace, "python3 -m unittest -v 2>&1", "OK");
}

#[test]
fn pytest_runs_the_tests_of_a_project() {
    let test_workspace = open_workspace();
    test_workspace.write("calc.py", "def add(a, b):\n    return a + b\n");
    test_workspace.write(
        "tests/test_calc.py",
        "import pytest\nfrom calc import add\n\n@pytest.mark.parametrize('a, b', [(1, 2), (2, 1)])\n\
         def test_add(a, b, tmp_path):\n    (tmp_path / 'sum').write_text(str(add(a, b)))\n\
         \x20   assert (tmp_path / 'sum').read_text() == '3'\n",
    );
    check(&test_workspace, "/usr/bin/python3 -m pytest -q 2>&1", "2 passed");
    // In a virtual environment that sees the packages of the system.
    let script = "/usr/bin/python3 -m venv --without-pip --system-site-packages .venv && .venv/bin/python -m pytest -q 2>&1";
    check(&test_workspace, script, "2 passed");
}

/// Go and Java reserve address space for their heaps when they start, and use a fraction of it. Their toolchains have
/// several hundred megabytes, so a small program takes their place.
#[test]
fn a_runtime_that_reserves_much_address_space_runs_with_threads() {
    let test_workspace = open_workspace();
    test_workspace.write(
        "runtime.c",
        "#include <pthread.h>\n#include <stdio.h>\n#include <sys/mman.h>\n\
         static void *use(void *heap) { ((char *)heap)[1L << 30] = 1; return heap; }\n\
         int main(void) {\n\
         \x20 char *heap = mmap(0, 64L << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);\n\
         \x20 if (heap == MAP_FAILED || mprotect(heap, 2L << 30, PROT_READ | PROT_WRITE)) return 1;\n\
         \x20 pthread_t thread;\n\
         \x20 if (pthread_create(&thread, 0, use, heap) || pthread_join(thread, 0)) return 2;\n\
         \x20 puts(\"64 GiB reserved\");\n}\n",
    );
    check(&test_workspace, "gcc -pthread -o runtime runtime.c && ./runtime", "64 GiB reserved");
}

#[test]
fn node_and_npm_run_the_tests_of_a_project() {
    let test_workspace = open_workspace();
    test_workspace
        .write("package.json", r#"{"name": "demo", "version": "1.0.0", "scripts": {"test": "node --test"}}"#);
    test_workspace.write("sum.js", "exports.sum = (a, b) => a + b;\n");
    test_workspace.write(
        "sum.test.js",
        "const test = require('node:test'), assert = require('node:assert'), { Worker } = require('node:worker_threads');\n\
         test('sum', () => assert.strictEqual(require('./sum').sum(2, 3), 5));\n\
         test('worker', (t, done) => {\n  new Worker('require(\"node:worker_threads\").parentPort.postMessage(7)', { eval: true })\n\
         \x20   .on('message', value => { assert.strictEqual(value, 7); done(); });\n});\n",
    );
    check(
        &test_workspace,
        "node -e 'console.log(require(\"os\").cpus().length > 0, require(\"os\").userInfo().uid >= 0)'",
        "true true",
    );
    check(&test_workspace, "npm test 2>&1", "pass 2");
    let script = "mkdir -p tool && echo '{\"name\": \"tool\", \"version\": \"1.0.0\", \"bin\": \"cli.js\"}' > tool/package.json\n\
                  printf '#!/usr/bin/env node\\nconsole.log(\"linked\")\\n' > tool/cli.js && chmod +x tool/cli.js\n\
                  npm install --offline --no-audit --no-fund ./tool 2>&1 && npx --offline tool";
    check(&test_workspace, script, "linked");
}

/// The search for leaks is off, because it traces its own process, which the sandbox forbids.
#[test]
fn make_and_a_compiler_build_programs_with_sanitizers() {
    let test_workspace = open_workspace();
    test_workspace.write("main.c", "#include <stdio.h>\n#include <stdlib.h>\nconst char *__asan_default_options(void) { return \"detect_leaks=0\"; }\nint main(void) { char *p = malloc(8); free(p); puts(\"built\"); }\n");
    test_workspace.write("Makefile", "main: main.c\n\tgcc -fsanitize=address,undefined -o main main.c\n");
    check(&test_workspace, "make -j2 2>&1 && ./main", "built");
}

/// Returns the folder of a Rust toolchain that this user may read: the one that runs the tests, or another one in
/// `PATH`.
pub(crate) fn rust_toolchain() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("cargo"));
    let of_tests = std::env::var_os("CARGO").map(PathBuf::from);
    let toolchain = of_tests.into_iter().chain(in_path).find_map(|cargo| find_sysroot(&cargo));
    toolchain.expect("no Rust toolchain that this user can read; the variable CARGO can name its cargo")
}

fn find_sysroot(cargo: &Path) -> Option<PathBuf> {
    let cargo = cargo.canonicalize().ok().filter(|cargo| std::fs::File::open(cargo).is_ok())?;
    // `cargo` may be the program of rustup, which starts that of a toolchain.
    let rustc =
        std::process::Command::new(cargo.with_file_name("rustc")).args(["--print", "sysroot"]).output();
    let folder = PathBuf::from(String::from_utf8(rustc.ok()?.stdout).ok()?.trim());
    folder.join("bin/rustc").exists().then_some(folder)
}

/// Opens a Rust toolchain to a workspace, with a cache folder.
pub(crate) fn with_rust(mut test_workspace: TestWorkspace, toolchain: &Path) -> TestWorkspace {
    let cache = test_workspace.home.join("cache");
    std::fs::create_dir(&cache).unwrap();
    test_workspace.toolchain = ToolchainAccess {
        read: vec![toolchain.to_owned()],
        closed: Vec::new(),
        write: vec![cache.clone()],
        program_folders: vec![toolchain.join("bin")],
        environment: vec![("CARGO_HOME".to_owned(), cache.into())],
    };
    test_workspace
}

#[test]
fn cargo_builds_and_tests_a_crate_with_the_users_toolchain() {
    let test_workspace = with_rust(open_workspace(), &rust_toolchain());
    test_workspace
        .write("Cargo.toml", "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    test_workspace.write("build.rs", "fn main() { println!(\"cargo:rustc-env=BUILT=by a script\"); }\n");
    test_workspace.write(
        "src/main.rs",
        "fn main() { println!(\"{} {}\", env!(\"BUILT\"), std::thread::available_parallelism().is_ok()); }\n\
         #[test]\nfn adds() { assert_eq!(2 + 2, 4); }\n",
    );
    check(&test_workspace, "cargo build --offline 2>&1 && target/debug/demo", "by a script true");
    check(&test_workspace, "cargo test --offline 2>&1", "test adds ... ok");
}

/// A toolchain folder with a secret.
fn with_toolchain() -> TestWorkspace {
    let mut test_workspace = open_workspace();
    let folder = test_workspace.home.join(".tool");
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    std::fs::create_dir(folder.join("cache")).unwrap();
    std::fs::write(folder.join("credentials"), "the token").unwrap();
    std::fs::write(folder.join("bin/greet"), "#!/bin/sh\necho \"greetings from $TOOL_HOME\"\n").unwrap();
    std::fs::set_permissions(folder.join("bin/greet"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    test_workspace.toolchain = ToolchainAccess {
        read: vec![folder.clone()],
        closed: vec![folder.join("credentials"), folder.join("later")],
        write: vec![folder.join("cache")],
        program_folders: vec![folder.join("bin")],
        environment: vec![("TOOL_HOME".to_owned(), folder.into())],
    };
    test_workspace
}

#[test]
fn a_toolchain_runs_and_keeps_its_secrets() {
    let test_workspace = with_toolchain();
    check(&test_workspace, "greet; echo kept > $TOOL_HOME/cache/file; cat $TOOL_HOME/cache/file", "kept");
    std::os::unix::fs::symlink("../credentials", test_workspace.home.join(".tool/bin/link")).unwrap();
    let attacks = "set +e\ncat $TOOL_HOME/credentials; cat $TOOL_HOME/bin/link; cp $TOOL_HOME/credentials .; ln $TOOL_HOME/credentials here; \
                   mv $TOOL_HOME/credentials here; cat $TOOL_HOME/bin/../credentials; cat /proc/self/root$TOOL_HOME/credentials; \
                   echo x > $TOOL_HOME/bin/new; echo x >> $TOOL_HOME/bin/greet; ln $TOOL_HOME/credentials $TOOL_HOME/cache/; cat here cache/credentials";
    let outcome = run_script(&test_workspace, attacks);
    assert!(!outcome.output().contains("the token"), "{outcome:?}");
    assert!(!test_workspace.home.join(".tool/bin/new").exists());
    assert!(!test_workspace.home.join(".tool/cache/credentials").exists());
}

#[test]
fn a_secret_that_appears_during_the_command_stays_closed() {
    let test_workspace = with_toolchain();
    let place = test_workspace.home.join(".tool/later");
    let ready = test_workspace.path.join("ready");
    // Both ends of the pipe in the workspace wait for each other.
    rustix::fs::mknodat(rustix::fs::CWD, &ready, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let writer = std::thread::spawn(move || {
        let mut ready = std::fs::OpenOptions::new().write(true).open(ready).unwrap();
        std::fs::write(place, "the new token").unwrap();
        std::io::Write::write_all(&mut ready, b"go\n").unwrap();
    });
    let outcome = run_script(
        &test_workspace,
        "set +e\nread -r go < ready; echo $go; cat $TOOL_HOME/later; ls $TOOL_HOME",
    );
    writer.join().unwrap();
    assert!(outcome.output().starts_with("go\n"), "{outcome:?}");
    assert!(!outcome.output().contains("the new token"), "{outcome:?}");
}
