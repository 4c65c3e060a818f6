//! The grace of a program goes on when the daemon is killed repeatedly (S6.2, S9.1).

use std::time::{Duration, Instant};

use crate::harness::{ShepherddFixture, is_alive, policy, stubborn_entry};

const POLICY: &str = policy!(stubborn_entry!(
    "stubborn",
    r#"max_run = "1s"
stop_grace = "4s""#
));

#[test]
fn killing_the_daemon_repeatedly_does_not_keep_a_stubborn_program_alive() {
    let mut fixture = ShepherddFixture::running(POLICY);
    let launched = Instant::now();
    fixture.launch("stubborn");
    let player = fixture.wait_for_program();
    let mut gone = None;
    // The kills go on for much longer than one grace.
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(1_500));
        fixture.kill();
        fixture.start();
        if !is_alive(player) {
            gone = Some(launched.elapsed());
            break;
        }
    }
    let gone = gone.expect("its grace comes to an end");
    assert!(gone >= Duration::from_secs(5), "it had all of its grace: {gone:?}");
    fixture.wait_until_idle();
}
