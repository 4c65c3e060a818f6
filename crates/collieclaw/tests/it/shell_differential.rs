//! C7.3b, C17: a line that we run does the same as bash with the same line: output, exit code, and the files that it
//! leaves behind. A line of the plan's grammar also does the same as dash.
//!
//! Lines are generated at random. No command reads a file that another command of its pipeline writes: that would be a
//! race in any shell.

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

/// Statements of the whole language. `BODY` is replaced by a simple statement.
const STATEMENTS: &[&str] = &[
    "for i in 1 2 3; do echo \"i=$i\"; BODY; done",
    "for f in fixed/*.txt; do echo \"${f##*/}\"; done",
    "for ((n = 0; n < 3; n++)); do echo $((n * n)); done",
    "n=0; while [ $n -lt 3 ]; do n=$((n + 1)); if [ $n = 2 ]; then continue; fi; echo n$n; done",
    "until false; do break; done; echo $?",
    "if grep -q beta fixed/a.txt; then BODY; else echo no; fi",
    "if [[ $v == a* && -f out1 ]]; then echo both; elif [[ $v =~ ^[0-9]+$ ]]; then echo number; else BODY; fi",
    "case $v in a|b) echo ab;; [0-9]*) echo digit;; *) BODY;; esac",
    "f() { local x=$1; echo \"f:$x:$#\"; return 3; }; f one two; echo $?",
    "g() { if [ $1 -gt 0 ]; then echo $1; g $(($1 - 1)); fi; }; g 3",
    "(cd sub; pwd; BODY); pwd",
    "{ echo grouped; BODY; } >> out2",
    "echo \"$(cat fixed/a.txt | wc -l) `echo sub`\"",
    "x=$(printf 'a\\n\\n'); echo \"[$x]\"",
    "a=(one 'two three' four); a+=(five); echo \"${#a[@]} ${a[1]} ${a[@]:2}\"; for e in \"${a[@]}\"; do echo \"<$e>\"; done",
    "declare -A m=([k]=v [l]=w); echo \"${m[k]}${m[l]} ${#m[@]}\"",
    "s=hello; echo ${s^^} ${s:1:3} ${s/l/L} ${s//l/L} ${s#he} ${s%lo} ${#s} ${t:-unset} ${t:=set} $t",
    "echo {a,b}{1..3} {3..1} x{,y}",
    "printf '%s|' $'tab\\there' \"quo\\\"ted\" 'sin gle' un\\ quoted; echo",
    "cat <<END\nvalue $v $((1 + 2)) $(echo sub)\nEND\n",
    "cat <<-'END'\n\t$v\n\tEND\n",
    "read -r p q <<< 'x y z'; echo \"$q-$p\"",
    "while IFS=: read -r k w; do echo \"$w=$k\"; done <<< $'a:1\\nb:2'",
    "mapfile -t lines < fixed/a.txt; echo \"${#lines[@]}:${lines[1]}\"",
    "diff <(sort fixed/a.txt) <(sort -r fixed/a.txt) | head -2",
    "seq 5 | xargs -n2 echo got",
    "printf '%s\\0' a 'b c' | xargs -0 -I{} echo '<{}>'",
    "find fixed -name '*.txt' -exec basename {} \\; | sort",
    "set -- one 'two three'; echo $# \"$2\"; shift; echo \"$*\"",
    "v=${v}x; echo $v; export v; env | grep ^v=",
    "(set -e; false; echo never); echo $?",
    "(set -o pipefail; false | true); echo $?; true | false | true; echo \"${PIPESTATUS[@]}\"",
    "trap 'echo trapped' USR1; kill -USR1 $$; trap - USR1",
    "echo bg > out3 & wait; cat out3",
    "(exit 7) & wait $!; echo $?",
    "exec 5> out1; echo five >&5; exec 5>&-; cat out1",
    "ls fixed &> out1; cat out1; ls none |& wc -l",
    "touch t1 t2; ls t*; mv t1 t3; echo t*",
    "eval 'echo ev $v'; eval \"w=$v\"; echo $w",
    "printf 'echo sourced $1\\n' > out2; . ./out2 arg; bash out2 arg2; sh -c 'echo $0 $1' zero one",
    "printf 'echo piped; exit 4\\n' | sh; echo $?",
    "let y=3+4; ((y++)); echo $y; ((y > 100)) || echo small",
    "echo $((v1 + 08#7 + 0x10)) 2>/dev/null || echo error",
    "command echo c; builtin echo b; type -t echo; command -v cat",
    "time { true; } 2>/dev/null; echo after",
    "nosuchcommand_x 2>/dev/null; echo $?",
    "cat nothing 2>&1 >/dev/null | wc -l; echo >&2 err",
    "test -f fixed/a.txt && echo y || echo n; ! false; echo $?",
    "echo \"${BASH_VERSION:+bash} $0 ${FUNCNAME:-top}\" | cut -c1-4",
    "printf -v out '%03d' 7; echo $out; echo ${out@Q}",
    "coproc cat; echo co >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l; exec {COPROC[1]}>&-; wait",
];

/// Simple statements for the place of `BODY`.
const BODIES: &[&str] = &["echo inner", "echo \"$v\"", "true", "cat fixed/a.txt | head -1", "x=y"];

fn random_program(random: &mut LineGenerator) -> String {
    let mut text = format!("v={};", random.pick(&["abc", "42", "'x y'", "''"]));
    for _ in 0..=random.roll(3) {
        text.push_str(if text.ends_with('\n') { "" } else { "\n" });
        text.push_str(&random.pick(STATEMENTS).replace("BODY", random.pick(BODIES)));
    }
    text
}

/// Every statement alone, and random programs of several.
#[test]
fn a_judged_line_has_the_same_effects_as_bash() {
    let mut test_workspace = TestWorkspace::new();
    let names = ["env", "nosuchcommand_x", "bash"];
    test_workspace.policy.allowed_commands.extend(names.map(str::to_owned));
    let gateway = test_workspace.gateway();
    let alone =
        STATEMENTS.iter().map(|statement| format!("v=abc; {}", statement.replace("BODY", "echo inner")));
    let made = (0..LINES / 2).map(|seed| random_program(&mut LineGenerator(seed * 6_151 + 29)));
    for line in alone.chain(made) {
        for name in ["t1", "t2", "t3"] {
            let _ = fs::remove_file(test_workspace.path.join(name));
        }
        let bash = run_in_shell("bash", &line, &test_workspace.path);
        for name in ["t1", "t2", "t3"] {
            let _ = fs::remove_file(test_workspace.path.join(name));
        }
        let ours = run_in_gateway(&gateway, &line, &test_workspace.path);
        assert_eq!(ours.as_ref(), Some(&bash), "{line}: {:?}", gateway.shell(&line));
    }
}
