//! Scripts of `sed` and `awk` that the gate takes for harmless, given to the real programs.

use std::path::Path;
use std::process::{Command, Stdio};

use collieclaw_gate::{Autonomy, Weight};

use crate::dice::Dice;
use crate::world::{heaviest, shell};

/// Enough to find what was wrong before, and few enough to wait for.
const LINES: usize = 600;

/// What a shell prints for each of the lines.
fn said_by(lines: &[String], folder: &Path) -> Vec<String> {
    const SCRIPT: &str = r#"for line; do eval "$line" < /dev/null 2>&1; printf '<line ends here>'; done"#;
    let output = Command::new("sh")
        .args(["-c", SCRIPT, "sh"])
        .args(lines)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("`sh` is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_terminator("<line ends here>").map(str::to_owned).collect()
}

/// Lines with one or two scripts made of the pieces, as far as the gate takes them for harmless.
fn harmless(pieces: &[&str], forms: &[&str]) -> Vec<String> {
    let mut dice = Dice::new(0x005e_d5ed_5eed_0001);
    let mut script = move || -> String {
        let pieces: String = (0..=dice.roll(9)).map(|_| pieces[dice.roll(pieces.len())]).collect();
        format!("'{pieces}'")
    };
    let lines = forms.iter().cycle().map(|form| {
        let parts: Vec<_> = form.split("SCRIPT").collect();
        let mut line = parts[0].to_owned();
        for part in &parts[1..] {
            line.push_str(&script());
            line.push_str(part);
        }
        line
    });
    let passes = |line: &String| heaviest(&shell(line, Autonomy::Supervised, "")).0 < Weight::High;
    lines.filter(passes).take(LINES).collect()
}

/// The sandbox of `sed` refuses a script that runs, reads or writes something else.
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
    let folder = tempfile::tempdir().expect("a folder");
    let sandboxed = |line: &String| line.replacen("sed", "sed --sandbox", 1);
    let refused = |said: &String| said.contains("sandbox");
    let known = said_by(&["sed --sandbox '1e id'".to_owned()], folder.path());
    assert!(known.iter().any(refused), "{known:?}: this `sed` has no sandbox to compare with");
    let lines = harmless(&PIECES, &["sed SCRIPT a.txt", "sed -e SCRIPT -e SCRIPT a.txt"]);
    let said = said_by(&lines.iter().map(sandboxed).collect::<Vec<_>>(), folder.path());
    let wrong: Vec<_> = lines.iter().zip(&said).filter(|(_, said)| refused(said)).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), lines.len());
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
    let lines = harmless(&PIECES, &["awk SCRIPT", "awk 'BEGIN{'SCRIPT'}'", "awk 'BEGIN{ print 'SCRIPT'}'"]);
    let said = said_by(&lines, folder.path());
    let ran = |said: &&String| said.lines().any(|line| line == "ran");
    assert_eq!(said.iter().find(ran), None);
    let left = folder.path().read_dir().expect("the folder is there").count();
    assert_eq!(left, 0, "one of these wrote a file: {lines:#?}");
}
