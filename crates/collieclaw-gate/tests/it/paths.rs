//! The verdicts on paths that the file tools read and write (C7.4).

use collieclaw_gate::{AutonomyLevel, GateDecision, GateOutcome, GatePolicy, GateRequest, PathBounds, judge};

use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};

fn judge_request(call: GateRequest<'_>, policy: &GatePolicy) -> (GateDecision, String) {
    let outcome = judge(call, policy, &GateTestMachine::new());
    let verdict = outcome.verdict();
    (verdict.decision, heaviest_reasons(verdict).1.join("+"))
}

/// Paths, each with the code of the verdict on reading it and on writing it.
const PATHS: &[(&str, &str, &str)] = &[
    // Inside.
    (".", "reads-inside", "writes-inside"),
    ("README.md", "reads-inside", "writes-inside"),
    ("./README.md", "reads-inside", "writes-inside"),
    ("src/../README.md", "reads-inside", "writes-inside"),
    ("src//main.rs", "reads-inside", "writes-inside"),
    ("src/./main.rs", "reads-inside", "writes-inside"),
    ("/w/README.md", "reads-inside", "writes-inside"),
    ("/w/src/../README.md", "reads-inside", "writes-inside"),
    ("new/deep/file.txt", "reads-inside", "writes-inside"),
    ("inner/main.rs", "reads-inside", "writes-inside"),
    ("inner/../README.md", "reads-inside", "writes-inside"),
    (".hidden", "reads-inside", "writes-inside"),
    ("my dir/n.txt", "reads-inside", "writes-inside"),
    ("..hidden", "reads-inside", "writes-inside"),
    ("a..b", "reads-inside", "writes-inside"),
    ("$HOME", "reads-inside", "writes-inside"),
    ("*", "reads-inside", "writes-inside"),
    ("ünïcode.txt", "reads-inside", "writes-inside"),
    ("-rf", "reads-inside", "writes-inside"),
    // Files that control `git`.
    (".git", "reads-inside", "executable-config"),
    (".git/config", "reads-inside", "executable-config"),
    (".git/hooks/pre-commit", "reads-inside", "executable-config"),
    ("src/.GIT/config", "reads-inside", "executable-config"),
    ("inner/../.git/config", "reads-inside", "executable-config"),
    (".gitignore", "reads-inside", "writes-inside"),
    // Outside.
    ("..", "outside-workspace", "outside-workspace"),
    ("../", "outside-workspace", "outside-workspace"),
    ("../x", "outside-workspace", "outside-workspace"),
    ("src/../../x", "outside-workspace", "outside-workspace"),
    ("/", "outside-workspace", "outside-workspace"),
    ("//", "outside-workspace", "outside-workspace"),
    ("/tmp/x", "outside-workspace", "outside-workspace"),
    ("/w2/x", "outside-workspace", "outside-workspace"),
    ("/w/../tmp/x", "outside-workspace", "outside-workspace"),
    ("/W/README.md", "outside-workspace", "outside-workspace"),
    ("/proc/self/root/w/README.md", "outside-workspace", "outside-workspace"),
    ("/proc/self/environ", "outside-workspace", "outside-workspace"),
    ("/dev/null", "outside-workspace", "outside-workspace"),
    ("~", "outside-workspace", "outside-workspace"),
    ("~/", "outside-workspace", "outside-workspace"),
    ("~/.bashrc", "outside-workspace", "outside-workspace"),
    ("/home/kid", "outside-workspace", "outside-workspace"),
    ("gone", "outside-workspace", "outside-workspace"),
    // Forbidden, in every spelling.
    ("/etc", "forbidden-path", "forbidden-path"),
    ("/etc/", "forbidden-path", "forbidden-path"),
    ("/etc/passwd", "forbidden-path", "forbidden-path"),
    ("//etc//passwd", "forbidden-path", "forbidden-path"),
    ("/etc/./passwd", "forbidden-path", "forbidden-path"),
    ("/usr/../etc/passwd", "forbidden-path", "forbidden-path"),
    ("../etc/passwd", "forbidden-path", "forbidden-path"),
    ("../../../../etc/passwd", "forbidden-path", "forbidden-path"),
    ("passwd", "forbidden-path", "forbidden-path"),
    ("out", "forbidden-path", "forbidden-path"),
    ("out/passwd", "forbidden-path", "forbidden-path"),
    ("out/../passwd", "outside-workspace", "outside-workspace"),
    ("inner/../out/passwd", "forbidden-path", "forbidden-path"),
    ("chain", "forbidden-path", "forbidden-path"),
    ("~/.ssh", "forbidden-path", "forbidden-path"),
    ("~/.ssh/id_ed25519", "forbidden-path", "forbidden-path"),
    ("/home/kid/.ssh/../.ssh/id_ed25519", "forbidden-path", "forbidden-path"),
    ("/sys/power/state", "forbidden-path", "forbidden-path"),
    // CollieClaw's own files.
    ("~/.collieclaw", "own-home", "own-home"),
    ("~/.collieclaw/config.toml", "own-home", "own-home"),
    ("/home/kid/.collieclaw/tool_receipts.log", "own-home", "own-home"),
    // Invalid paths, loops, devices and hard links.
    ("", "not-a-path", "not-a-path"),
    ("a\0b", "not-a-path", "not-a-path"),
    ("~root/.bashrc", "not-a-path", "not-a-path"),
    ("~kim", "not-a-path", "not-a-path"),
    ("round", "wrong-kind", "wrong-kind"),
    ("round/x", "wrong-kind", "wrong-kind"),
    ("pipe", "wrong-kind", "wrong-kind"),
    ("shared.txt", "reads-inside", "hard-link"),
];

