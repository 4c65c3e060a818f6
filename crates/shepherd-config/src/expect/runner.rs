//! Runs examples on engines without history.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_api::{Language, ReasonCode, RuleOutcomeView};
use shepherd_core::policy::{DateException, Day, HouseholdModes, Policy, PolicyRules};
use shepherd_core::{CoreEngine, EngineEnvironment, EngineSnapshot, HostCapabilities, StoredState};
use shepherd_text::SentenceCatalogue;
use shepherd_util::{BootId, EntryId, ExactDuration, ProfileId};
use ward_diag::Spanned;

use super::{ExampleDay, ExpectedOutcome, PolicyExample};
use crate::show::day_name;

/// Monday of the week in which weekday examples run. The week is fixed, so that the result never changes.
const MONDAY: Day = Day(20_458);

/// Boot id of engines for examples, which belong to no boot.
const NO_BOOT: &str = "00000000-0000-0000-0000-000000000000";

pub(super) struct ExampleResult {
    /// All reasons against a launch; empty if the launch is allowed.
    reasons: Vec<ReasonCode>,
    /// The longest run; `None` means no time limit.
    longest: Option<Duration>,
    /// The reasons in words, one sentence or more for each.
    sentences: Vec<String>,
}

impl ExampleResult {
    pub(super) fn matches(&self, outcome: ExpectedOutcome) -> bool {
        let allowed = self.reasons.is_empty();
        match outcome {
            ExpectedOutcome::Allow => allowed,
            ExpectedOutcome::AllowFor(length) => allowed && self.longest == length,
            ExpectedOutcome::Deny => !allowed,
            ExpectedOutcome::DenyFor(code) => self.reasons.iter().any(|reason| reason.code() == code),
        }
    }

    fn limit_run(&mut self, run: Duration) {
        self.longest = Some(self.longest.map_or(run, |longest| longest.min(run)));
    }

    /// Formats the result as in an example.
    pub(super) fn as_example_text(&self) -> String {
        match self.reasons.first() {
            None => ExpectedOutcome::AllowFor(self.longest).to_string(),
            Some(reason) => reason.code().to_owned(),
        }
    }

    /// Describes the result in sentences.
    pub(super) fn explanation(&self) -> String {
        if self.reasons.is_empty() {
            return match self.longest {
                Some(longest) => format!("it may run for {}", ExactDuration(longest)),
                None => "it may run with no time limit".to_owned(),
            };
        }
        self.sentences.join(" ").trim_end_matches('.').to_owned()
    }
}

/// The calendar of an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExampleCalendar {
    /// Ordinary days only.
    Week,
    /// Exceptions and modes by date apply.
    Dates,
}

/// Runs examples. Creates one engine for each calendar and mode.
pub(super) struct ExampleRunner<'p> {
    policy: &'p Policy,
    zone: TimeZone,
    named_entries: BTreeSet<EntryId>,
    engines: BTreeMap<(ExampleCalendar, Option<String>), CoreEngine>,
}

impl<'p> ExampleRunner<'p> {
    pub(super) fn new(policy: &'p Policy, examples: &[Spanned<PolicyExample>]) -> Self {
        // Windows are local times, so a policy without a zone gives the same result in any zone.
        let zone = policy.rules().zone.clone().unwrap_or(TimeZone::UTC);
        let named = examples.iter().filter_map(|example| example.value.entry.value.parse().ok());
        let mut named_entries: BTreeSet<EntryId> = named.collect();
        let mut next: Vec<EntryId> = named_entries.iter().cloned().collect();
        // Entries that unlock others are needed as well.
        while let Some(entry) = next.pop().and_then(|id| policy.entry(&id)) {
            if let Some(unlock) = &entry.unlock
                && named_entries.insert(unlock.entry_id.clone())
            {
                next.push(unlock.entry_id.clone());
            }
        }
        Self { policy, zone, named_entries, engines: BTreeMap::new() }
    }

