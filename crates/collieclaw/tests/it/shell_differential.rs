//! C7.3b: a plan that we run does the same as dash and bash with the same line: output, exit code, and the files that it
//! leaves behind.
//!
//! Lines are generated at random. No command reads a file that another command of its pipeline writes: that would be a
//! race in any shell. Patterns match only files that nobody writes, because ours are resolved before the line starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::test_workspace::{TestToolGateway, TestWorkspace};

const LINES: u64 = 50;

/// A small generator, so that a failing seed always produces the same line.
struct LineGenerator(u64);

impl LineGenerator {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.roll(from.len())]
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

const SOURCES: &[&str] = &[
    "cat fixed/a.txt",
    "cat fixed/*.txt",
    "cat 'fixed/b b.txt' fixed/none.txt",
    "printf '%s\\n' one \"two  three\" 'fo\"ur' fi\\ ve",
    "echo plain words",
    "seq 1 30",
    "seq 20000",
    "grep -n o fixed/a.txt",
    "printf '%s\\n' fixed/?.txt fixed/[b-z]* fixed/*.none",
    "head -c 5 < fixed/a.txt",
    "cat <<'END'\n$x `y` \\z\nEND\n",
    "pwd",
    "true",
    "false",
    "cat out1",
    "cat < out2",
    "ls fixed",
    "LC_ALL=C printf 'x\\n'",
    "test -f out1",
];

const FILTERS: &[&str] = &[
    "sort -r",
    "head -3",
    "tail -n 2",
    "wc -l",
    "grep e",
    "tr a-z A-Z",
    "cut -c 2-4",
    "uniq",
    "cat - fixed/a.txt",
    "sed -n 2p",
    "true",
    "false",
    "nl",
];

const ENDS: &[&str] =
    &[" > out1", " >> out1", " > out2", " >>out3", " 2> out3", " > out2 2>&1", " 2>&1", " >/dev/null"];

/// Lines that were once planned differently from shells. Lines that no longer have a plan show nothing.
const REGRESSION_LINES: &[&str] = &[
    "cat < fixed/a.txt <&0",
    "printf 'x\\n' | cat <&0",
    "ls none 2<&1",
    "ls none 2<&1 > out1",
    "echo x 1<&2 > out1",
    "false && cd sub; pwd",
    "true || cd sub; pwd",
    "true || cd sub && pwd",
    "cd sub && false && cd .. || pwd",
    "cd sub || true; pwd",
    "! cd sub; pwd",
    "! cd sub && pwd; pwd",
    "cd sub | cat; pwd",
    "cd sub < none; pwd",
    "cd sub && cat none && cd ..; pwd",
    "cd sub && pwd && cd .. && pwd",
];

fn random_pipeline(random: &mut LineGenerator) -> String {
    let mut text = if random.one_in(6) { "! ".to_owned() } else { String::new() };
    let source = random.pick(SOURCES);
    // A here-document continues after the rest of its line.
    let (command, document) = source.split_once('\n').map_or((source, ""), |(command, rest)| (command, rest));
    text.push_str(command);
    while random.one_in(2) {
        text.push_str(" | ");
        text.push_str(random.pick(FILTERS));
    }
    if random.one_in(3) && !source.contains("out") {
        text.push_str(random.pick(ENDS));
    }
    if document.is_empty() { text } else { format!("{text}\n{document}") }
}

fn random_line(random: &mut LineGenerator) -> String {
    let mut text = if random.one_in(8) { "cd sub && pwd\n".to_owned() } else { random_pipeline(random) };
    while random.one_in(2) {
        // Only a new line can follow a here-document.
        let join = if text.ends_with('\n') { "" } else { random.pick(&[" && ", " || ", "; ", "\n"]) };
        text.push_str(join);
        text.push_str(&random_pipeline(random));
    }
    text
}

/// The effects of a line.
#[derive(Debug, PartialEq, Eq)]
struct ShellEffects {
    stdout: String,
    code: i64,
    files: BTreeMap<String, String>,
}

fn create_files(workspace: &Path) {
    let _ = fs::remove_dir_all(workspace.join("sub"));
    for name in ["out1", "out2", "out3"] {
        let _ = fs::remove_file(workspace.join(name));
    }
    for folder in ["fixed", "sub/fixed"] {
        fs::create_dir_all(workspace.join(folder)).unwrap();
        fs::write(workspace.join(folder).join("a.txt"), "alpha\nbeta one\ngamma two\nomega\n").unwrap();
        fs::write(workspace.join(folder).join("b b.txt"), "no newline").unwrap();
    }
    fs::write(workspace.join("out1"), "old\n").unwrap();
}

fn read_files(workspace: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for folder in ["", "sub"] {
        for entry in fs::read_dir(workspace.join(folder)).unwrap().flatten() {
            if entry.file_type().unwrap().is_file() {
                let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                files.insert(name, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    files
}

fn run_in_shell(shell: &str, line: &str, workspace: &Path) -> ShellEffects {
    create_files(workspace);
    let output = Command::new(shell)
        .args(["-c", line])
        .current_dir(workspace)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}; install it with `cargo xtask setup`"));
    let code = output.status.code().unwrap_or(-1).into();
    ShellEffects { stdout: String::from_utf8(output.stdout).unwrap(), code, files: read_files(workspace) }
}

/// Runs a line through our plan. Returns `None` if the gate has no plan for the line.
fn run_in_gateway(gateway: &TestToolGateway, line: &str, workspace: &Path) -> Option<ShellEffects> {
    create_files(workspace);
    let outcome = gateway.shell(line);
    outcome.result.as_ref()?;
    let stdout = usize::try_from(outcome.metadata("stdout_bytes").as_u64().unwrap()).unwrap();
    let stdout = outcome.output().get(..stdout).unwrap().to_owned();
    Some(ShellEffects { stdout, code: outcome.exit_code(), files: read_files(workspace) })
}

#[test]
fn a_plan_has_the_same_effects_as_dash_and_bash() {
    let test_workspace = TestWorkspace::new();
    let gateway = test_workspace.gateway();
    let mut compared = 0;
    let made = (0..LINES).map(|seed| random_line(&mut LineGenerator(seed * 7_919 + 17)));
    for line in REGRESSION_LINES.iter().map(|line| (*line).to_owned()).chain(made) {
        let (dash, bash) = (
            run_in_shell("dash", &line, &test_workspace.path),
            run_in_shell("bash", &line, &test_workspace.path),
        );
        // If dash and bash disagree, nothing is promised.
        if dash != bash {
            continue;
        }
        if let Some(ours) = run_in_gateway(&gateway, &line, &test_workspace.path) {
            assert_eq!(ours, bash, "{line}");
            compared += 1;
        }
    }
    assert!(compared > LINES / 2, "only {compared} lines were compared");
}
