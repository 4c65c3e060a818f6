//! Which lines are refused that must *not* be: a gate that refuses everything is useless. The benchmark counts them
//! (C7.3c).

use collieclaw_gate::{AutonomyLevel, GateDecision};

use crate::modifying_cases::MODIFYING_LINES;
use crate::readonly_cases::READ_ONLY_LINES;
use crate::test_machine::judge_line;

/// What the operator of the tables has listed beyond the default.
pub(crate) const LISTED_TOO: &str = "tee git tar curl paste";

/// Harmless lines that are refused all the same, each with the reason why we decided so. The documentation lists them.
pub(crate) const REFUSED_BY_DECISION: &[(&str, &str)] = &[
    ("echo `printf x`", "a substitution, however harmless, needs a shell"),
    ("[ \"$(pwd)\" = x ]", "a substitution needs a shell"),
    ("echo $((1+1))0", "a calculation needs a shell"),
    ("mkdir -p src/{a,b}", "dash makes one folder of it and bash two; write both names"),
    ("ls &> a.log", "dash leaves it running and bash doesn't; write `> a.log 2>&1`"),
    ("cat <<< x", "only some shells know it; use a here-document"),
    ("ls | xargs cat", "which files are read is known only when it runs; use a pattern, or `find -exec`"),
    ("grep -R x .", "links on the way may lead out of the workspace; `-r` follows none"),
    ("ls -LR", "links on the way may lead out of the workspace; `-R` alone follows none"),
    ("du -L .", "links on the way may lead out of the workspace; without `-L` none is followed"),
    ("sha256sum -c a.txt", "it reads the files that a list names, and nobody has looked at the list"),
    (
        "find . -name '*.rs' -execdir grep -n x {} \\;",
        "it runs in folders that are known only then; `-exec` runs in this one",
    ),
    (
        "find . -name '*.txt' -exec echo 'see {}' \\;",
        "a name can make a flag or a variable of a word; write `{}` alone",
    ),
    (
        "find n -type f -exec cp {} src \\;",
        "a file may have a name that steers `git`; say which with one `-name '*.txt'`",
    ),
];

/// The lines of the tables that are refused, asked about for nothing, or run where they should not.
pub(crate) fn refused_lines() -> Vec<String> {
    let all = READ_ONLY_LINES
        .iter()
        .map(|line| (line, GateDecision::Allow))
        .chain(MODIFYING_LINES.iter().map(|line| (line, GateDecision::Deny)));
    let mut refused = Vec::new();
    for (line, at_readonly) in all {
        let supervised = judge_line(line, AutonomyLevel::Supervised, LISTED_TOO);
        let readonly = judge_line(line, AutonomyLevel::ReadOnly, LISTED_TOO);
        if supervised.decision != GateDecision::Ask || readonly.decision != at_readonly {
            refused.push(format!(
                "{line:?}: {} / {}: {:?}",
                supervised.decision, readonly.decision, supervised.reasons
            ));
        }
    }
    refused
}