    /// Runs an example. Returns the result and a description of its time and profile, or `None` if there is no such
    /// time.
    pub(super) fn run_example(&mut self, example: &PolicyExample) -> Option<(ExampleResult, String)> {
        let (calendar, day) = match example.day {
            ExampleDay::Date(day) => (ExampleCalendar::Dates, day),
            ExampleDay::Weekday(weekday) => {
                (ExampleCalendar::Week, MONDAY.plus_days(i32::try_from(weekday).ok()?))
            }
        };
        let entry_id: EntryId = example.entry.value.parse().ok()?;
        let profile = match &example.profile {
            Some(profile) => profile.value.parse().ok()?,
            None => self.allowed_profile(&entry_id),
        };
        let at = self.timestamp_of(day, example.time.minutes())?;
        let mode = example.mode.as_ref().map(|mode| mode.value.clone());
        let why = self.engine(calendar, mode)?.why_at(&profile, &entry_id, at).ok()?;
        let mut result = ExampleResult { reasons: Vec::new(), longest: None, sentences: Vec::new() };
        for rule in why.rules {
            match rule.outcome {
                RuleOutcomeView::Passes => {}
                RuleOutcomeView::Limits { at_most } => result.limit_run(at_most.into()),
                RuleOutcomeView::LimitsUntil { until } => {
                    result.limit_run(Duration::try_from(until.duration_since(at)).unwrap_or_default());
                }
                RuleOutcomeView::Refuses { reason } => {
                    result.sentences.push(self.sentence(&reason));
                    result.reasons.push(reason);
                }
            }
        }
        let day = match example.day {
            ExampleDay::Date(day) => format!("on {day}"),
            ExampleDay::Weekday(weekday) => format!("on an ordinary {}", day_name(weekday)),
        };
        let context = format!("{day} at {}, for `{profile}` with no time used: ", example.time);
        Some((result, context))
    }

    fn engine(&mut self, calendar: ExampleCalendar, mode: Option<String>) -> Option<&CoreEngine> {
        let key = (calendar, mode);
        if !self.engines.contains_key(&key) {
            let snapshot = EngineSnapshot { mode: key.1.clone(), ..EngineSnapshot::default() };
            let store = StoredState { snapshot, ..StoredState::default() };
            let environment =
                EngineEnvironment { boot: NO_BOOT.parse::<BootId>().ok()?, zone: self.zone.clone() };
            let policy = Policy::new(self.rules(calendar)).ok()?;
            let engine = CoreEngine::new(policy, store, HostCapabilities::all_supported(), environment);
            self.engines.insert(key.clone(), engine);
        }
        self.engines.get(&key)
    }

    /// Returns the rules with only the entries that examples name, because a policy may have a thousand entries.
    fn rules(&self, calendar: ExampleCalendar) -> PolicyRules {
        let rules = self.policy.rules();
        let dates = calendar == ExampleCalendar::Dates;
        PolicyRules {
            zone: rules.zone.clone(),
            profiles: rules.profiles.clone(),
            bedtimes: rules.bedtimes.clone(),
            entries: self.named_entries.iter().filter_map(|id| self.policy.entry(id)).cloned().collect(),
            budgets: rules.budgets.clone(),
            modes: HouseholdModes {
                by_date: if dates { rules.modes.by_date.clone() } else { Vec::new() },
                ..rules.modes.clone()
            },
            exceptions: if dates { self.exceptions() } else { Vec::new() },
            libraries: rules.libraries.clone(),
            breaks: rules.breaks,
            ceilings: rules.ceilings,
            suspended_time: rules.suspended_time,
            on_reload: rules.on_reload,
            on_shutdown: rules.on_shutdown,
            launch_timeout: rules.launch_timeout,
            stop_grace: rules.stop_grace,
            clock_tolerance: rules.clock_tolerance,
            // The other rules do not decide when an entry may run.
            ..PolicyRules::default()
        }
    }

    /// Returns the exceptions, limited to the entries that examples name.
    fn exceptions(&self) -> Vec<DateException> {
        let limited = |exception: &DateException| DateException {
            entries: exception.entries.as_ref().map(|entries| entries & &self.named_entries),
            ..exception.clone()
        };
        self.policy.rules().exceptions.iter().map(limited).collect()
    }

    /// Returns a profile that may use the entry. With no time used and the same bedtime, every such profile gets the same result.
    fn allowed_profile(&self, entry_id: &EntryId) -> ProfileId {
        let named = self.policy.entry(entry_id).and_then(|entry| entry.profiles.as_ref()?.first());
        named.cloned().unwrap_or_else(|| self.policy.default_profile())
    }

    /// Returns a reason in words, with labels and with times in the zone of the policy.
    fn sentence(&self, reason: &ReasonCode) -> String {
        // Faults of a policy are in English.
        let catalogue = SentenceCatalogue::of(Language::English);
        let format_time = |at: Timestamp| catalogue.time_on_weekday_of(&at.to_zoned(self.zone.clone()));
        catalogue.reason(reason, format_time, |item| self.policy.label_of(item).map(str::to_owned))
    }

    fn timestamp_of(&self, day: Day, minute: u16) -> Option<Timestamp> {
        let midnight = day.date().to_datetime(jiff::civil::Time::midnight());
        let civil = midnight.checked_add(SignedDuration::from_mins(i64::from(minute))).ok()?;
        Some(civil.to_zoned(self.zone.clone()).ok()?.timestamp())
    }
}
