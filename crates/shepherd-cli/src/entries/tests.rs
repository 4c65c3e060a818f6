use jiff::tz::TimeZone;
use shepherd_api::{EntryGrantView, GrantKind, Millis, ReasonCode, RuleView};

use super::*;
use crate::context::PolicyLabels;

fn display(width: usize) -> DisplaySettings {
    DisplaySettings::new("2026-11-16T10:00:00Z".parse().unwrap(), TimeZone::UTC, width)
        .with_labels(PolicyLabels::from_entries(&[entry("counting", "Counting")]))
}

/// The display of a family whose policy is in German.
fn german(width: usize) -> DisplaySettings {
    let mut display = display(width);
    display.labels.set_language(Some(Language::German));
    display
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
        left_today: None,
        grants: Vec::new(),
    }
}

#[test]
fn the_time_left_today_and_the_grants_that_help_are_shown() {
    let lapses_at = "2026-11-16T20:00:00Z".parse().unwrap();
    let grant = |gift| EntryGrantView { gift, by: "uid 0 pid 7 (shepherd)".to_owned(), lapses_at };
    let extra = grant(GrantKind::Extra { amount: Millis(1_800_000) });
    let open = grant(GrantKind::OpenUntil { until: lapses_at });
    let mut entry = EntryView { left_today: Some(Millis(3_600_000)), ..entry("racing", "Racing") };
    assert_eq!(describe_availability(&entry, &display(80)), "up to 45 minutes, 1 hour left today");
    entry.grants = vec![extra, open.clone()];
    assert_eq!(
        describe_availability(&entry, &display(80)),
        "up to 45 minutes, 1 hour left today (+30 minutes from root until 20:00, opened by root until 20:00)"
    );
    entry.left_today = None;
    entry.grants = vec![open];
    assert_eq!(describe_entry(&entry, true, &display(80)), "running, opened by root until 20:00");
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
    let shown = plain(&list_lines(&sample(), SessionOwner::ListedChild, &display(80)));
    insta::assert_snapshot!(shown, @r"
       Entry                              Id       Status
    ✓  Maths                              tuxmath  up to 45 minutes
    ✗  Racing                             racing   Not allowed at this time. Opens
                                                   Sat 10:00. (and 1 more reason)
    ✗  A label that is much too long to…  dessert  Do 10 seconds of Counting first
                                                   (4 seconds so far).
    ✓  数学の音楽                         radio    no time limit
    ");
    assert!(shown.lines().all(|line| ward_terminal::display_width(line) <= 80));
}

#[test]
fn a_list_uses_120_columns() {
    insta::assert_snapshot!(plain(&list_lines(&sample(), SessionOwner::ListedChild, &display(120))), @r"
       Entry                                                  Id       Status
    ✓  Maths                                                  tuxmath  up to 45 minutes
    ✗  Racing                                                 racing   Not allowed at this time. Opens Sat 10:00. (and 1
                                                                       more reason)
    ✗  A label that is much too long to be shown in full on…  dessert  Do 10 seconds of Counting first (4 seconds so far).
    ✓  数学の音楽                                             radio    no time limit
    ");
}

// S19.3
#[test]
fn a_list_is_in_the_language_of_the_policy() {
    let running = EntryView { left_today: Some(Millis(3_600_000)), ..entry("film", "Film") };
    assert_eq!(describe_entry(&running, true, &german(80)), "läuft, heute noch 1 Stunde");
    insta::assert_snapshot!(plain(&list_lines(&sample(), SessionOwner::ListedChild, &german(120))), @r"
       Entry                                                  Id       Status
    ✓  Maths                                                  tuxmath  höchstens 45 Minuten
    ✗  Racing                                                 racing   Jetzt nicht. Wieder ab Samstag, 10:00 Uhr. (und 1
                                                                       weiterer Grund)
    ✗  A label that is much too long to be shown in full on…  dessert  Mach zuerst 10 Sekunden Counting (bisher 4 Sekunden).
    ✓  数学の音楽                                             radio    ohne Zeitlimit
    ");
}

fn explanation() -> ExplanationView {
    let closed = sample().remove(1);
    let rule = |rule: &str, facts: &str, outcome| RuleView {
        rule: rule.to_owned(),
        facts: facts.to_owned(),
        outcome,
    };
    ExplanationView {
        at: "2026-11-16T10:00:00Z".parse().unwrap(),
        profile: "anna".parse().unwrap(),
        rules: vec![
            rule("disabled", "not disabled", RuleOutcomeView::Passes),
            rule(
                "outside-hours",
                "outside its hours, mode school (the policy's time zone is America/Argentina/Buenos_Aires)",
                RuleOutcomeView::Refuses { reason: closed.reasons[0].clone() },
            ),
            rule("max-run", "longest single run", RuleOutcomeView::Limits { at_most: Millis(1_800_000) }),
            rule(
                "window",
                // A reader in the policy's zone does not see the remark about it.
                &format!("inside its hours{}", RuleView::policy_zone_remark("UTC")),
                RuleOutcomeView::LimitsUntil { until: "2026-11-16T12:00:00Z".parse().unwrap() },
            ),
        ],
        entry: closed,
    }
}

// S19.3
#[test]
fn why_in_another_language_leaves_out_the_facts() {
    insta::assert_snapshot!(plain(&why_lines(&explanation(), &german(80))), @r"
    ✗ Racing für anna, Montag, 16.11.2026, 10:00 Uhr (UTC): geht nicht bis Samstag,
      10:00 Uhr
      ✗ Jetzt nicht. Wieder ab Samstag, 10:00 Uhr.
      ≤ höchstens 30 Minuten
      ≤ bis 12:00 Uhr
    ");
}

#[test]
fn why_shows_every_rule_with_its_facts_and_result() {
    let why = explanation();
    insta::assert_snapshot!(plain(&why_lines(&why, &display(80))), @r"
    ✗ Racing for anna on Mon 2026-11-16 10:00 (UTC): not available until Sat 10:00
      ✓ not disabled
      ✗ outside its hours, mode school (the policy's time zone is
        America/Argentina/Buenos_Aires)
        → Not allowed at this time. Opens Sat 10:00.
      ≤ longest single run
        → at most 30 minutes
      ≤ inside its hours
        → until 12:00
    ");
    let narrow = why_lines(&why, &display(40));
    let widths = narrow.iter().map(|line| ward_terminal::display_width(&plain(std::slice::from_ref(line))));
    assert!(widths.max() <= Some(40), "{narrow:?}");
}
