//! The `bedtime` of a profile (S19.4).

use shepherd_config::{describe_policy, load};
use shepherd_core::policy::{BedtimeNights, BedtimePolicy, NightHours};

const MODES: &str = "[modes]\nnames = [\"school\", \"holiday\"]\n";

fn profile(bedtime: &str) -> String {
    format!("config_version = 1\n{MODES}[profiles.anna]\nbedtime = {bedtime}\n")
}

fn bedtime(text: &str) -> BedtimePolicy {
    let loaded = load("policy.toml", &profile(text)).unwrap_or_else(|report| panic!("{report}"));
    loaded.policy.rules().bedtimes[&"anna".parse().unwrap()].clone()
}

fn times(nights: BedtimeNights) -> [Option<String>; 2] {
    [nights.school_nights, nights.weekends].map(|night| {
        let (start, end) = night.map(NightHours::times_of_day)?;
        Some(format!("{start}-{end}"))
    })
}

fn check(text: &str, expected: [&str; 2]) {
    let expected = expected.map(|night| (night != "none").then(|| night.to_owned()));
    assert_eq!(times(bedtime(text).nights), expected, "{text}");
}

#[test]
fn a_bedtime_is_one_text_for_all_nights_or_a_table_by_kind() {
    check("\"20:00-07:00\"", ["20:00-07:00", "20:00-07:00"]);
    check("\" 8:30 - 7:00 \"".replace(" 8:30", "20:30").as_str(), ["20:30-07:00", "20:30-07:00"]);
    check("{ school_nights = \"20:00-07:00\", weekends = \"21:30-08:00\" }", ["20:00-07:00", "21:30-08:00"]);
    check("{ school_nights = \"20:00-07:00\", weekends = \"none\" }", ["20:00-07:00", "none"]);
    check("{ school_nights = \"22:00-24:00\", weekends = \"00:30-09:00\" }", ["22:00-00:00", "00:30-09:00"]);
    assert!(load("p", "config_version = 1\n[profiles.anna]\n").unwrap().policy.rules().bedtimes.is_empty());
}

#[test]
fn a_mode_has_its_own_nights_and_keeps_those_that_it_does_not_set() {
    let nights = "school_nights = \"20:00-07:00\", weekends = \"21:30-08:00\"";
    let in_holiday = |mode: &str| {
        times(bedtime(&format!("{{ {nights}, modes = {{ holiday = {mode} }} }}")).by_mode["holiday"])
    };
    let texts = |nights: [Option<&str>; 2]| nights.map(|night| night.map(str::to_owned));
    assert_eq!(in_holiday("\"22:00-09:00\""), texts([Some("22:00-09:00"), Some("22:00-09:00")]));
    assert_eq!(in_holiday("\"none\""), texts([None, None]));
    assert_eq!(
        in_holiday("{ school_nights = \"21:30-08:00\" }"),
        texts([Some("21:30-08:00"), Some("21:30-08:00")])
    );
    let both = "{ school_nights = \"22:00-09:00\", weekends = \"none\" }";
    assert_eq!(in_holiday(both), texts([Some("22:00-09:00"), None]));
}

#[test]
fn a_bedtime_is_described_in_words() {
    let text = profile(
        "{ school_nights = \"20:00-07:00\", weekends = \"none\", modes = { holiday = \"22:00-09:00\" } }",
    );
    let described = describe_policy(&load("policy.toml", &text).unwrap().policy);
    let line = described.lines().find(|line| line.starts_with("Bedtime")).unwrap();
    assert_eq!(
        line,
        "Bedtime of anna: 20:00 to 07:00 on school nights, none on weekends; in the mode holiday 22:00 to 09:00 every \
         night."
    );
}

/// Checks the only fault of a bedtime, and its cure.
fn fault(bedtime: &str, message: &str, help: &str) {
    let report = load("policy.toml", &profile(bedtime)).unwrap_err();
    let [only] = report.faults() else { panic!("{bedtime}: {report}") };
    assert_eq!(only.message(), message, "{bedtime}");
    assert!(report.to_string().contains(help), "{bedtime}: {help}\n{report}");
}

#[test]
fn a_mistake_in_a_bedtime_is_named_with_its_cure() {
    fault(
        "\"07:00-20:00\"",
        "\"07:00-20:00\" is not a bedtime: it begins in the morning",
        "the times seem to be swapped; write \"20:00-07:00\"",
    );
    fault(
        "\"20:00-19:00\"",
        "\"20:00-19:00\" is not a bedtime: it is longer than 16 hours",
        "check the times",
    );
    fault(
        "\"20:00-20:00\"",
        "\"20:00-20:00\" is not a bedtime: it begins and ends at the same time",
        "\"none\" for no bedtime",
    );
    fault("\"8pm-7am\"", "\"8pm-7am\" is not a bedtime", "write \"20:00-07:00\"");
    fault("\"20.00 to 7\"", "\"20.00 to 7\" is not a bedtime", "write \"20:00-07:00\"");
    fault("\"20:00\"", "\"20:00\" is not a bedtime", "write it like \"20:00-07:00\"");
    fault("2000", "`bedtime` must be the hours of a night", "bedtime = \"20:00-07:00\"");
    fault(
        "{ school_nights = \"20:00-07:00\" }",
        "this bedtime has no `weekends`",
        "`weekends = \"none\"` for no bedtime",
    );
    fault(
        "{ weekdays = \"20:00-07:00\", weekends = \"21:00-08:00\" }",
        "unknown key `weekdays` in `bedtime`",
        "`school_nights` are the nights before Monday to Friday",
    );
    fault(
        "{ hours = \"20:00-07:00\" }",
        "unknown key `hours` in `bedtime`",
        "write `bedtime = \"20:00-07:00\"`",
    );
    let mode = "{ school_nights = \"20:00-07:00\", weekends = \"none\", modes = { holidays = \"none\" } }";
    fault(mode, "there is no mode `holidays`", "did you mean `holiday`?");
}

#[test]
fn an_example_can_expect_bedtime() {
    let text = |example: &str| {
        format!(
            "config_version = 1\nexpect = [\"{example}\"]\n[profiles.anna]\nbedtime = \"20:00-07:00\"\n[[entries]]\n\
             id = \"game\"\nargv = [\"game\"]\nalways = true\n"
        )
    };
    load("policy.toml", &text("sun 21:00 game: bedtime")).unwrap();
    load("policy.toml", &text("sun 19:30 game: allow 30m")).unwrap();
    let report = load("policy.toml", &text("mon 06:00 game: allow")).unwrap_err().to_string();
    assert!(report.contains("Bedtime until Mon 07:00"), "{report}");
}

#[test]
fn a_bedtime_outside_a_profile_is_advised_to_move() {
    let report = load("policy.toml", "config_version = 1\nbedtime = \"20:00-07:00\"\n").unwrap_err();
    assert!(report.to_string().contains("belongs below `[profiles.NAME]`"), "{report}");
}
