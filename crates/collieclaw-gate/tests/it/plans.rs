//! What a plan says beyond words and folders: where descriptors lead.

use collieclaw_gate::plan::To;
use collieclaw_gate::{Autonomy, judge_shell};

use crate::world::{World, policy};

/// Where the first command's descriptors lead; `None` if there is no plan.
fn leads(line: &str) -> Option<Vec<(u32, To)>> {
    let plan = judge_shell(line, Autonomy::Full, &policy(""), &World::new()).plan?;
    let command = &plan.lists()[0].first.commands[0];
    Some(
        command
            .redirections
            .iter()
            .map(|redirection| (redirection.descriptor, redirection.to.clone()))
            .collect(),
    )
}

#[test]
fn a_descriptor_leads_where_shells_lead_it() {
    let read = || To::Read("a.txt".to_owned());
    let write = || To::Write("b.txt".to_owned());
    for (line, expected) in [
        ("cat < a.txt", Some(vec![(0, read())])),
        ("cat <&1", Some(vec![(0, To::Copy(1))])),
        ("cat <&0", Some(vec![(0, To::Copy(0))])),
        ("cat < a.txt <&0", Some(vec![(0, read()), (0, To::Copy(0))])),
        ("ls >&2", Some(vec![(1, To::Copy(2))])),
        ("ls 2>&1", Some(vec![(2, To::Copy(1))])),
        ("ls 2<&1", Some(vec![(2, To::Copy(1))])),
        ("ls 1<&2 > b.txt", Some(vec![(1, To::Copy(2)), (1, write())])),
        ("ls > b.txt 2>&1", Some(vec![(1, write()), (2, To::Copy(1))])),
        ("cat <<E\nx\nE", Some(vec![(0, To::Text("x\n".to_owned()))])),
        ("ls 2>/dev/null", Some(vec![(2, To::Null)])),
        ("cat <&-", None),
        ("ls >&-", None),
        ("ls 2>&-", None),
        ("cat <&3", None),
        ("cat 3<&0", None),
        // A file for some shells, a fault for others.
        ("ls >&+2", None),
        ("ls >&b.txt", None),
    ] {
        assert_eq!(leads(line), expected, "{line:?}");
    }
}
