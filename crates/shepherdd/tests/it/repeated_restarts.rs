//! What goes on where it was, however often the daemon is killed: the time that a program is given to end (S6.2, S9.1).

use std::time::{Duration, Instant};

use crate::harness::ShepherddFixture;

const POLICY: &str = r#"
config_version = 1

[[entries]]
id = "stubborn"
argv = ["sh", "-c", "trap '' TERM; while :; do sleep TOKEN; done"]
always = true
max_run = "1s"
stop_grace = "4s"
"#;

#[test]
fn a_program_that_resists_is_not_kept_alive_by_killing_the_daemon_again_and_again() {
    let mut household = ShepherddFixture::running(POLICY);
    let launched = Instant::now();
    household.launch("stubborn");
    let player = household.wait_for_program();
    let mut gone = None;
    // Far more often than its grace would need to be over once.
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(1_500));
        household.kill();
        household.start();
        if !crate::harness::is_alive(player) {
            gone = Some(launched.elapsed());
            break;
        }
    }
    let gone = gone.expect("its grace comes to an end");
    assert!(gone >= Duration::from_secs(5), "it had all of its grace: {gone:?}");
    household.wait_until_idle();
}
