//! What a fresh engine answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use shepherd_api::{ReasonCode, RuleOutcomeView};
use shepherd_core::policy::{DateException, Day, HouseholdModes, Policy, PolicyRules};
use shepherd_core::{CoreEngine, EngineEnvironment, EngineSnapshot, HostCapabilities, StoredState};
use shepherd_util::{BootId, EntryId, HumanDuration, ProfileId};
use ward_diag::Spanned;

use super::{ExampleDay, ExpectedOutcome, PolicyExample};
use crate::show::day_name;

/// The Monday of the week that stands for all weeks. Fixed, so that a policy that is right stays right.
const MONDAY: Day = Day(20_458);

/// A fresh engine is of no boot; this stands for it.
const NO_BOOT: &str = "00000000-0000-0000-0000-000000000000";

/// What came out.
pub(super) struct ExampleResult {
    /// All reasons against it; none is yes.
    reasons: Vec<ReasonCode>,
    /// For how long; `None` is without end.
    longest: Option<Duration>,
    zone: TimeZone,
}

impl ExampleResult {
    /// Whether this is what was expected.
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

    /// As an example would say it.
    pub(super) fn as_example_text(&self) -> String {
        match self.reasons.first() {
            None => ExpectedOutcome::AllowFor(self.longest).to_string(),
            Some(reason) => reason.code().to_owned(),
        }
    }

    /// The reasons as sentences.
    pub(super) fn explanation(&self) -> String {
        if self.reasons.is_empty() {
            return match self.longest {
                Some(longest) => format!("it may run for {}", HumanDuration(longest)),
                None => "it may run without end".to_owned(),
            };
        }
        let sentences: Vec<String> = self.reasons.iter().map(|reason| reason.sentence(&self.zone)).collect();
        sentences.join(" ").trim_end_matches('.').to_owned()
    }
}

/// Which days an engine knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExampleCalendar {
    /// Ordinary ones only.
    Week,
    /// With exceptions, and modes by date.
    Dates,
}

/// Asks examples of engines that have seen nothing yet.
pub(super) struct ExampleRunner<'p> {
    policy: &'p Policy,
    zone: TimeZone,
    asked_about: BTreeSet<EntryId>,
    engines: BTreeMap<(ExampleCalendar, Option<String>), CoreEngine>,
}

impl<'p> ExampleRunner<'p> {
    pub(super) fn new(policy: &'p Policy, examples: &[Spanned<PolicyExample>]) -> Self {
        // Windows are civil time: without a zone of its own, a policy means the same in any.
        let zone = policy.rules().zone.clone().unwrap_or(TimeZone::UTC);
        let named = examples.iter().filter_map(|example| example.value.entry.value.parse().ok());
        let mut asked_about: BTreeSet<EntryId> = named.collect();
        let mut next: Vec<EntryId> = asked_about.iter().cloned().collect();
        // What unlocks an entry belongs to it.
        while let Some(entry) = next.pop().and_then(|id| policy.entry(&id)) {
            if let Some(unlock) = &entry.unlock
                && asked_about.insert(unlock.entry_id.clone())
            {
                next.push(unlock.entry_id.clone());
            }
        }
        Self { policy, zone, asked_about, engines: BTreeMap::new() }
    }

    /// The answer, and when and for whom it was asked. `None` if there is no such moment.
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
        let zone = self.zone.clone();
        let mode = example.mode.as_ref().map(|mode| mode.value.clone());
        let why = self.engine(calendar, mode)?.why_at(&profile, &entry_id, at).ok()?;
        let mut answer = ExampleResult { reasons: Vec::new(), longest: None, zone };
        for rule in why.rules {
            match rule.outcome {
                RuleOutcomeView::Passes => {}
                RuleOutcomeView::Limits { at_most } => answer.limit_run(at_most.into()),
                RuleOutcomeView::LimitsUntil { until } => {
                    answer.limit_run(Duration::try_from(until.duration_since(at)).unwrap_or_default());
                }
                RuleOutcomeView::Refuses { reason } => answer.reasons.push(reason),
            }
        }
        let day = match example.day {
            ExampleDay::Date(day) => format!("on {day}"),
            ExampleDay::Weekday(weekday) => format!("on an ordinary {}", day_name(weekday)),
        };
        let asked = format!("{day} at {}, for `{profile}` who has used nothing yet: ", example.time);
        Some((answer, asked))
    }

    fn engine(&mut self, calendar: ExampleCalendar, mode: Option<String>) -> Option<&CoreEngine> {
        let key = (calendar, mode);
        if !self.engines.contains_key(&key) {
            let snapshot = EngineSnapshot { mode: key.1.clone(), ..EngineSnapshot::default() };
            let store = StoredState { snapshot, ..StoredState::default() };
            let place = EngineEnvironment { boot: NO_BOOT.parse::<BootId>().ok()?, zone: self.zone.clone() };
            let policy = Policy::new(self.rules(calendar)).ok()?;
            let engine = CoreEngine::new(policy, store, HostCapabilities::all_supported(), place);
            self.engines.insert(key.clone(), engine);
        }
        self.engines.get(&key)
    }

    /// The rules with no more entries than are asked about: a policy may have a thousand.
    fn rules(&self, calendar: ExampleCalendar) -> PolicyRules {
        let rules = self.policy.rules();
        let dates = calendar == ExampleCalendar::Dates;
        PolicyRules {
            zone: rules.zone.clone(),
            profiles: rules.profiles.clone(),
            entries: self.asked_about.iter().filter_map(|id| self.policy.entry(id)).cloned().collect(),
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
            // How an entry is run and who may ask for it has nothing to do with when.
            ..PolicyRules::default()
        }
    }

    /// The exceptions, as far as they are about entries that are asked about.
    fn exceptions(&self) -> Vec<DateException> {
        let asked_about = |exception: &DateException| DateException {
            entries: exception.entries.as_ref().map(|entries| entries & &self.asked_about),
            ..exception.clone()
        };
        self.policy.rules().exceptions.iter().map(asked_about).collect()
    }

    /// Somebody who may use the entry: with nothing used, all of them get the same answer.
    fn allowed_profile(&self, entry_id: &EntryId) -> ProfileId {
        let named = self.policy.entry(entry_id).and_then(|entry| entry.profiles.as_ref()?.first());
        named.cloned().unwrap_or_else(|| self.policy.default_profile())
    }

    fn timestamp_of(&self, day: Day, minute: u16) -> Option<Timestamp> {
        let midnight = day.date().to_datetime(jiff::civil::Time::midnight());
        let civil = midnight.checked_add(SignedDuration::from_mins(i64::from(minute))).ok()?;
        Some(civil.to_zoned(self.zone.clone()).ok()?.timestamp())
    }
}
