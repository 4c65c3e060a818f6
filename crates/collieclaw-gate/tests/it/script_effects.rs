//! Scripts of `sed` and `awk`: most only transform text, others run commands or use other files.

use collieclaw_gate::{AutonomyLevel, GateDecision, GateReason, ReasonWeight, judge_shell};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{heaviest_reasons, judge_line, policy};

/// Returns the effect that the gate sees in a script, if it sees one.
fn effect(line: &str) -> Option<&'static str> {
    let verdict = judge_line(line, AutonomyLevel::Full, "");
    verdict.reasons.iter().find_map(|reason| match reason {
        GateReason::Argument { effect, .. } => *effect,
        _ => None,
    })
}

/// Asserts the effect of each script, which takes the place of `SCRIPT` in a line.
pub(crate) fn check(line: &str, expected: Option<&str>, scripts: &[&str]) {
    for script in scripts {
        assert!(!script.contains('\''), "{script}");
        assert_eq!(effect(&line.replace("SCRIPT", script)), expected, "{script:?}");
    }
}

const SED: &str = "sed 'SCRIPT' a.txt";
const AWK: &str = "awk 'SCRIPT' a.txt";

#[test]
fn sed_transforms_text() {
    check(
        SED,
        None,
        &[
            "",
            "p",
            "1!G;h;$!d",
            "/x/!s/a/b/g",
            "$!N;P;D",
            ":a;s/x/y/;ta",
            "t end;p;:end",
            "b;p",
            "2q5",
            "2 q 5",
            "5,$d",
            "0~3d",
            "1,+2d",
            "/a/I,/b/Md",
            "/a/,/b/{//!d}",
            "\\|x|d",
            "\\,a\\,b,d",
            "s/a/b/3p",
            "s/a/b/gI;p",
            "s/a\\/b/c/",
            "s|a/b|c|",
            "s/a/b/;s/c/d/ # why",
            "y/a\\/b/xyz/",
            "1i\\\ntext\\\nmore\np",
            "$a text; e id",
            "1a foo\\\\\np",
            "{p;p}",
            "1{p}",
            "{\np\n}",
            "# only a comment",
            "#n\np",
            "s/[[:digit:]]//",
            "s/[^[:space:]]//",
            "s/[]x]//",
            "s/[a[b]//",
            "p;\t;p",
            "=;l;x;z;F;n;g;G;H",
            "l 5",
        ],
    );
}

#[test]
fn sed_can_run_commands_and_use_files() {
    check(SED, Some("run a command"), &["e id", "1e", "p;e id", "p\ne id", "{e id\n}", "1!e id", "$ e id"]);
    check(SED, Some("write another file"), &["w x", "W x", "/a/w x", "1,2 w x"]);
    check(SED, Some("read another file"), &["r x", "R x", "$r x"]);
    check(
        SED,
        Some("run a script that may run a command or write a file"),
        &[
            "s/a/b/e",
            "s/a/b/w x",
            "s/a/b",
            "s/a",
            "s",
            "s/a/b/ge",
            "s/a[/]/b/",
            "s\\a\\b\\",
            "s/a\n/b/",
            "s[a[b[",
            "saxaya",
            "s/a/b\nc/",
            "s/[a\\]//",
        ],
    );
    check(
        SED,
        Some("run a script that the gate can't read"),
        &[
            "v",
            "k",
            "p p",
            "pp",
            "/x",
            "\\",
            "/[/p",
            "/a[/]/p",
            "y/a/b",
            "y/a",
            "y",
            "/[[.x.]]/p",
            "/[[:X:]]/p",
            "/[\\]]/p",
            "/[a\n]/p",
            "/[]x[]/p",
            "/a\\\nb/p",
            "yaabb",
            "y/a\nb/cde/",
            "s/a/b/g p",
            "ba-b",
        ],
    );
}

#[test]
fn awk_transforms_text() {
    check(
        AWK,
        None,
        &[
            "",
            "{print $1}",
            "$1 > 5 {print}",
            "{if ($1 > 5) print}",
            "{print ($1 > 5)}",
            "{print ($1 > 5), (2 > 1)}",
            "{print \"a > b\"}",
            "{print \"\\\"> x\"}",
            "{print} # > x",
            "# system(\n{print}",
            "{x = a || b}",
            "{systemd = 1}",
            "{system = (1)}",
            "/a > b/ {print}",
            "/a\\/b/ {print}",
            "$1 ~ /a > b/ {print}",
            "{print 4 /2}",
            "{x = 1 / 2; print x}",
            "{x = b / c; print \"x\"}",
            "/[/]/ {print}",
            "{print \"getline | system(1)\"}",
            "!/x > y/ {print}",
            "/a/ && /b > c/ {print}",
            "/a/ || /b > c/",
            "{gsub(/>/, \"x\"); print}",
            "{print 1; x = 2 > 1}",
            "/a/ {print \"x > y\"}",
            "/[a]/ {print \"x > y\"}",
            "/a/ {print \"/ > \"}",
            "{x = 4 /2; print \"a > b\"}",
            "# print > x\n{print}",
        ],
    );
}

