//! Compares the engine with a deliberately simple second implementation (S13.5): random households, some around changes
//! of the clock, minute by minute over a week.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shepherd_api::{EntryTimeline, EntryView, ReasonCode, RuleOutcomeView, RuleView, TimeInterval};
use shepherd_core::policy::Policy;
use shepherd_core::{CoreEngine, EngineEnvironment, HostCapabilities};
use shepherd_util::{ClockReading, MonotonicInstant, ProfileId};

use self::naive::{LONGEST_RUN, NaiveEvaluator, WatchedMinutes};
use self::random_household::{OracleHousehold, OracleRng};
use crate::harness::{BERLIN, boot, hours, zone};

mod naive;
mod random_household;

const WEEK: usize = 7 * 1440;

/// The answer of either implementation for one time.
#[derive(Debug, PartialEq)]
struct OracleAnswer {
    enabled: bool,
    reasons: Vec<ReasonCode>,
    longest_run: Option<Duration>,
    next_available: Option<Timestamp>,
}

fn check(seed: u64) {
    let mut rng = OracleRng::new(seed);
    let OracleHousehold { rules, store, watch } = OracleHousehold::random(&mut rng);
    let place = EngineEnvironment { boot: boot(1), zone: zone(BERLIN) };
    let policy = Policy::new(rules.clone()).unwrap();
    let engine = CoreEngine::new(policy, store.clone(), HostCapabilities::all_supported(), place);
    let evaluators: Vec<NaiveEvaluator<'_>> =
        rules.entries.iter().map(|entry| NaiveEvaluator::new(&rules, &store, entry, &watch)).collect();
    compare_timeline(&engine, &evaluators, &watch, seed);
    for (index, seconds) in moments(&mut rng, &evaluators) {
        compare_moment(&engine, &evaluators, &watch, (index, seconds), seed);
    }
}

