//! Compiled policies: values are converted and defaults filled in.

use std::time::Duration;

use jiff::civil::date;
use shepherd_api::{EntryKind, Language, WarningSeverity};
use shepherd_config::load;
use shepherd_core::policy::{
    AvailabilityPolicy, BreakRule, DailyQuota, Day, DayRule, DisabledReason, EarningRule, IdleTime,
    LoginCounting, LoginEnd, LoginPolicy, LoginWithoutDaemon, MinuteOfDay, OnReload, OnShutdown, Policy,
    PolicyEntry, RunPolicy, SuspendedTime, TimeCost, TimeWindow, UnlockRule, Weekdays,
};

fn policy(text: &str) -> Policy {
    let text = format!("config_version = 1\n{text}");
    load("policy.toml", &text).unwrap_or_else(|report| panic!("{report}")).policy
}

/// Returns the only entry of a policy, with an id, a program and these lines.
fn entry(lines: &str) -> PolicyEntry {
    entry_with_file("", lines)
}

fn entry_with_file(others: &str, lines: &str) -> PolicyEntry {
    let policy = policy(&format!("{others}\n[[entries]]\nid = \"x\"\nargv = [\"x\"]\n{lines}\n"));
    policy.entry(&"x".parse().unwrap()).unwrap().clone()
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

fn time(hour: u16, minute: u16) -> MinuteOfDay {
    MinuteOfDay::new(hour, minute).unwrap()
}

// S2.1, S2.2
#[test]
fn an_entry_has_its_id_as_a_label_and_is_a_process_unless_it_says_otherwise() {
    let entry = entry("always = true");
    assert_eq!((entry.label.as_str(), entry.icon_ref), ("x", None));
    assert_eq!(
        entry.kind,
        EntryKind::Process { argv: vec!["x".to_owned()], env: Default::default(), cwd: None }
    );
    assert_eq!((entry.profiles, entry.disabled, entry.cost), (None, None, TimeCost::Counts));
    assert_eq!(entry.availability, AvailabilityPolicy::Always);
}

// S2.2, S6.6
#[test]
fn a_driver_gets_its_settings_as_they_are_written_and_memory_in_mebibytes() {
    let policy = policy(
        "[drivers.trains]\nargv = [\"trains\", \"-q\"]\n\
         [[entries]]\nid = \"vm\"\nkind = \"vm\"\ndriver = \"qemu\"\nalways = true\n\
         args = { memory = \"1GiB\", cpus = 2, disk = [\"/a\", \"/b\"], cdrom = \"/c\", network = \"none\" }\n\
         [[entries]]\nid = \"game\"\nkind = \"custom\"\ntype = \"steam\"\npayload = { app = 220 }\nalways = true\n\
         [[entries]]\nid = \"own\"\nkind = \"custom\"\ntype = \"trains\"\nalways = true\n\
         payload = { fast = true, speed = 1.5, since = 2026-01-01, cars = [1, \"two\"] }\n",
    );
    let args = serde_json::json!({ "memory": 1024, "cpus": 2, "disk": ["/a", "/b"], "cdrom": "/c", "network": "none" });
    let EntryKind::Vm { driver, args: found } = &policy.entries()[0].kind else { panic!() };
    assert_eq!((driver.as_str(), serde_json::to_value(found).unwrap()), ("qemu", args));
    let custom = |type_name: &str, payload| EntryKind::Custom { type_name: type_name.to_owned(), payload };
    assert_eq!(policy.entries()[1].kind, custom("steam", serde_json::json!({ "app": 220 })));
    let payload =
        serde_json::json!({ "fast": true, "speed": 1.5, "since": "2026-01-01", "cars": [1, "two"] });
    assert_eq!(policy.entries()[2].kind, custom("trains", payload));
    assert_eq!(policy.rules().drivers["trains"].argv, ["trains", "-q"]);
}

// S19.2
#[test]
fn a_login_counts_while_active_and_ends_the_whole_login_unless_it_says_otherwise() {
    let login = |lines: &str| {
        let policy = policy(&format!(
            "[defaults]\nuser = \"kid\"\nstop_grace = \"20s\"\nresources = {{ memory = \"2GiB\" }}\n\
             [profiles.anna]\naccounts = [\"anna\"]\n[profiles.ben]\n\
             [[entries]]\nid = \"x\"\nkind = \"login\"\nalways = true\n{lines}\n"
        ));
        let anna = "anna".parse().unwrap();
        policy.login_entry(&anna).unwrap().clone()
    };
    let usual = login("");
    assert!(usual.kind.is_login());
    // A child's own program can pretend that the screen is locked.
    assert_eq!(usual.run.login.counts, LoginCounting::Active);
    assert_eq!((usual.kind.clone(), usual.kind.name()), (EntryKind::login(), "login"));
    // Of the settings for programs, a login has only the grace period.
    let stop_grace = Some(Duration::from_secs(20));
    assert_eq!(usual.run, RunPolicy { stop_grace, ..RunPolicy::default() });
    let other = LoginPolicy {
        counts: LoginCounting::Always,
        idle: IdleTime::Free,
        end: LoginEnd::Lock,
        without_daemon: LoginWithoutDaemon::Allow,
    };
    let written = "counts = \"always\"\nidle = \"free\"\nend = \"lock\"\nwithout_daemon = \"allow\"\nprofiles = [\"anna\"]";
    assert_eq!(login(written).run.login, other);
}

// S2.3, S7.1
#[test]
fn windows_have_days_in_all_their_forms() {
    let AvailabilityPolicy::Windows(windows) = entry(
        "windows = [\n\
         { from = \"15:00\", to = \"18:30\" },\n\
         { days = \"weekdays\", from = \"9:05\", to = \"24:00\" },\n\
         { days = [\"weekends\", \"mon\"], from = \"22:00\", to = \"01:00\" },\n\
         { days = \"all\", from = 07:00:00, to = \"08:00\" },\n]",
    )
    .availability
    else {
        panic!()
    };
    let window = |days, start, end| TimeWindow { days, start, end, modes: None };
    assert_eq!(windows.len(), 3 + 1);
    assert_eq!(windows[0], window(Weekdays::ALL, time(15, 0), time(18, 30)));
    assert_eq!(windows[1], window(Weekdays::WEEKDAYS, time(9, 5), MinuteOfDay::END));
    assert_eq!(windows[2], window(Weekdays::WEEKENDS.with(0), time(22, 0), time(1, 0)));
}

// S2.4
#[test]
fn zero_and_unlimited_mean_no_limit_of_a_run() {
    for (written, longest) in [
        ("0", None),
        ("\"0s\"", None),
        ("\"unlimited\"", None),
        ("\"45m\"", Some(minutes(45))),
        ("90", Some(Duration::from_secs(90))),
    ] {
        let entry =
            entry_with_file("[defaults]\nmax_run = \"10m\"", &format!("always = true\nmax_run = {written}"));
        assert_eq!(entry.limits.max_run, longest, "{written}");
    }
}

// S2.4
#[test]
fn a_quota_by_day_prefers_the_day_to_its_group_and_the_group_to_all() {
    let entry = entry(
        "always = true\ndaily_quota = { all = \"1h\", weekends = \"2h\", sun = \"none\", fri = \"unlimited\" }",
    );
    let hour = Some(minutes(60));
    let base = [hour, hour, hour, hour, None, Some(minutes(120)), Some(Duration::ZERO)];
    assert_eq!(entry.limits.daily_quota, DailyQuota { base, by_mode: Default::default() });
}

// S2.4
#[test]
fn a_mode_changes_the_days_that_it_names() {
    let policy = policy(
        "[modes]\nnames = [\"school\", \"holiday\", \"away\"]\n[budgets.games]\n\
         daily = { weekdays = \"30m\", weekends = \"1h\", modes = { holiday = { weekdays = \"2h\" }, away = \"unlimited\" } }\n",
    );
    let daily = &policy.rules().budgets[&"games".parse().unwrap()].daily;
    let (monday, sunday) = (Day::from_date(date(2026, 11, 16)), Day::from_date(date(2026, 11, 15)));
    let on = |day, mode| daily.amount_on(day, mode);
    assert_eq!((on(monday, "school"), on(sunday, "school")), (Some(minutes(30)), Some(minutes(60))));
    assert_eq!((on(monday, "holiday"), on(sunday, "holiday")), (Some(minutes(120)), Some(minutes(60))));
    assert_eq!((on(monday, "away"), on(sunday, "away")), (None, None));
}

// S2.4
#[test]
fn min_gap_between_runs_is_an_alias_of_cooldown_after_run() {
    for key in ["cooldown_after_run", "min_gap_between_runs"] {
        assert_eq!(entry(&format!("always = true\n{key} = \"10m\"")).limits.cooldown_after_run, minutes(10));
    }
}

// S2.4
#[test]
fn a_crash_within_ten_seconds_causes_no_cooldown_unless_the_policy_says_otherwise() {
    let seconds = Duration::from_secs;
    let crash_within = |file: &str, entry: &str| {
        entry_with_file(file, &format!("always = true\n{entry}")).limits.crash_within
    };
    assert_eq!(crash_within("", ""), seconds(10));
    assert_eq!(crash_within("", "crash_within = \"30s\""), seconds(30));
    assert_eq!(crash_within("[defaults]\ncrash_within = \"5s\"", ""), seconds(5));
    assert_eq!(crash_within("[defaults]\ncrash_within = \"5s\"", "crash_within = 0"), seconds(0));
}

// S2.6
#[test]
fn missing_limits_come_from_the_defaults() {
    let defaults = "[defaults]\nwindows = [{ from = \"15:00\", to = \"18:00\" }]\nmax_run = \"45m\"\n\
                    daily_quota = \"1h\"\nweekly_quota = \"5h\"\ncooldown_after_run = \"5m\"\n\
                    warnings = [{ before = \"5m\" }]";
    let entry_with_all = entry_with_file(defaults, "");
    assert_eq!(entry_with_all.limits.max_run, Some(minutes(45)));
    assert_eq!(entry_with_all.limits.daily_quota, DailyQuota::every_day(minutes(60)));
    assert_eq!(entry_with_all.limits.weekly_quota, Some(minutes(300)));
    assert_eq!(entry_with_all.limits.cooldown_after_run, minutes(5));
    assert_eq!(entry_with_all.warnings.warnings().len(), 1);
    assert!(matches!(entry_with_all.availability, AvailabilityPolicy::Windows(_)));

    let own = "always = true\nmax_run = 0\ndaily_quota = \"unlimited\"\nweekly_quota = \"unlimited\"\n\
               cooldown_after_run = 0\nwarnings = []";
    let without = entry_with_file(defaults, own);
    assert_eq!(without.limits, Default::default());
    assert_eq!(without.warnings.warnings(), []);
    assert_eq!(without.availability, AvailabilityPolicy::Always);
}

// S2.5
#[test]
fn default_warnings_that_do_not_fit_a_short_run_are_left_out() {
    let defaults =
        "[defaults]\nwarnings = [{ before = \"10m\" }, { before = \"1m\", severity = \"critical\" }]";
    let entry = entry_with_file(defaults, "always = true\nmax_run = \"10m\"");
    let [only] = entry.warnings.warnings() else { panic!("{entry:?}") };
    assert_eq!((only.before, only.severity), (minutes(1), WarningSeverity::Critical));
}

// S2.5
#[test]
fn warnings_are_ordered_and_have_severity_warn_by_default() {
    let entry =
        entry("always = true\nwarnings = [{ before = 60, message = \"{remaining}\" }, { before = \"5m\" }]");
    let found: Vec<_> =
        entry.warnings.warnings().iter().map(|warning| (warning.before, warning.severity)).collect();
    assert_eq!(found, [(minutes(5), WarningSeverity::Warn), (minutes(1), WarningSeverity::Warn)]);
}

// S2.4
#[test]
fn earning_unlocking_and_costs_are_kept() {
    let entry = entry_with_file(
        "[budgets.games]\ndaily = \"1h\"\n[[entries]]\nid = \"maths\"\nargv = [\"maths\"]\nalways = true",
        "always = true\ncost = \"free\"\nearns = { budget = \"games\", for_each = \"20m\", earned = \"10m\", ceiling = \"1h\" }\n\
         unlock = { entry = \"maths\", at_least = \"20m\" }\ndisabled = \"Broken\"",
    );
    let earning = EarningRule {
        budget: "games".parse().unwrap(),
        for_each: minutes(20),
        earned: minutes(10),
        ceiling: minutes(60),
    };
    assert_eq!((entry.cost, entry.earns), (TimeCost::Free, Some(earning)));
    assert_eq!(entry.unlock, Some(UnlockRule { entry_id: "maths".parse().unwrap(), at_least: minutes(20) }));
    assert_eq!(entry.disabled, Some(DisabledReason { reason: Some("Broken".to_owned()) }));
}

// S2.1
#[test]
fn disabled_can_be_said_in_three_ways() {
    let disabled = |said: &str| entry(&format!("always = true\ndisabled = {said}")).disabled;
    assert_eq!(disabled("false"), None);
    assert_eq!(disabled("true"), Some(DisabledReason { reason: None }));
    assert_eq!(disabled("\"Why\""), Some(DisabledReason { reason: Some("Why".to_owned()) }));
}

// S2.3
#[test]
fn exceptions_set_the_rule_of_a_day() {
    let policy = policy(
        "[[exceptions]]\non = 2026-12-24\nclosed = true\n\
         [[exceptions]]\nlabel = \"Party\"\nfrom = \"2026-12-25\"\nto = 2026-12-26\nopen = true\n\
         [[exceptions]]\non = 2026-12-27\nas_on = \"sun\"\n\
         [[exceptions]]\non = 2026-12-28\nwindows = [{ from = \"10:00\", to = \"11:00\" }]\n",
    );
    let exceptions = &policy.rules().exceptions;
    let rules: Vec<&DayRule> = exceptions.iter().map(|exception| &exception.rule).collect();
    let windows = DayRule::Windows(vec![(time(10, 0), time(11, 0))]);
    assert_eq!(rules, [&DayRule::Closed, &DayRule::Open, &DayRule::AsOn(6), &windows]);
    let party = &exceptions[1];
    assert_eq!(
        (party.label.as_str(), party.from.to_string(), party.to.to_string()),
        ("Party", "2026-12-25".to_owned(), "2026-12-26".to_owned())
    );
}

#[test]
fn a_policy_without_profiles_has_one_called_default() {
    let policy = policy("");
    let names: Vec<&str> = policy.rules().profiles.keys().map(shepherd_util::ProfileId::as_str).collect();
    assert_eq!(names, ["default"]);
    assert_eq!(entry_with_file("", "always = true\nprofiles = [\"default\"]").profiles.unwrap().len(), 1);
}

// S2.4
#[test]
fn the_first_mode_is_the_usual_one_unless_another_is_named() {
    assert_eq!(policy("[modes]\nnames = [\"school\", \"away\"]").rules().modes.default, "school");
    assert_eq!(
        policy("[modes]\nnames = [\"school\", \"away\"]\ndefault = \"away\"").rules().modes.default,
        "away"
    );
    assert_eq!(policy("").rules().modes.default, "");
}

// S2.4, S2.7, S4.4, S4.5, S7.3
#[test]
fn rules_of_the_household_are_read() {
    let policy = policy(
        "timezone = \"Asia/Kathmandu\"\nlanguage = \"de\"\nsuspended_time = \"counts\"\non_reload = \"replan\"\non_shutdown = \"end-sessions\"\nlaunch_timeout = 5\n\
         stop_grace = 0\n[breaks]\nafter = \"2h\"\nlength = \"15m\"\n[grants]\nextra_per_day = \"1h\"\n\
         open_until = \"20:30\"\n[clock]\ntolerance = 0\n",
    );
    let rules = policy.rules();
    assert_eq!(rules.zone.as_ref().and_then(|zone| zone.iana_name()), Some("Asia/Kathmandu"));
    assert_eq!(rules.language, Language::German);
    assert_eq!((rules.suspended_time, rules.on_reload), (SuspendedTime::Counts, OnReload::Replan));
    assert_eq!(rules.on_shutdown, OnShutdown::EndSessions);
    assert_eq!((rules.launch_timeout, rules.stop_grace), (Duration::from_secs(5), Duration::ZERO));
    assert_eq!(rules.breaks, Some(BreakRule { after: minutes(120), length: minutes(15) }));
    assert_eq!(
        (rules.ceilings.extra_per_day, rules.ceilings.open_until),
        (Some(minutes(60)), Some(time(20, 30)))
    );
    assert_eq!(rules.clock_tolerance, Duration::ZERO);
}

// S7.2: faults of form and of meaning come together, in the order of the file.
#[test]
fn all_faults_come_in_one_pass_and_in_order() {
    let text = "config_version = 1\n[[entries]]\nid = \"x\"\nargv = []\nbudgets = [\"none-such\"]\nwindows = []\n\
                max_run = \"-1m\"\n[[entries]]\nid = \"x\"\nargv = [\"x\"]\nalways = true\n";
    let report = load("policy.toml", text).unwrap_err();
    let lines: Vec<usize> =
        report.faults().iter().map(|fault| report.source().position(fault.span().start).line).collect();
    assert_eq!(lines, [4, 5, 6, 7, 9]);
}

// Names that seem to be missing may be in the part that could not be parsed.
// S7.2
#[test]
fn syntax_errors_suppress_faults_about_missing_names() {
    let text = "config_version = 1\n[budgets.games\ndaily = \"1h\"\n[[entries]]\nid = \"x\"\nargv = [\"x\"]\n\
                always = true\nbudgets = [\"games\"]\n";
    let report = load("policy.toml", text).unwrap_err();
    assert!(report.faults().iter().all(|fault| fault.code() == "syntax"), "{report}");
}