#[test]
fn awk_can_run_commands_and_use_files() {
    check(
        AWK,
        Some("run a command or read another file"),
        &[
            "{system(\"id\")}",
            "{system (\"id\")}",
            "{system\t(\"id\")}",
            "{print | \"sh\"}",
            "{x || \"a\" | \"sh\"}",
            "{\"id\" | getline}",
            "{getline x < \"y\"}",
            "@include \"x\"",
            "{a = b / c; system(\"id\")}",
        ],
    );
    check(
        AWK,
        Some("read another file"),
        &["{print ENVIRON[\"X\"]}", "{print ARGV[1]}", "{ARGC = 1}", "{print SYMTAB[\"x\"]}"],
    );
    check(
        AWK,
        Some("possibly write another file"),
        &[
            "{print > \"x\"}",
            "{print >> \"x\"}",
            "{printf \"%d\", 1 > \"x\"}",
            "{print (1) > \"x\"}",
            "{print (1)(2) > \"x\"}",
            "{print(1) > \"x\"}",
            "{print ((1) > \"x\"}",
            "{print ) > \"x\"}",
            "{print ) (1 > 2)}",
            "{x = 1; print 2 > \"x\"}",
            "{a = b / c; print 1 > \"x\"}",
            "{print 1,\n2 > \"x\"}",
            // Here strings can't be told from code with certainty.
            "{a = b / c; print \"a > b\"}",
            "/xx[a]/ {print \"/ > \"}",
            "{print \\\n\"a > b\"}",
            "{print \"a\\\n> b\"}",
            "{print \"a\n> b\"}",
            "{print \"a\nb\" > \"x\"}",
        ],
    );
}

#[test]
fn variables_of_awk_are_harmless_unless_they_are_built_in() {
    for variable in ["x=1", "_x=1", "x_1=2", "X=", "OFS=,", "FS=:", "x=a=b"] {
        assert_eq!(effect(&format!("awk -v '{variable}' '{{print}}' a.txt")), None, "{variable}");
    }
    for variable in ["1x=1", "x-y=1", "x", "=1", "NR=1", "ENVIRON=x", "FPAT=x", "é=1"] {
        let found = effect(&format!("awk -v '{variable}' '{{print}}' a.txt"));
        assert_eq!(found, Some("change a built-in variable"), "{variable}");
    }
}

#[test]
fn files_in_scripts_must_not_be_protected() {
    let weight = |line: &str| heaviest_reasons(&judge_line(line, AutonomyLevel::Full, ""));
    for line in [
        "awk '{print > \"/etc/x\"}'",
        "awk '{print >> \"/etc/x\"}'",
        "awk '{print > (\"/etc/x\")}'",
        "awk '{print > \"a.txt\"; print > \"/etc/x\"}'",
        "sed 'w /etc/x' a.txt",
        "sed 'w/etc/x' a.txt",
        "sed '1w /etc/x' a.txt",
        "sed 'W /etc/x' a.txt",
        "sed 's/a/b/w /etc/x' a.txt",
        "sed 's/a/b/gw /etc/x' a.txt",
        "sed 'w a.txt\nw /etc/x' a.txt",
    ] {
        assert_eq!(weight(line), (ReasonWeight::Blocked, vec!["forbidden-path"]), "{line}");
    }
    for line in [
        "awk '{print > \"a.txt\"}'",
        "awk '{print > \"/dev/stderr\"}'",
        "awk '{print > \"\"}'",
        "awk '{print > x \"/etc/x\"}'",
        "sed 'w /dev/stdout' a.txt",
        "sed 'w' a.txt",
        "sed 'e now/etc/x' a.txt",
    ] {
        assert_eq!(weight(line), (ReasonWeight::High, vec!["argument"]), "{line}");
    }
}

/// A redirection of the shell to a computed name asks the operator, too: the sandbox keeps the file in the workspace.
#[test]
fn files_that_awk_prints_to_are_left_to_the_sandbox_of_a_judged_shell() {
    let judged = |line: &str, level| judge_shell(line, level, &policy(""), &JudgingMachine::new());
    for line in [
        "awk '{print > $1 \".txt\"}' a.txt",
        "awk '{print >> \"x\"}' a.txt",
        "awk '/a/ {printf \"b\" > x}' a.txt",
    ] {
        let found = judged(line, AutonomyLevel::Supervised);
        assert_eq!(found.verdict.decision, GateDecision::Ask, "{line}: {:?}", found.verdict);
        assert_eq!(found.plan, None, "{line}");
        assert_eq!(judged(line, AutonomyLevel::ReadOnly).verdict.decision, GateDecision::Deny, "{line}");
    }
    for line in [
        "awk '{print > \"/etc/x\"}' a.txt",
        "awk '{print > \".git/config\"}' a.txt",
        "awk '{print > \"shared.txt\"}' a.txt",
        "awk '{print > \"x\"; system(\"id\")}' a.txt",
        "awk '{print > \"x\"; print | \"sh\"}' a.txt",
    ] {
        let found = judged(line, AutonomyLevel::Supervised);
        assert_eq!(found.verdict.decision, GateDecision::Deny, "{line}: {:?}", found.verdict);
    }
}
