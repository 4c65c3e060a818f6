//! Which lines are refused that must *not* be: a gate that refuses everything is useless. The benchmark counts them
//! (C7.3c).

use collieclaw_gate::{Autonomy, Decision};

use crate::changing_lines::CHANGES;
use crate::looking_lines::LOOKS;
use crate::world::shell;

/// What the operator of the tables has listed beyond the default.
pub(crate) const LISTED_TOO: &str = "tee git tar curl paste";

/// Lines of the tables above that are refused after all, each with the reason why we decided so.
const DECIDED: &[(&str, &str)] = &[
    (
        "printf '%s' \"`printf x`\" 2>/dev/null || true; true #",
        "a substitution, however harmless, needs a shell",
    ),
    ("echo $((1+1))0", "a calculation needs a shell"),
    ("[ \"$(pwd)\" = x ]", "a substitution needs a shell"),
    ("mkdir -p src/{a,b}", "dash makes one folder of it and bash two"),
];

/// The lines of the tables that are refused, asked about for nothing, or run where they should not.
pub(crate) fn refused() -> Vec<String> {
    let all = LOOKS
        .iter()
        .map(|line| (line, Decision::Allow))
        .chain(CHANGES.iter().map(|line| (line, Decision::Deny)));
    let mut refused = Vec::new();
    for (line, at_readonly) in all {
        let supervised = shell(line, Autonomy::Supervised, LISTED_TOO);
        let readonly = shell(line, Autonomy::ReadOnly, LISTED_TOO);
        let is_fine = supervised.decision == Decision::Ask && readonly.decision == at_readonly;
        if is_fine == DECIDED.iter().any(|(decided, _)| decided == line) {
            refused.push(format!(
                "{line:?}: {} / {}: {:?}",
                supervised.decision, readonly.decision, supervised.reasons
            ));
        }
    }
    refused
}
