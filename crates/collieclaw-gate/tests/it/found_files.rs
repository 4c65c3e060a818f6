//! Commands for files that `find` and `fd` find, whose names are known only when the line runs.

use collieclaw_gate::{AutonomyLevel, GateDecision, ReasonWeight, judge_shell};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{heaviest_reasons, judge_line, policy};

const LISTED: &str = "fd fdfind perl chmod tee";

fn check(expected: (ReasonWeight, &str), lines: &[&str]) {
    for line in lines {
        let (weight, codes) = heaviest_reasons(&judge_line(line, AutonomyLevel::Full, LISTED));
        assert_eq!((weight, codes.contains(&expected.1)), (expected.0, true), "{line}: {codes:?}");
    }
}

#[test]
fn files_are_deleted_by_a_condition_on_their_names_age_or_size() {
    check(
        (ReasonWeight::Medium, "writes-inside"),
        &[
            "find src -name x -delete",
            "find src -iname x -type f -delete",
            "find src \\( -name a -o -name b \\) -delete",
            "find src \\( -name a -or -name b , -name c \\) -delete",
            "find src -mtime +3 -delete",
            "find src -empty -delete -print",
            "find src -name x -delete -o -name y",
        ],
    );
    check(
        (ReasonWeight::High, "argument"),
        &[
            "find src -delete",
            "find src -type f -delete",
            "find src -delete -name x",
            "find src ! -name x -delete",
            "find src -not -name x -delete",
            "find src -name a -o -delete",
            "find src -name a -or -type f -delete",
            "find src -name a , -delete",
            "find src \\( -name a -delete",
            "find src \\( -name a \\) -o -delete",
            "find src -name $x -delete",
        ],
    );
}

#[test]
fn files_with_a_plain_ending_may_be_edited() {
    check(
        (ReasonWeight::Medium, "listed-program"),
        &[
            "find src -name '*.py' -exec sed -i s/a/b/ {} +",
            "find src -name '*.py' -exec perl -pi -e s/a/b/ {} +",
            "find src -name '*.sh' -exec chmod +x {} \\;",
            "find src -type f -name 'test_*.sh' -exec touch {} +",
            "find src -maxdepth 2 -mindepth 1 -size +1k -mtime 1 -mmin 5 -newer a.txt -name '*.py' -exec touch {} +",
            "find -name '*.py' -exec touch {} +",
        ],
    );
    check(
        (ReasonWeight::High, "argument"),
        &[
            "find src -exec sed -i s/a/b/ {} +",
            "find src -name '*' -exec touch {} +",
            "find src -name x.py -exec touch {} +",
            "find src -name '*.' -exec touch {} +",
            "find src -name '*.p*' -exec touch {} +",
            "find src -name '*.git' -exec touch {} +",
            "find src -name '*.GIT' -exec touch {} +",
            "find src -name '*.hg' -exec touch {} +",
            "find src -name '*.py' -o -name x -exec touch {} +",
            "find src -name '*.py' , -name x -exec touch {} +",
            "find src ! -name '*.py' -exec touch {} +",
            "find src \\( -name '*.py' \\) -exec touch {} +",
            "find src -perm 1 -name '*.py' -exec touch {} +",
            "find src -exec touch {} + -name '*.py'",
            "find src -name '*.txt' -exec tee {} +",
            "find src -name '*.txt' -exec touch x{} \\;",
            "find src -name '*.txt' -exec mv {} src \\;",
        ],
    );
}

#[test]
fn files_may_be_copied_to_a_folder_without_links() {
    check(
        (ReasonWeight::Medium, "writes-inside"),
        &[
            "find n -name '*.txt' -exec cp {} 'my dir' \\;",
            "find n -name '*.txt' -exec cp {} src/deep \\;",
            "find n -name x.git -exec cp {} 'my dir' \\;",
            "find src -name '*.txt' -exec cp {} n \\;",
        ],
    );
    check(
        (ReasonWeight::High, "argument"),
        &[
            "find n -name '*.txt' -exec cp {} links \\;",
            "find n -name '*.txt' -exec cp {} lost \\;",
            "find n -name '*.txt' -exec cp {} src \\;",
            "find n -name '*.txt' -exec cp {} kept \\;",
            "find n -name '*.txt' -exec cp -r {} 'my dir' \\;",
            "find n -name '*.txt' -exec cp -a {} 'my dir' \\;",
            "find n -name '*.txt' -exec cp --archive {} 'my dir' \\;",
            "find n -name '*.txt' -exec cp -d {} 'my dir' \\;",
            "find n -name '*.txt' -exec cp {} . \\;",
            "find n -name .git -exec cp {} 'my dir' \\;",
            "find n -name '*t' -exec cp {} 'my dir' \\;",
            "find n -name '.g[i]t' -exec cp {} 'my dir' \\;",
            "find n -name '*' -exec cp {} 'my dir' \\;",
            "find n -exec cp {} 'my dir' \\;",
        ],
    );
}

#[test]
fn several_commands_for_each_file_may_only_read() {
    check(
        (ReasonWeight::Medium, "listed-program"),
        &["find src -exec cat {} \\; -exec wc {} \\;", "find src -exec cat {} + -exec wc {} +"],
    );
    check(
        (ReasonWeight::High, "argument"),
        &[
            "find src -exec cat {} \\; -exec touch x \\;",
            "find src -exec touch x \\; -exec cat {} \\;",
            "find src -exec cat {} \\; -exec gcc {} \\;",
        ],
    );
}

#[test]
fn fd_adds_the_name_of_the_file_and_knows_parts_of_it() {
    check(
        (ReasonWeight::Medium, "listed-program"),
        &[
            "fd -e rs -x wc -l",
            "fd -e rs -x wc -l {}",
            "fd -x uniq {}",
            "fdfind x -X cat",
            "fd -x cat {} \\; -x wc",
        ],
    );
    check(
        (ReasonWeight::High, "argument"),
        &[
            "fd -x wc {.}",
            "fd -x wc {/}",
            "fd -x wc x{}",
            "fd -x touch",
            "fdfind -x touch",
            "fd -x sed -i s/a/b/",
        ],
    );
    // `find` adds nothing, and knows only `{}`.
    check(
        (ReasonWeight::Medium, "listed-program"),
        &["find src -exec touch x \\;", "find src -exec wc {.} \\;", "find src -exec echo {/} \\;"],
    );
    check((ReasonWeight::Blocked, "forbidden-command"), &["fd -x rm", "fd x -X rm", "find src -exec rm \\;"]);
}

#[test]
fn names_of_found_files_are_judged_when_the_command_runs() {
    let decision = |line: &str| {
        judge_shell(line, AutonomyLevel::Supervised, &policy(LISTED), &JudgingMachine::new()).verdict.decision
    };
    for line in [
        "find src -exec touch {} \\;",
        "find src -exec wc x{} \\;",
        "find src -exec cat {} \\; -exec touch x \\;",
    ] {
        assert_eq!(decision(line), GateDecision::Ask, "{line}");
    }
    for line in [
        "find src -exec rm {} \\;",
        "find src -exec sh -c {} \\;",
        "find src -delete",
        "find src -exec {} \\;",
    ] {
        assert_eq!(decision(line), GateDecision::Deny, "{line}");
    }
}
