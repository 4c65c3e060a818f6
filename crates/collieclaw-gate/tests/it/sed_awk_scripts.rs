//! Scripts of `sed` and `awk` that the gate takes for harmless, given to the real programs.

use std::path::Path;
use std::process::{Command, Stdio};

use collieclaw_gate::{AutonomyLevel, ReasonWeight, judge_shell};

use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};
use crate::test_random::TestRandom;

/// Enough to find what was wrong before, and few enough to wait for.
const LINES: usize = 600;

/// What a shell prints for each of the lines.
fn run_lines(lines: &[String], folder: &Path) -> Vec<String> {
    const SCRIPT: &str = r#"for line; do eval "$line" < /dev/null 2>&1; printf '<line ends here>'; done"#;
    let mut said = Vec::new();
    for lines in lines.chunks(500) {
        let output = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .args(lines)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .expect("`sh` is there");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        said.extend(text.split_terminator("<line ends here>").map(str::to_owned));
    }
    assert_eq!(said.len(), lines.len());
    said
}

fn pick(dice: &mut TestRandom, from: &[&'static str]) -> &'static str {
    from[dice.below(from.len())]
}

/// Lines with scripts in their forms, as far as the gate takes them for harmless.
fn harmless_lines(forms: &[&str], script: impl Fn(&mut TestRandom) -> String) -> Vec<String> {
    let mut dice = TestRandom::new(0x005e_d5ed_5eed_0001);
    let lines = forms.iter().cycle().map(|form| {
        let parts: Vec<_> = form.split("SCRIPT").collect();
        let mut line = parts[0].to_owned();
        for part in &parts[1..] {
            line.push_str(&format!("'{}'", script(&mut dice)));
            line.push_str(part);
        }
        line
    });
    let (policy, world) = (policy(""), GateTestMachine::new());
    let passes = |line: &String| {
        let verdict = judge_shell(line, AutonomyLevel::Supervised, &policy, &world).verdict;
        heaviest_reasons(&verdict).0 < ReasonWeight::High
    };
    lines.filter(passes).take(LINES).collect()
}

/// Pieces one after the other.
fn random_text(dice: &mut TestRandom, pieces: &[&'static str]) -> String {
    (0..=dice.below(9)).map(|_| pick(dice, pieces)).collect()
}

/// Whether the sandbox of `sed`, which refuses what runs, reads or writes something else, refuses one of the lines.
fn assert_sandboxed(lines: &[String]) {
    let folder = tempfile::tempdir().expect("a folder");
    let sandboxed = |line: &String| line.replacen("sed", "sed --sandbox", 1);
    let refused = |said: &String| said.contains("sandbox");
    let known = run_lines(&["sed --sandbox '1e id'".to_owned()], folder.path());
    assert!(known.iter().any(refused), "{known:?}: this `sed` has no sandbox to compare with");
    let said = run_lines(&lines.iter().map(sandboxed).collect::<Vec<_>>(), folder.path());
    let wrong: Vec<_> = lines.iter().zip(&said).filter(|(_, said)| refused(said)).collect();
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
    assert_sandboxed(&harmless_lines(&forms, |dice| random_text(dice, &PIECES)));
}

/// A pattern with all that makes it hard to see where it ends.
fn pattern(dice: &mut TestRandom) -> String {
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
    let begins = pick(dice, &["", "", "a[", "["]);
    let rest: String = (0..dice.below(4)).map(|_| pick(dice, &PIECES)).collect();
    begins.to_owned() + &rest
}

fn address(dice: &mut TestRandom) -> String {
    match dice.below(6) {
        0 => pick(dice, &["1", "$", "0", "1~2", "1 ~ 2", "+1", "~2"]).to_owned(),
        1 => String::new(),
        of => {
            let (opens, closes) = [("/", "/"), ("\\,", ","), ("\\|", "|"), ("\\n", "n")][of - 2];
            format!("{opens}{}{closes}{}", pattern(dice), pick(dice, &["", "", "I", "M", " I "]))
        }
    }
}

fn command(dice: &mut TestRandom) -> String {
    const PLAIN: [&str; 21] = [
        "p", "p", "d", "=", "{p}", "{", "}", "e id", "e", "w x", "r x", "a e", "a\\", "i\\\nx", "c w x",
        "# e", "#n", ":a", "ba", "b", "q1",
    ];
    let between = [",", " , ", "!", " ", "", "", ""];
    let addresses = [address(dice), pick(dice, &between).to_owned(), address(dice)].concat();
    let bang = pick(dice, &["", "", "", "!", " ! "]);
    let command = match dice.below(4) {
        0 | 1 => pick(dice, &PLAIN).to_owned(),
        kind => {
            let (name, flags) = [("s", pick(dice, &["", "", "g", "e", "w x", "pI"])), ("y", "")][kind - 2];
            let delimiter = pick(dice, &["/", "/", ",", "|", "^", ":", "]"]);
            [name, delimiter, &pattern(dice), delimiter, &pattern(dice), delimiter, flags].concat()
        }
    };
    [&addresses, bang, &command].concat()
}

#[test]
fn patterns_and_addresses_of_sed_end_for_the_gate_where_they_end_for_sed() {
    const HOSTILE: [&str; 6] = ["e id", "w x", "r x", "{e id\n}", "s/a/b/e", "s,a,b,w x"];
    let script = |dice: &mut TestRandom| -> String {
        let mut script = command(dice);
        for _ in 0..dice.below(3) {
            script.push_str(pick(dice, &[";", ";", "\n", "}", " ", "", " # x\n"]));
            script.push_str(&command(dice));
        }
        // Few of these pass, so most are of them.
        if dice.below(10) > 0 {
            script = [address(dice), pick(dice, &HOSTILE).to_owned()].concat();
        }
        script
    };
    assert_sandboxed(&harmless_lines(&["sed SCRIPT a.txt", "sed -E SCRIPT a.txt"], script));
}

/// A program of `awk` that runs something says so here, and one that writes leaves a file.
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
    let lines = harmless_lines(&forms, |dice| random_text(dice, &PIECES));
    let said = run_lines(&lines, folder.path());
    let ran = |said: &&String| said.lines().any(|line| line == "ran");
    assert_eq!(said.iter().find(ran), None);
    let left = folder.path().read_dir().expect("the folder is there").count();
    assert_eq!(left, 0, "one of these wrote a file: {lines:#?}");
}
