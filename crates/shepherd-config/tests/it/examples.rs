//! Examples in a policy, which run when the policy is loaded.

use shepherd_config::load;

const POLICY: &str = r#"
[modes]
names = ["school", "holiday"]
[[modes.dates]]
mode = "holiday"
from = 2026-01-05
to = 2026-01-18
[profiles.anna]
[profiles.ben]
[budgets.games]
daily = { all = "20m", sun = "none", modes = { holiday = "1h" } }
[[exceptions]]
on = 2026-12-24
closed = true
[[exceptions]]
from = 2026-01-19
to = 2026-01-21
open = true
[[entries]]
id = "maths"
argv = ["maths"]
windows = [
  { days = "all", from = "09:00", to = "12:00" },
  { days = "all", from = "12:00", to = "12:30" },
  { days = "sat", from = "22:00", to = "01:00" },
]
[[entries]]
id = "kart"
argv = ["kart"]
profiles = ["ben"]
budgets = ["games"]
windows = [{ from = "09:00", to = "12:00" }]
[[entries]]
id = "racer"
argv = ["racer"]
always = true
unlock = { entry = "maths", at_least = "20m" }
[[entries]]
id = "broken"
argv = ["broken"]
always = true
disabled = true
[[entries]]
id = "clock"
argv = ["clock"]
always = true
"#;

/// Returns the message of a failed example, or `None` if the example passes.
fn example_error(example: &str) -> Option<String> {
    let text = format!("config_version = 1\nexpect = [{example:?}]\n{POLICY}");
    let report = load("policy.toml", &text).err()?;
    assert_eq!(report.faults().len(), 1, "{report}");
    let fault = &report.faults()[0];
    assert_eq!(report.source().slice(fault.span()), format!("{example:?}"));
    Some(fault.message().to_owned())
}

#[test]
fn passing_examples_are_accepted() {
    for example in [
        "mon 09:00 maths: allow",
        // Windows that touch are one.
        "mon 11:30 maths: allow 1h",
        "mon 12:30 maths: deny",
        "mon 08:59 maths: outside-hours",
        // A window across midnight belongs to the day it starts on.
        "sun 00:30 maths: allow 30m",
        "mon 00:30 maths: outside-hours",
        // Only Ben may use this entry.
        "mon 10:00 kart: allow 20m",
        "mon 10:00 ben/kart: allow 20m",
        "mon 10:00 anna/kart: not-for-profile",
        "sun 10:00 kart: quota-exhausted",
        "mon 10:00 in holiday kart: allow 1h",
        // The calendar sets the mode of this date; the second example overrides it.
        "2026-01-06 10:00 kart: allow 1h",
        "2026-01-06 10:00 in school kart: allow 20m",
        "mon 10:00 racer: not-unlocked",
        "mon 10:00 broken: disabled",
        "mon 10:00 clock: allow unlimited",
        "2026-12-24 10:00 maths: outside-hours",
        "2026-12-24 10:00 clock: deny",
        // An exception that opens everything.
        "2026-01-20 03:00 maths: allow",
    ] {
        assert_eq!(example_error(example), None, "{example}");
    }
}

#[test]
fn failing_examples_refuse_the_policy_and_show_the_result() {
    for (example, message) in [
        ("mon 11:30 maths: allow 30m", "the result is `allow 1h`, not `allow 30m`"),
        ("mon 12:30 maths: allow", "the result is `outside-hours`, not `allow`"),
        ("mon 10:00 clock: allow 1h", "the result is `allow unlimited`, not `allow 1h`"),
        ("mon 10:00 maths: deny", "the result is `allow 2h30m`, not `deny`"),
        ("mon 10:00 broken: outside-hours", "the result is `disabled`, not `outside-hours`"),
        ("mon 10:00 anna/kart: allow", "the result is `not-for-profile`, not `allow`"),
    ] {
        assert_eq!(example_error(example).as_deref(), Some(message), "{example}");
    }
}

#[test]
fn a_weekday_example_ignores_exceptions() {
    let text = "config_version = 1\nexpect = [\"mon 10:00 maths: allow unlimited\", \"2026-01-05 10:00 maths: deny\"]\n\
                [[entries]]\nid = \"maths\"\nargv = [\"maths\"]\nalways = true\n\
                [[exceptions]]\nfrom = 2020-01-01\nto = 2060-01-01\nclosed = true\n";
    assert_eq!(load("policy.toml", text).map(|loaded| loaded.examples), Ok(2));
}

#[test]
fn a_loaded_policy_counts_its_examples() {
    let text = format!("config_version = 1\nexpect = [\"mon 09:00 maths: allow\"]\n{POLICY}");
    assert_eq!(load("policy.toml", &text).unwrap().examples, 1);
}
