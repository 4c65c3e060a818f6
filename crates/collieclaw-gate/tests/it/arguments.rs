//! The words of a command: flags, their values, and the operands that are paths.

use collieclaw_gate::{AutonomyLevel, GateDecision, GateReason, ReasonWeight, judge_shell};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{heaviest_reasons, judge_line, policy};

const LISTED: &str =
    "foo tar pytest make gcc git less wget curl cargo ln chmod python3 perl sqlite3 openssl env tee";

fn judged(line: &str) -> (ReasonWeight, String) {
    let (weight, codes) = heaviest_reasons(&judge_line(line, AutonomyLevel::Full, LISTED));
    (weight, codes.join("+"))
}

/// Asserts that all lines are harmless.
pub(crate) fn check_harmless(lines: &[&str]) {
    for line in lines {
        let (weight, codes) = judged(line);
        assert_eq!(weight, ReasonWeight::Medium, "{line}: {codes}");
    }
}

/// Asserts that all lines are refused with this code.
pub(crate) fn check_refused(expected: &str, lines: &[&str]) {
    for line in lines {
        let (_, codes) = judged(line);
        assert!(codes.split('+').any(|code| code == expected), "{line}: {codes}");
    }
}

#[test]
fn words_of_an_unknown_program_may_be_paths() {
    check_harmless(&[
        "foo a.txt",
        "foo --out=x src/y",
        // No folder has this name, so the word is the route of a server.
        "foo /api/users",
        "foo --route=/api/users",
        "foo @/api/users",
        "foo /dev/null",
        "foo a..b src/..x",
        "foo .git",
        "foo src/.git/",
        "foo https://example.org/x",
    ]);
    check_refused(
        "forbidden-path",
        &["foo /etc/passwd", "foo --file=/etc/passwd", "foo @/etc/passwd", "foo x=@/etc/passwd", "foo /etc"],
    );
    check_refused(
        "outside-workspace",
        &["foo ..", "foo src/../../x", "foo --file=../x", "foo /", "foo /api:/x", "foo /home/kid/x"],
    );
    check_refused("own-home", &["foo /home/kid/.collieclaw/x", "foo x=/home/kid/.collieclaw"]);
    check_refused("executable-config", &["foo .git/config", "foo x=src/.git/hooks/x", "foo @.hg/hgrc"]);
}

#[test]
fn streams_of_the_program_itself_are_no_files() {
    check_harmless(&[
        "cat /dev/stdin",
        "cat /dev/fd/63",
        "cat /proc/self/fd/0",
        "tee /dev/stderr",
        "ls > /dev/stdout",
    ]);
    check_refused(
        "outside-workspace",
        &["cat /dev/fd/", "cat /dev/fd/3x", "cat /proc/self/fd/", "cat /dev/tty"],
    );
}

#[test]
fn relative_paths_start_in_the_workspace_if_the_folder_is_unknown() {
    check_refused(
        "forbidden-path",
        &["cd $x; cat ../etc/passwd", "cd $x; cat /etc/passwd", "cd $x; cat passwd"],
    );
    check_refused("unknowable", &["cd $x; cat a.txt", "cd $x; cat src/main.rs"]);
}

#[test]
fn a_rule_forbids_a_command_and_its_variants() {
    check_refused("forbidden-command", &["rm x", "mkfs.ext4 x", "mkfs x", "rm.real x"]);
    check_refused("unlisted-program", &["rmx x", "mkfs-x y", "xrm y"]);
}

#[test]
fn flags_end_after_two_dashes() {
    check_harmless(&[
        "cat -- -n",
        "grep -- -f a.txt",
        "ls -- -l",
        "grep -e x -- a.txt",
        "cat -",
        "echo -delete",
    ]);
    check_refused(
        "forbidden-path",
        &["cat -- /etc/passwd", "grep -- -f /etc/passwd", "sort -- -o /etc/passwd"],
    );
}

#[test]
fn values_of_flags_are_no_operands() {
    check_harmless(&[
        "jq --arg x /etc/passwd . a.txt",
        "grep -e /etc/passwd a.txt",
        "grep -m 5 /etc/passwd a.txt",
        "grep -xm 5 /etc/passwd a.txt",
        // The file `=/etc/passwd` of the workspace.
        "grep -f=/etc/passwd a.txt",
        "nice -5 ls",
        "head -n 5 a.txt",
        "head -n5 a.txt",
        "head --lines=5 a.txt",
        "head -5 a.txt",
        "tail -5f a.txt",
        "ls --color=/etc/x",
        "sort -t / a.txt",
    ]);
    check_refused(
        "forbidden-path",
        &[
            "jq --arg x y . /etc/passwd",
            "grep -e x /etc/passwd",
            "grep - /etc/passwd",
            "grep -ex /etc/passwd",
            "head -n 5 /etc/passwd",
            "head -n5 /etc/passwd",
            "head --lines=5 /etc/passwd",
            "head -5 /etc/passwd",
            "sort -t/ /etc/passwd",
        ],
    );
}

