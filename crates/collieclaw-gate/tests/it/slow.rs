//! Lines that were made to be slow end all the same; how fast is for the benchmark to say.

use collieclaw_gate::shell::LONGEST_LINE;
use collieclaw_gate::{AutonomyLevel, judge_shell};

use crate::slow_cases::SLOW_LINE_KINDS;
use crate::test_machine::{GateTestMachine, policy};

/// A stack of the size that threads of the runtime have, in a build that is not optimised.
const STACK: usize = 2 << 20;

#[test]
fn no_line_runs_out_of_stack_or_time() {
    let judge_all = || {
        for kind in SLOW_LINE_KINDS {
            // A build that is not optimised is slow enough with a part of it.
            let judged = judge_shell(
                &kind.line(LONGEST_LINE / 8),
                AutonomyLevel::Full,
                &policy(""),
                &GateTestMachine::new(),
            );
            assert!(!judged.verdict.reasons.is_empty(), "{}", kind.name);
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, judge_all);
        thread.expect("a thread").join().expect("no line makes the gate panic");
    });
}
