//! Tests of the ladder's timing, with made-up times and no process.

use super::*;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn quit_command() -> StopCommand {
    StopCommand { program: "/bin/quit".into(), args: vec![], env: vec![] }
}

const ACTIONS: [&str; 3] = ["press the power button", "quit", "signal"];

/// Starts a ladder with the first `count` of [`ACTIONS`], which share the grace.
fn sharing_grace(count: usize, grace: Duration) -> LadderProgress<&'static str> {
    LadderProgress::new(StopLadder::sharing_grace(ACTIONS.into_iter().take(count), grace))
}

fn try_rung(index: usize) -> LadderStep<'static, &'static str> {
    LadderStep::TryRung { index, action: &ACTIONS[index] }
}

#[test]
fn polite_rungs_come_in_order_each_with_its_patience_and_the_kill_is_last() {
    let mut ladder = StopLadder::polite(ms(100)).after_command(quit_command(), ms(50));
    ladder.kill_patience = ms(10);
    let (run, signal) = (StopAction::Run(quit_command()), StopAction::Signal(StopSignal::Terminate));
    let mut progress = LadderProgress::new(ladder);
    assert_eq!(progress.ended_by(), EndedBy::Itself);
    assert_eq!(progress.next_step(ms(0)), LadderStep::TryRung { index: 0, action: &run });
    assert_eq!(progress.next_step(ms(1)), LadderStep::WaitUntil(ms(50)));
    assert_eq!(progress.ended_by(), EndedBy::Rung(0));
    assert_eq!(progress.next_step(ms(50)), LadderStep::TryRung { index: 1, action: &signal });
    assert_eq!(progress.next_step(ms(51)), LadderStep::WaitUntil(ms(150)));
    assert_eq!(progress.ended_by(), EndedBy::Rung(1));
    assert_eq!(progress.next_step(ms(150)), LadderStep::Kill);
    assert_eq!(progress.ended_by(), EndedBy::Kill);
    assert_eq!(progress.next_step(ms(151)), LadderStep::WaitUntil(ms(152)));
    assert_eq!(progress.next_step(ms(152)), LadderStep::Kill);
    assert_eq!(progress.next_step(ms(160)), LadderStep::ReportSurvivors);
    assert_eq!(progress.ended_by(), EndedBy::Kill);
}

#[test]
fn a_stop_step_that_fails_is_skipped_without_waiting() {
    let mut progress = LadderProgress::new(StopLadder::force().after_command(quit_command(), ms(50)));
    assert!(matches!(progress.next_step(ms(0)), LadderStep::TryRung { index: 0, .. }));
    progress.skip_rung(0);
    assert_eq!(progress.next_step(ms(1)), LadderStep::Kill);
    progress.skip_rung(0);
    assert_eq!(progress.next_step(ms(1)), LadderStep::WaitUntil(ms(3)));
}

#[test]
fn kills_become_rarer_but_never_stop() {
    let mut progress = LadderProgress::new(StopLadder::force());
    let mut kills = Vec::new();
    for now in (0..600).map(ms) {
        if progress.next_step(now) == LadderStep::Kill {
            kills.push(now.as_millis());
        }
    }
    assert_eq!(kills, [0, 2, 6, 14, 30, 62, 126, 226, 326, 426, 526]);
}

#[test]
fn force_kills_at_once_and_patience_without_end_does_not_overflow() {
    assert_eq!(LadderProgress::new(StopLadder::force()).next_step(ms(7)), LadderStep::Kill);
    let mut progress = LadderProgress::new(StopLadder::polite(Duration::MAX));
    assert!(matches!(progress.next_step(ms(5)), LadderStep::TryRung { .. }));
    assert_eq!(progress.next_step(ms(6)), LadderStep::WaitUntil(Duration::MAX));
}

#[test]
fn fixed_patience_of_zero_still_makes_the_request() {
    let mut progress = LadderProgress::new(StopLadder::polite(Duration::ZERO));
    assert!(matches!(progress.next_step(ms(0)), LadderStep::TryRung { .. }));
    assert_eq!(progress.next_step(ms(0)), LadderStep::Kill);
}

#[test]
fn each_rung_gets_half_of_the_grace_that_is_left_and_the_last_rung_all_of_it() {
    let mut progress = sharing_grace(3, ms(800));
    assert_eq!(progress.next_step(ms(0)), try_rung(0));
    assert_eq!(progress.next_step(ms(1)), LadderStep::WaitUntil(ms(400)));
    assert_eq!(progress.next_step(ms(400)), try_rung(1));
    assert_eq!(progress.next_step(ms(400)), LadderStep::WaitUntil(ms(600)));
    assert_eq!(progress.next_step(ms(600)), try_rung(2));
    assert_eq!(progress.next_step(ms(601)), LadderStep::WaitUntil(ms(800)));
    assert_eq!(progress.next_step(ms(800)), LadderStep::Kill);
    assert_eq!(progress.next_step(ms(800)), LadderStep::WaitUntil(ms(802)));
}