#[test]
fn a_path_may_be_joined_to_the_flags_of_a_project_tool() {
    check_harmless(&[
        "pytest -Isrc/etc",
        "pytest -q -c src/x",
        "pytest -k=a/etc",
        "make -j4 -Csrc",
        "gcc -Isrc/deep x.c",
    ]);
    check_refused(
        "forbidden-path",
        &[
            "pytest -c/etc/x",
            "pytest -qc/etc/x",
            "pytest -qqc/etc/x",
            "pytest --rootdir=/etc",
            "make -C/etc",
            "pytest -c=/etc/x",
        ],
    );
}

#[test]
fn flags_of_tar_need_no_dash() {
    check_harmless(&["tar xf a.tar", "tar czf a.tgz src", "tar -xzf a.tgz", "tar tvf a.tar"]);
    // Both `--delete` and `--dereference` start like this.
    check_refused("argument", &["tar --de -tf a.tar"]);
    check_refused("argument", &["tar cPf a.tar .", "tar cIf x a.tar .", "tar -cPf a.tar src"]);
    check_refused("forbidden-path", &["tar cf /etc/x .", "tar xf /etc/x", "tar czf a.tgz /etc"]);
}

#[test]
fn flags_and_the_ends_of_commands_are_no_paths() {
    check_harmless(&["find . -exec echo /etc/passwd \\;"]);
    for (line, word) in
        [("tar tf a.tar", "tf"), ("find . -exec ls {} \\;", ";"), ("find . -exec ls {} +", "+")]
    {
        let reasons = judge_line(line, AutonomyLevel::Full, LISTED).reasons;
        let named = reasons.iter().find(|reason| reason.detail().contains(&format!("`{word}`")));
        assert_eq!(named, None, "{line}");
    }
}

#[test]
fn an_empty_word_is_no_path() {
    check_refused("not-a-path", &["cat ''", "cd /tmp; cat ''"]);
}

#[test]
fn words_with_a_plus_are_flags_of_pagers_only() {
    check_refused("argument", &["less +G a.txt", "less +F a.txt", "less '+!id' a.txt"]);
    check_harmless(&["less + a.txt", "less -N a.txt", "cargo +nightly build", "cat +x"]);
    check_refused("argument", &["cargo +nightly publish"]);
}

#[test]
fn modules_of_python_are_judged_like_their_tools() {
    check_harmless(&[
        "python3 -m pytest src",
        "python3 -m json.tool a.txt",
        "python3 -mpytest src",
        "python3 -m x.y",
    ]);
    check_refused(
        "forbidden-path",
        &["python3 -m pytest /etc", "python3 -mpytest /etc", "python3 -m x.y /etc/x"],
    );
    check_refused("argument", &["python3 -m", "python3 -m twine upload x"]);
}

#[test]
fn words_after_a_wrapper_are_a_command() {
    check_harmless(&["env ls", "env A=1 B=2 ls", "env - ls", "timeout 5 ls", "nice -n 5 ls", "env"]);
    check_refused("forbidden-command", &["env rm x", "env A=1 rm x", "timeout 5 rm x", "nice -n 5 rm x"]);
    check_refused("forbidden-command", &["env --x rm x", "setsid a b rm x", "env -u x --y a rm z"]);
    check_refused("unlisted-program", &["env gcd", "timeout gcd 5", "nice gcd"]);
    // After a variable, `-u` is no flag of `env`.
    check_refused("unlisted-program", &["env LANG=C -u ls", "env LANG=C TZ=UTC -u ls"]);
}

#[test]
fn flags_of_a_judged_shell_are_harmless() {
    let decision = |line: &str| {
        judge_shell(line, AutonomyLevel::Supervised, &policy(""), &JudgingMachine::new()).verdict.decision
    };
    for line in ["bash --debug x.sh", "bash -x run.sh /api/x", "bash -c 'ls' x /y", "sh", "xargs -0 ls"] {
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
    for line in [
        "bash ../x.sh",
        "bash -c 'rm x'",
        "zsh x.sh",
        "bash -c 'cat ../x'",
        "xargs --x rm",
        "xargs --x ls",
        "bash /etc/x",
    ] {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
}

#[test]
fn programs_that_may_change_something_do_not_run_at_readonly() {
    let decision = |line: &str| judge_line(line, AutonomyLevel::ReadOnly, LISTED).decision;
    for line in [
        "python3 -c x",
        "curl https://example.org/",
        "git -c color.ui=never log",
        "git log",
        "foo",
        "touch x",
        "tee /dev/null",
        "sort -o x a.txt",
        "cat /tmp/x > y",
    ] {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
    for line in ["cat a.txt", "sort a.txt", "env ls", "find . -name x", "ls > /dev/null"] {
        assert_eq!(decision(line), GateDecision::Allow, "{line}");
    }
}

#[test]
fn a_reading_program_is_listed_as_writing_if_an_argument_writes() {
    for (line, read_only) in [
        ("sort a.txt", true),
        ("sort -o x a.txt", false),
        ("sort -o x -o y a.txt", false),
        ("sort -o /dev/null a.txt", false),
    ] {
        let listed = GateReason::ListedProgram { name: "sort".to_owned(), read_only };
        let verdict = judge_line(line, AutonomyLevel::Full, "");
        assert!(verdict.reasons.contains(&listed), "{line}: {verdict:?}");
    }
}
