use jiff::tz::TimeZone;
use shepherd_api::{Millis, ReasonCode, RuleView};

use super::*;

fn look(width: usize) -> DisplaySettings {
    DisplaySettings { now: "2026-11-16T10:00:00Z".parse().unwrap(), zone: TimeZone::UTC, width }
}

fn entry(id: &str, label: &str) -> EntryView {
    EntryView {
        entry_id: id.parse().unwrap(),
        label: label.to_owned(),
        icon_ref: None,
        kind: "process".to_owned(),
        enabled: true,
        reasons: Vec::new(),
        max_run_if_started_now: Some(Millis(2_700_000)),
        next_available: None,
    }
}

fn sample() -> Vec<EntryView> {
    let opens = "2026-11-21T10:00:00Z".parse().unwrap();
    let closed = EntryView {
        enabled: false,
        reasons: vec![
            ReasonCode::OutsideHours { next_opening: Some(opens) },
            ReasonCode::Disabled { reason: Some("broken\x07".to_owned()) },
        ],
        max_run_if_started_now: None,
        next_available: Some(opens),
        ..entry("racing", "Racing")
    };
    let unlock = EntryView {
        enabled: false,
        reasons: vec![ReasonCode::NotUnlocked {
            entry_id: "counting".parse().unwrap(),
            done: Millis(4_000),
            needed: Millis(10_000),
        }],
        max_run_if_started_now: None,
        ..entry("dessert", "A label that is much too long to be shown in full on a narrow terminal")
    };
    let endless = EntryView { max_run_if_started_now: None, ..entry("radio", "数学の音楽") };
    vec![entry("tuxmath", "Maths"), closed, unlock, endless]
}

fn plain(lines: &[String]) -> String {
    anstream::adapter::strip_str(&lines.join("\n")).to_string()
}

#[test]
fn a_list_fits_80_columns() {
    let shown = plain(&list_lines(&sample(), &look(80)));
    insta::assert_snapshot!(shown, @r"
       Entry                              Id       How it stands
    ✓  Maths                              tuxmath  up to 45 minutes
    ✗  Racing                             racing   Not at this time. It opens Sat
                                                   10:00. (and one more reason)
    ✗  A label that is much too long to…  dessert  First 10 seconds of `counting`: 4
                                                   seconds done today.
    ✓  数学の音楽                         radio    without end
    ");
    assert!(shown.lines().all(|line| crate::text::width(line) <= 80));
}

#[test]
fn a_list_uses_120_columns() {
    insta::assert_snapshot!(plain(&list_lines(&sample(), &look(120))), @r"
       Entry                                                  Id       How it stands
    ✓  Maths                                                  tuxmath  up to 45 minutes
    ✗  Racing                                                 racing   Not at this time. It opens Sat 10:00. (and one more
                                                                       reason)
    ✗  A label that is much too long to be shown in full on…  dessert  First 10 seconds of `counting`: 4 seconds done today.
    ✓  数学の音楽                                             radio    without end
    ");
}

#[test]
fn why_tells_every_rule_and_what_it_looked_at() {
    let closed = sample().remove(1);
    let rule = |rule: &str, looked_at: &str, outcome| RuleView {
        rule: rule.to_owned(),
        looked_at: looked_at.to_owned(),
        outcome,
    };
    let why = ExplanationView {
        at: "2026-11-16T10:00:00Z".parse().unwrap(),
        profile: "anna".parse().unwrap(),
        rules: vec![
            rule("disabled", "not switched off", RuleOutcomeView::Passes),
            rule(
                "outside-hours",
                "open Sat and Sun 10:00 to 12:00, and on the days that the calendar names besides",
                RuleOutcomeView::Refuses { reason: closed.reasons[0].clone() },
            ),
            rule("max-run", "30 minutes in one go", RuleOutcomeView::Limits { at_most: Millis(1_800_000) }),
            rule(
                "window",
                "the window closes",
                RuleOutcomeView::LimitsUntil { until: "2026-11-16T12:00:00Z".parse().unwrap() },
            ),
        ],
        entry: closed,
    };
    insta::assert_snapshot!(plain(&why_lines(&why, &look(80))), @r"
    ✗ Racing for anna, Mon 2026-11-16 10:00: no, next Sat 10:00
      ✓ disabled       not switched off
      ✗ outside-hours  open Sat and Sun 10:00 to 12:00, and on the days that the
                       calendar names besides
                       → Not at this time. It opens Sat 10:00.
      ≤ max-run        30 minutes in one go
                       → at most 30 minutes
      ≤ window         the window closes
                       → until 12:00
    ");
}
