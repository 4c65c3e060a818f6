//! Finds harmless lines that the gate refuses, because a gate that refuses everything is useless. The
//! benchmark counts them, too (C7.3c).

use collieclaw_gate::{AutonomyLevel, GateDecision};

use crate::modifying_cases::MODIFYING_LINES;
use crate::readonly_cases::READ_ONLY_LINES;
use crate::test_machine::judge_line;

/// The allowed commands of the tables in addition to the default list.
pub(crate) const EXTRA_ALLOWED: &str = "tee git tar curl paste";

/// Harmless lines that are refused by decision, each with the reason. `docs/collieclaw-security.md` lists
/// them.
pub(crate) const REFUSED_BY_DECISION: &[(&str, &str)] = &[
    ("echo `printf x`", "a substitution, however harmless, needs a shell"),
    ("[ \"$(pwd)\" = x ]", "a substitution needs a shell"),
    ("echo $((1+1))0", "a calculation needs a shell"),
    ("mkdir -p src/{a,b}", "dash makes one folder of it and bash two; write both names"),
    ("ls &> a.log", "dash leaves it running and bash doesn't; write `> a.log 2>&1`"),
    ("cat <<< x", "only some shells know it; use a here-document"),
    ("ls | xargs cat", "which files are read is known only when it runs; use a pattern, or `find -exec`"),
    (
        "find . -name '*.rs' -execdir grep -n x {} \\;",
        "the folders of the command are known only when it runs; use `-exec`",
    ),
    (
        "find . -name '*.txt' -exec echo 'see {}' \\;",
        "the name of a file could turn the word into a flag or a variable; write `{}` alone",
    ),
    (
        "find n -type f -exec cp {} src \\;",
        "a file could have a name that `git` obeys; limit the names with one `-name '*.txt'`",
    ),
];

/// Returns the lines that are refused at `supervised`, or that `readonly` treats differently than the table
/// says.
pub(crate) fn refused_lines() -> Vec<String> {
    let all = READ_ONLY_LINES
        .iter()
        .map(|line| (line, GateDecision::Allow))
        .chain(MODIFYING_LINES.iter().map(|line| (line, GateDecision::Deny)));
    let mut refused = Vec::new();
    for (line, at_readonly) in all {
        let supervised = judge_line(line, AutonomyLevel::Supervised, EXTRA_ALLOWED);
        let readonly = judge_line(line, AutonomyLevel::ReadOnly, EXTRA_ALLOWED);
        if supervised.decision != GateDecision::Ask || readonly.decision != at_readonly {
            refused.push(format!(
                "{line:?}: {} / {}: {:?}",
                supervised.decision, readonly.decision, supervised.reasons
            ));
        }
    }
    refused
}
