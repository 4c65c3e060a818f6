//! The redirections in plans.

use collieclaw_gate::plan::PlannedTarget;
use collieclaw_gate::{AutonomyLevel, judge_shell};

use crate::test_machine::{GateTestMachine, policy};

/// Returns the redirections of the first command; `None` if there is no plan.
fn first_redirections(line: &str) -> Option<Vec<(u32, PlannedTarget)>> {
    let plan = judge_shell(line, AutonomyLevel::Full, &policy(""), &GateTestMachine::new()).plan?;
    let command = &plan.lists()[0].first.commands[0];
    Some(
        command
            .redirections
            .iter()
            .map(|redirection| (redirection.descriptor, redirection.target.clone()))
            .collect(),
    )
}

#[test]
fn descriptors_are_redirected_as_in_a_shell() {
    let read = || PlannedTarget::Read("a.txt".to_owned());
    let write = || PlannedTarget::Write("b.txt".to_owned());
    for (line, expected) in [
        ("cat < a.txt", Some(vec![(0, read())])),
        ("cat <&1", Some(vec![(0, PlannedTarget::Duplicate(1))])),
        ("cat <&0", Some(vec![(0, PlannedTarget::Duplicate(0))])),
        ("cat < a.txt <&0", Some(vec![(0, read()), (0, PlannedTarget::Duplicate(0))])),
        ("ls >&2", Some(vec![(1, PlannedTarget::Duplicate(2))])),
        ("ls 2>&1", Some(vec![(2, PlannedTarget::Duplicate(1))])),
        ("ls 2<&1", Some(vec![(2, PlannedTarget::Duplicate(1))])),
        ("ls 1<&2 > b.txt", Some(vec![(1, PlannedTarget::Duplicate(2)), (1, write())])),
        ("ls > b.txt 2>&1", Some(vec![(1, write()), (2, PlannedTarget::Duplicate(1))])),
        ("cat <<E\nx\nE", Some(vec![(0, PlannedTarget::Text("x\n".to_owned()))])),
        ("ls 2>/dev/null", Some(vec![(2, PlannedTarget::Null)])),
        ("cat <&-", None),
        ("ls >&-", None),
        ("ls 2>&-", None),
        ("cat <&3", None),
        ("cat 3<&0", None),
        // Some shells write a file, others report an error.
        ("ls >&+2", None),
        ("ls >&b.txt", None),
    ] {
        assert_eq!(first_redirections(line), expected, "{line:?}");
    }
}
