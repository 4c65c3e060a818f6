//! The gate finishes even with lines that are designed to be slow. The benchmark measures the time.

use collieclaw_gate::shell::LONGEST_LINE;
use collieclaw_gate::{AutonomyLevel, judge_shell};

use crate::slow_cases::SLOW_LINE_KINDS;
use crate::test_machine::{GateTestMachine, policy};

/// The default stack size of threads, which is tight in a build without optimisation.
const STACK: usize = 2 << 20;

#[test]
fn no_line_runs_out_of_stack_or_time() {
    let judge_all = || {
        for kind in SLOW_LINE_KINDS {
            // An eighth of the maximum length keeps the test fast without optimisation.
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
