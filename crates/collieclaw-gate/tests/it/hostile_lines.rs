//! Which lines pass that must not. The benchmark counts them (C7.3c).

use collieclaw_gate::{Autonomy, Decision, Weight};

use crate::blocked_lines::BLOCKED;
use crate::high_lines::HIGH;
use crate::world::{heaviest, shell};

/// Programs that can run others, which an operator might list all the same.
const LISTED_TOO: &str = "git tar curl wget less man rsync split xargs zip rg xxd tree cksum b2sum ssh";

/// The lines of the tables that pass, or that are stopped for another reason than they should be.
pub(crate) fn passed() -> Vec<String> {
    let mut passed = Vec::new();
    for (line, code) in BLOCKED {
        let verdict = shell(line, Autonomy::Full, "");
        let (weight, codes) = heaviest(&verdict);
        if verdict.decision != Decision::Deny || weight != Weight::Blocked || !codes.contains(code) {
            passed.push(format!("{line:?}: {} {weight:?} {codes:?}, not {code}", verdict.decision));
        }
    }
    for (line, code) in HIGH {
        let verdict = shell(line, Autonomy::Supervised, LISTED_TOO);
        let (weight, codes) = heaviest(&verdict);
        if verdict.decision != Decision::Deny || weight != Weight::High || !codes.contains(code) {
            passed.push(format!("{line:?}: {} {weight:?} {codes:?}, not {code}", verdict.decision));
        }
    }
    passed
}