#[test]
fn without_grace_or_without_rungs_the_kill_comes_at_once() {
    assert_eq!(sharing_grace(2, Duration::ZERO).next_step(ms(0)), LadderStep::Kill);
    assert_eq!(sharing_grace(0, ms(100)).next_step(ms(0)), LadderStep::Kill);
}

#[test]
fn when_the_grace_is_over_the_kill_comes_even_if_rungs_are_left() {
    let mut progress = sharing_grace(3, ms(800));
    assert_eq!(progress.next_step(ms(0)), try_rung(0));
    assert_eq!(progress.next_step(ms(900)), LadderStep::Kill);
    let mut ladder = StopLadder::polite(ms(100)).after_command(quit_command(), ms(50));
    ladder.grace = ms(70);
    let mut progress = LadderProgress::new(ladder);
    assert!(matches!(progress.next_step(ms(0)), LadderStep::TryRung { index: 0, .. }));
    assert!(matches!(progress.next_step(ms(50)), LadderStep::TryRung { index: 1, .. }));
    assert_eq!(progress.next_step(ms(51)), LadderStep::WaitUntil(ms(70)));
    assert_eq!(progress.next_step(ms(70)), LadderStep::Kill);
}

#[test]
fn a_request_that_can_not_be_made_costs_no_time() {
    let mut progress = sharing_grace(2, ms(800));
    assert_eq!(progress.next_step(ms(0)), try_rung(0));
    progress.skip_rung(0);
    assert_eq!(progress.next_step(ms(3)), try_rung(1));
    // This failure is reported too late: the ladder waits for the second rung now.
    progress.skip_rung(0);
    assert_eq!(progress.next_step(ms(4)), LadderStep::WaitUntil(ms(800)));
    progress.skip_rung(1);
    assert_eq!(progress.next_step(ms(5)), LadderStep::Kill);
}

#[test]
fn a_second_order_can_only_be_stricter() {
    let mut progress = sharing_grace(1, ms(800));
    assert_eq!(progress.next_step(ms(0)), try_rung(0));
    progress.shorten_grace(ms(2_000));
    assert_eq!(progress.next_step(ms(1)), LadderStep::WaitUntil(ms(800)));
    progress.shorten_grace(ms(300));
    assert_eq!(progress.next_step(ms(2)), LadderStep::WaitUntil(ms(300)));
    progress.shorten_grace(ms(0));
    assert_eq!(progress.next_step(ms(3)), LadderStep::Kill);
}

#[test]
fn a_process_that_survives_its_kill_is_killed_again_and_reported() {
    let mut progress = sharing_grace(0, Duration::ZERO);
    let (mut kills, mut reports, mut now) = (0, 0, Duration::ZERO);
    while now < Duration::from_secs(35) {
        match progress.next_step(now) {
            LadderStep::Kill => kills += 1,
            LadderStep::ReportSurvivors => reports += 1,
            LadderStep::WaitUntil(until) => now = until,
            LadderStep::TryRung { .. } => unreachable!("the ladder has no rung"),
        }
    }
    assert_eq!(reports, 3);
    assert!(kills > 300, "{kills}");
}

#[test]
fn each_round_of_kills_starts_with_a_kill_and_the_shortest_pause() {
    let mut ladder = StopLadder::force();
    ladder.kill_patience = ms(10);
    let mut progress = LadderProgress::new(ladder);
    assert_eq!(progress.next_step(ms(0)), LadderStep::Kill);
    assert_eq!(progress.next_step(ms(10)), LadderStep::ReportSurvivors);
    assert_eq!(progress.next_step(ms(500)), LadderStep::Kill);
    assert_eq!(progress.next_step(ms(500)), LadderStep::WaitUntil(ms(502)));
    assert_eq!(progress.next_step(ms(510)), LadderStep::ReportSurvivors);
}

#[test]
fn an_unlimited_grace_does_not_overflow() {
    let mut progress = sharing_grace(1, Duration::MAX);
    assert_eq!(progress.next_step(ms(5)), try_rung(0));
    assert_eq!(progress.next_step(ms(6)), LadderStep::WaitUntil(Duration::MAX));
}
