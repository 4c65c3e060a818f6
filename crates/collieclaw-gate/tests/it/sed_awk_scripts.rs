//! Runs scripts of `sed` and `awk` that the gate considers harmless with the real programs.

use std::path::Path;
use std::process::{Command, Stdio};

use collieclaw_gate::{AutonomyLevel, ReasonWeight, judge_shell};

use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};
use crate::test_random::TestRandom;

/// The number of lines per test: sufficient to find the faults of the past, and fast enough.
const LINES: usize = 600;

/// Runs lines in a shell, and returns the output of each line.
fn run_lines(lines: &[String], folder: &Path) -> Vec<String> {
    const SCRIPT: &str = r#"for line; do eval "$line" < /dev/null 2>&1; printf '<line ends here>'; done"#;
    let mut printed = Vec::new();
    for lines in lines.chunks(500) {
        let output = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .args(lines)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .expect("`sh` is there");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        printed.extend(text.split_terminator("<line ends here>").map(str::to_owned));
    }
    assert_eq!(printed.len(), lines.len());
    printed
}

fn pick(random: &mut TestRandom, from: &[&'static str]) -> &'static str {
    from[random.below(from.len())]
}

/// Returns lines that the gate considers harmless, made by putting random scripts in place of `SCRIPT` in the
/// forms.
fn harmless_lines(forms: &[&str], script: impl Fn(&mut TestRandom) -> String) -> Vec<String> {
    let mut random = TestRandom::new(0x005e_d5ed_5eed_0001);
    let lines = forms.iter().cycle().map(|form| {
        let parts: Vec<_> = form.split("SCRIPT").collect();
        let mut line = parts[0].to_owned();
        for part in &parts[1..] {
            line.push_str(&format!("'{}'", script(&mut random)));
            line.push_str(part);
        }
        line
    });
    let (policy, machine) = (policy(""), GateTestMachine::new());
    let passes = |line: &String| {
        let verdict = judge_shell(line, AutonomyLevel::Supervised, &policy, &machine).verdict;
        heaviest_reasons(&verdict).0 < ReasonWeight::High
    };
    lines.filter(passes).take(LINES).collect()
}

/// Returns a random sequence of pieces.
fn random_text(random: &mut TestRandom, pieces: &[&'static str]) -> String {
    (0..=random.below(9)).map(|_| pick(random, pieces)).collect()
}

/// Asserts that `sed --sandbox` accepts all lines. That mode refuses scripts that run commands or read or
/// write files.
fn assert_sandboxed(lines: &[String]) {
    let folder = tempfile::tempdir().expect("a folder");
    let sandboxed = |line: &String| line.replacen("sed", "sed --sandbox", 1);
    let refused = |printed: &String| printed.contains("sandbox");
    let known = run_lines(&["sed --sandbox '1e id'".to_owned()], folder.path());
    assert!(known.iter().any(refused), "{known:?}: this `sed` has no sandbox to compare with");
    let printed = run_lines(&lines.iter().map(sandboxed).collect::<Vec<_>>(), folder.path());
    let wrong: Vec<_> = lines.iter().zip(&printed).filter(|(_, printed)| refused(printed)).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), lines.len());
}

#[test]
fn scripts_of_sed_that_pass_the_gate_pass_its_own_sandbox() {
    const PIECES: [&str; 52] = [
        "a\\",
        "a x",
        "i\\",
        "c y",
        "\n",
        "\n",
        "\n",
        "e",
        "1e id",
        "e id",
        "w x",
        "W x",
        "r x",
        "R x",
        "s/x/y/",
        "s/a/b/e",
        "s/a/b/w x",
        "s,a,b,",
        "s/a/\\\n/",
        "s",
        "\\",
        "\\\\",
        "\\\n",
        ";",
        ";",
        "{",
        "}",
        "p",
        "/x/",
        "/",
        "$",
        "!",
        "1",
        ",",
        "0~3",
        "y/ab/cd/",
        "y",
        ":a",
        "ba",
        "b",
        "t",
        "#",
        "[",
        "]",
        "[/]",
        " ",
        "I",
        "M",
        "q",
        "l",
        "F",
        "z",
    ];
    let forms = ["sed SCRIPT a.txt", "sed -e SCRIPT -e SCRIPT a.txt"];
    assert_sandboxed(&harmless_lines(&forms, |random| random_text(random, &PIECES)));
}

/// Returns a random pattern made of pieces that make its end hard to find.
fn pattern(random: &mut TestRandom) -> String {
    const PIECES: [&str; 34] = [
        "a",
        "a",
        "x",
        "[",
        "[",
        "]",
        "]",
        "[^",
        "[]",
        "[^]",
        "[a",
        "[[:alpha:]]",
        "[:alpha:]",
        "[:",
        ":]",
        "[.",
        ".]",
        "[=",
        "=]",
        "\\",
        "\\[",
        "\\]",
        "\\n",
        "\\\\",
        "\\/",
        "\\,",
        "/",
        ",",
        "|",
        "^",
        "*",
        "e id",
        "w x",
        "\n",
    ];
    let begins = pick(random, &["", "", "a[", "["]);
    let rest: String = (0..random.below(4)).map(|_| pick(random, &PIECES)).collect();
    begins.to_owned() + &rest
}

fn address(random: &mut TestRandom) -> String {
    match random.below(6) {
        0 => pick(random, &["1", "$", "0", "1~2", "1 ~ 2", "+1", "~2"]).to_owned(),
        1 => String::new(),
        of => {
            let (opens, closes) = [("/", "/"), ("\\,", ","), ("\\|", "|"), ("\\n", "n")][of - 2];
            format!("{opens}{}{closes}{}", pattern(random), pick(random, &["", "", "I", "M", " I "]))
        }
    }
}

fn command(random: &mut TestRandom) -> String {
    const PLAIN: [&str; 21] = [
        "p", "p", "d", "=", "{p}", "{", "}", "e id", "e", "w x", "r x", "a e", "a\\", "i\\\nx", "c w x",
        "# e", "#n", ":a", "ba", "b", "q1",
    ];
    let between = [",", " , ", "!", " ", "", "", ""];
    let addresses = [address(random), pick(random, &between).to_owned(), address(random)].concat();
    let bang = pick(random, &["", "", "", "!", " ! "]);
    let command = match random.below(4) {
        0 | 1 => pick(random, &PLAIN).to_owned(),
        kind => {
            let (name, flags) = [("s", pick(random, &["", "", "g", "e", "w x", "pI"])), ("y", "")][kind - 2];
            let delimiter = pick(random, &["/", "/", ",", "|", "^", ":", "]"]);
            [name, delimiter, &pattern(random), delimiter, &pattern(random), delimiter, flags].concat()
        }
    };
    [&addresses, bang, &command].concat()
}

#[test]
fn patterns_and_addresses_of_sed_end_for_the_gate_where_they_end_for_sed() {
    const HOSTILE: [&str; 6] = ["e id", "w x", "r x", "{e id\n}", "s/a/b/e", "s,a,b,w x"];
    let script = |random: &mut TestRandom| -> String {
        let mut script = command(random);
        for _ in 0..random.below(3) {
            script.push_str(pick(random, &[";", ";", "\n", "}", " ", "", " # x\n"]));
            script.push_str(&command(random));
        }
        // Few of these scripts pass the gate, so make nine in ten of them.
        if random.below(10) > 0 {
            script = [address(random), pick(random, &HOSTILE).to_owned()].concat();
        }
        script
    };
    assert_sandboxed(&harmless_lines(&["sed SCRIPT a.txt", "sed -E SCRIPT a.txt"], script));
}

/// A program that runs a command prints `ran`, and a program that writes leaves a file.
#[test]
fn programs_of_awk_that_pass_the_gate_run_and_write_nothing() {
    const PIECES: [&str; 46] = [
        "BEGIN",
        "BEGIN{",
        "{",
        "{",
        "}",
        "}",
        "print",
        "print ",
        "print 1",
        "printf(\"x\")",
        ">",
        "> \"x\"",
        ">> \"x\"",
        "> y",
        "\"x\"",
        "\";\"",
        "\"}\"",
        "\"a/\"",
        "\"\\\"\"",
        ";",
        ";",
        "\n",
        "\\\n",
        ",",
        "(",
        ")",
        "/",
        "/x/",
        "/\"/",
        "/[/]/",
        "#",
        "# \"\n",
        "1",
        "a",
        "a1",
        "$1",
        " ",
        " ",
        "=",
        "system(\"echo ran\")",
        "\"echo ran\" | getline",
        "| \"sh\"",
        "system",
        "(\"echo ran\")",
        "!",
        "~",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let forms = ["awk SCRIPT", "awk 'BEGIN{'SCRIPT'}'", "awk 'BEGIN{ print 'SCRIPT'}'"];
    let lines = harmless_lines(&forms, |random| random_text(random, &PIECES));
    let printed = run_lines(&lines, folder.path());
    let ran = |printed: &&String| printed.lines().any(|line| line == "ran");
    assert_eq!(printed.iter().find(ran), None);
    let left = folder.path().read_dir().expect("the folder is there").count();
    assert_eq!(left, 0, "a program wrote a file: {lines:#?}");
}