#[test]
fn paths_are_judged_as_written_and_as_followed() {
    let policy = policy("");
    let mut wrong = Vec::new();
    for (path, read, write) in PATHS {
        let is_read = judge_request(GateRequest::FileRead(path), &policy);
        let is_written = judge_request(GateRequest::FileWrite(path), &policy);
        let read_decision = if *read == "reads-inside" { GateDecision::Allow } else { GateDecision::Deny };
        let write_decision = if *write == "writes-inside" { GateDecision::Ask } else { GateDecision::Deny };
        if is_read != (read_decision, (*read).to_owned())
            || is_written != (write_decision, (*write).to_owned())
        {
            wrong.push(format!("{path:?}: read {is_read:?}, written {is_written:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(PATHS.len() >= 60, "{}", PATHS.len());
}

#[test]
fn readonly_writes_nothing_and_full_writes_without_asking() {
    let at = |autonomy| GatePolicy { autonomy, ..policy("") };
    let write = GateRequest::FileWrite("README.md");
    assert_eq!(judge_request(write, &at(AutonomyLevel::ReadOnly)).0, GateDecision::Deny);
    assert_eq!(judge_request(write, &at(AutonomyLevel::Full)).0, GateDecision::Allow);
    assert_eq!(
        judge_request(GateRequest::FileRead("README.md"), &at(AutonomyLevel::ReadOnly)).0,
        GateDecision::Allow
    );
    assert_eq!(
        judge_request(GateRequest::FileWrite("/etc/passwd"), &at(AutonomyLevel::Full)).0,
        GateDecision::Deny
    );
}

#[test]
fn without_bounds_outside_is_asked_about_but_forbidden_stays_forbidden() {
    let policy = GatePolicy { bounds: PathBounds::Anywhere, ..policy("") };
    assert_eq!(
        judge_request(GateRequest::FileRead("/tmp/x"), &policy),
        (GateDecision::Ask, "reads-outside".to_owned())
    );
    assert_eq!(
        judge_request(GateRequest::FileWrite("/tmp/x"), &policy),
        (GateDecision::Deny, "writes-outside".to_owned())
    );
    for path in
        ["/proc/self/environ", "/proc/self/root/w/README.md", "/sys/power/state", "/dev/sda", "/dev/null"]
    {
        let forbidden = (GateDecision::Deny, "forbidden-path".to_owned());
        assert_eq!(judge_request(GateRequest::FileRead(path), &policy), forbidden, "{path}");
        assert_eq!(judge_request(GateRequest::FileWrite(path), &policy), forbidden, "{path}");
    }
    assert_eq!(
        judge_request(GateRequest::FileRead("passwd"), &policy),
        (GateDecision::Deny, "forbidden-path".to_owned())
    );
    assert_eq!(
        judge_request(GateRequest::FileRead("~/.collieclaw/x"), &policy),
        (GateDecision::Deny, "own-home".to_owned())
    );
}

#[test]
fn an_approved_question_becomes_a_permit_of_the_operator() {
    let GateOutcome::NeedsApproval(question) =
        judge(GateRequest::FileWrite("README.md"), &policy(""), &GateTestMachine::new())
    else {
        panic!("a write is asked about");
    };
    assert_eq!(question.approve().approved_by(), collieclaw_gate::ApprovalSource::Operator);
}

#[test]
fn moving_a_folder_with_a_forbidden_path_names_that_path() {
    let outcome = judge(GateRequest::Shell("mv kept b"), &policy(""), &GateTestMachine::new());
    let sentence = outcome.verdict().reasons.first().unwrap().detail();
    assert_eq!(sentence, "`kept/secret` is under the forbidden path `/w/kept/secret`");
}

/// C19.1: an entry that is moved or deleted is judged by its own place, and both ends of a move are judged.
#[test]
fn moving_and_deleting_are_judged_like_writes_of_the_entry_itself() {
    let policy = policy("");
    let check = |call: GateRequest<'_>, expected: &str| {
        let decision = if expected == "writes-inside" { GateDecision::Ask } else { GateDecision::Deny };
        assert_eq!(judge_request(call, &policy), (decision, expected.to_owned()), "{call:?}");
    };
    for (path, deleted, moved) in [
        ("README.md", "writes-inside", "writes-inside"),
        ("src", "writes-inside", "writes-inside"),
        // Symlinks that lead out of the workspace.
        ("passwd", "writes-inside", "writes-inside"),
        ("out", "writes-inside", "writes-inside"),
        ("out/passwd", "forbidden-path", "forbidden-path"),
        // Taking away one of several names changes nothing elsewhere.
        ("shared.txt", "writes-inside", "hard-link"),
        (".git", "executable-config", "executable-config"),
        ("inner/../.git/config", "executable-config", "executable-config"),
        ("kept", "forbidden-path", "forbidden-path"),
        ("kept/secret", "forbidden-path", "forbidden-path"),
        (".", "wrong-kind", "wrong-kind"),
        ("src/..", "wrong-kind", "wrong-kind"),
        ("..", "outside-workspace", "outside-workspace"),
        ("/", "outside-workspace", "outside-workspace"),
        ("~/.collieclaw", "own-home", "own-home"),
        ("", "not-a-path", "not-a-path"),
    ] {
        check(GateRequest::FileDelete(path), deleted);
        check(GateRequest::FileMove { from: path, to: "new/name" }, moved);
    }
    for (to, expected) in [
        ("new", "writes-inside"),
        (".git/hooks/pre-commit", "executable-config"),
        ("passwd", "forbidden-path"),
        ("../x", "outside-workspace"),
        ("shared.txt", "hard-link"),
    ] {
        check(GateRequest::FileMove { from: "README.md", to }, expected);
    }
}