/// Returns the times at which an answer changes, the second before each, and some times in between.
fn moments(rng: &mut OracleRng, evaluators: &[NaiveEvaluator<'_>]) -> Vec<(usize, u64)> {
    const AT_MOST: usize = 24;
    let mut edges: Vec<usize> =
        (1..WEEK).filter(|index| evaluators.iter().any(|evaluator| evaluator.is_edge(*index))).collect();
    while edges.len() > AT_MOST {
        edges.swap_remove(rng.index(edges.len()));
    }
    let mut moments: Vec<(usize, u64)> =
        edges.into_iter().flat_map(|index| [(index - 1, 59), (index, 0)]).collect();
    moments.extend((0..8).map(|_| (rng.index(WEEK), rng.below(60))));
    moments
}

fn compare_moment(
    engine: &CoreEngine,
    evaluators: &[NaiveEvaluator<'_>],
    watch: &WatchedMinutes,
    (index, seconds): (usize, u64),
    seed: u64,
) {
    let at = watch.at(index) + SignedDuration::from_secs(i64::try_from(seconds).unwrap());
    let horizon = watch.at(2 * WEEK);
    let profile = ProfileId::default();
    let now = ClockReading { wall: at, mono: MonotonicInstant::BOOT.after(hours(5)) };
    let (then, now) = (engine.list_entries_at(&profile, at), engine.list_entries_for(&profile, now));
    for (evaluator, (then, now)) in evaluators.iter().zip(then.iter().zip(&now)) {
        let enabled = evaluator.enabled(index);
        let run = enabled.then(|| evaluator.longest_run(index, seconds)).flatten();
        let again = if enabled { None } else { evaluator.next_available(index) };
        let expected = OracleAnswer {
            enabled,
            reasons: reasons_within_horizon(evaluator.reasons(index), horizon),
            longest_run: run.filter(|run| *run <= LONGEST_RUN),
            next_available: drop_after_horizon(again, horizon),
        };
        let context = format!("seed {seed}, {} at {at}", then.entry_id);
        assert_eq!(engine_answer(then, evaluator, horizon), expected, "{context}, asked before");
        assert_eq!(engine_answer(now, evaluator, horizon), expected, "{context}, asked now");
        compare_why(&engine.why_at(&profile, &then.entry_id, at).unwrap().rules, then, at, &context);
    }
}

fn engine_answer(view: &EntryView, evaluator: &NaiveEvaluator<'_>, horizon: Timestamp) -> OracleAnswer {
    let longest_run = view.max_run_if_started_now.map(Duration::from).filter(|run| *run <= LONGEST_RUN);
    OracleAnswer {
        enabled: view.enabled,
        reasons: reasons_within_horizon(view.reasons.clone(), horizon),
        longest_run,
        next_available: drop_after_horizon(view.next_available, horizon).filter(|_| evaluator.can_foresee()),
    }
}

/// Removes a time after the simulated weeks, which can't be compared.
fn drop_after_horizon(at: Option<Timestamp>, horizon: Timestamp) -> Option<Timestamp> {
    at.filter(|at| *at < horizon)
}

/// Sorts the reasons, and removes times after the simulated weeks.
fn reasons_within_horizon(reasons: Vec<ReasonCode>, horizon: Timestamp) -> Vec<ReasonCode> {
    let mut reasons: Vec<ReasonCode> = reasons
        .into_iter()
        .map(|reason| match reason {
            ReasonCode::OutsideHours { next_opening } => {
                ReasonCode::OutsideHours { next_opening: drop_after_horizon(next_opening, horizon) }
            }
            ReasonCode::Bedtime { until } => {
                ReasonCode::Bedtime { until: drop_after_horizon(until, horizon) }
            }
            ReasonCode::QuotaExhausted { quota, used, limit, until } => {
                ReasonCode::QuotaExhausted { quota, used, limit, until: drop_after_horizon(until, horizon) }
            }
            other => other,
        })
        .collect();
    reasons.sort_by_key(|reason| format!("{reason:?}"));
    reasons
}

/// S3.10: checks that `why` gives the same reasons as the view, and that its smallest limit is the longest run.
fn compare_why(why: &[RuleView], view: &EntryView, at: Timestamp, context: &str) {
    let forbids: Vec<ReasonCode> = why
        .iter()
        .filter_map(|rule| match &rule.outcome {
            RuleOutcomeView::Refuses { reason } => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(forbids, view.reasons, "{context}, why");
    let least = why
        .iter()
        .filter_map(|rule| match rule.outcome {
            RuleOutcomeView::Limits { at_most } => Some(at_most.into()),
            RuleOutcomeView::LimitsUntil { until } => {
                Some(Duration::try_from(until.duration_since(at)).unwrap())
            }
            RuleOutcomeView::Passes | RuleOutcomeView::Refuses { .. } => None,
        })
        .min();
    if view.enabled {
        assert_eq!(least.map(Into::into), view.max_run_if_started_now, "{context}, why: {why:#?}");
    }
}

/// Checks that every minute inside an interval is available, and no minute outside.
fn compare_timeline(
    engine: &CoreEngine,
    evaluators: &[NaiveEvaluator<'_>],
    watch: &WatchedMinutes,
    seed: u64,
) {
    let timeline = engine.timeline(&ProfileId::default(), watch.at(0), watch.at(WEEK)).unwrap();
    for (evaluator, EntryTimeline { entry_id, intervals, .. }) in evaluators.iter().zip(timeline.entries) {
        let mut expected: Vec<TimeInterval> = Vec::new();
        for index in (0..WEEK).filter(|index| evaluator.enabled(*index)) {
            match expected.last_mut() {
                Some(last) if last.to == watch.at(index) => last.to = watch.at(index + 1),
                _ => expected.push(TimeInterval { from: watch.at(index), to: watch.at(index + 1) }),
            }
        }
        assert_eq!(intervals, expected, "seed {seed}, timeline of {entry_id}");
    }
}

#[test]
fn random_households_match_the_naive_evaluator_first_half() {
    (0..120).for_each(check);
}

#[test]
fn random_households_match_the_naive_evaluator_second_half() {
    (120..240).for_each(check);
}
