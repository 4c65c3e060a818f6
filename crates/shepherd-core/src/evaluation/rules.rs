//! The rules, one after another, for a profile at a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{GrantKind, GrantView, PolicyItem, ReasonCode, RuleView, SessionSlot};
use shepherd_util::{BudgetId, EntryId, HumanDuration, ProfileId};

use super::bedtime::BedtimeNow;
use super::entry_history::EntryHistory;
use super::usage_limits::{ExtraTimeGrant, LimitStatus};
use super::{
    EntryFinding, EvaluationContext, EvaluationTime, FindingBuilder, NoObserver, RuleObserver, RuleVerdict,
};
use crate::capability::HostCapabilities;
use crate::hours::{OpenState, OpeningHours};
use crate::policy::{Day, EntrySlot, HoursGroup, PolicyEntry, TimeCost};
use crate::session::SessionRecord;
use crate::usage::{ProfileUsage, used_on_day};

/// The evaluation of entries for a profile at a moment. Shared facts are calculated once.
pub(crate) struct EntryEvaluation<'a> {
    pub(super) facts: EvaluationContext<'a>,
    pub(super) profile: &'a ProfileId,
    /// True if the policy has no such profile.
    profile_unknown: bool,
    pub(super) at: EvaluationTime,
    pub(super) usage: Option<&'a ProfileUsage>,
    /// The end of the day and of the week to which usage is charged.
    pub(super) day_ends: Option<Timestamp>,
    pub(super) week_ends: Option<Timestamp>,
    /// The extra time that this profile was granted.
    pub(super) extras: Vec<ExtraTimeGrant<'a>>,
    /// The status of the budgets that were evaluated so far.
    pub(super) budgets: BTreeMap<BudgetId, Vec<LimitStatus>>,
    /// The state of each group of entries with the same hours that was evaluated so far.
    open_states: BTreeMap<HoursGroup, OpenState>,
    /// The same profile at other moments that were evaluated.
    later_evaluations: BTreeMap<Timestamp, EntryEvaluation<'a>>,
    /// The session in the foreground of the profile, if the question is about now.
    foreground: Option<&'a SessionRecord>,
    /// The time that sessions of the profile which count now have played in a row.
    running_streak: Option<Duration>,
    scope: EvaluationScope,
    /// The bedtime, which is the same for all entries.
    pub(super) bedtime: Option<BedtimeNow<'a>>,
}

/// The scope of an evaluation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvaluationScope {
    /// The permission to run an entry, with its length.
    Full,
    /// Only the reasons against it. The closing time is left out, because finding it is half the work of a listing.
    ReasonsOnly,
}

impl<'a> EntryEvaluation<'a> {
    pub(crate) fn new(facts: EvaluationContext<'a>, profile: &'a ProfileId, at: EvaluationTime) -> Self {
        let held = facts.grants.iter().filter(|grant| grant.is_for(profile));
        let sessions = || facts.sessions.of_profile(profile).filter(|_| at.mono.is_some());
        let counting = sessions().filter(|session| session.is_counting());
        Self {
            facts,
            profile,
            profile_unknown: !facts.policy.rules().profiles.contains_key(profile),
            at,
            usage: facts.usage.profile_usage(profile),
            day_ends: facts.wall.end_of_day(at.wall, at.day),
            week_ends: facts.wall.end_of_day(at.wall, at.day.week_start().plus_days(6)),
            extras: held.filter_map(|grant| ExtraTimeGrant::from_grant(grant, &facts.wall)).collect(),
            budgets: BTreeMap::new(),
            open_states: BTreeMap::new(),
            later_evaluations: BTreeMap::new(),
            foreground: sessions().find(|session| session.slot.is_foreground()),
            running_streak: counting.map(SessionRecord::played_in_a_row).max(),
            scope: EvaluationScope::Full,
            bedtime: facts.bedtime_hours(profile).map(|hours| BedtimeNow::new(hours, at.wall)),
        }
    }

    /// Evaluates every rule.
    pub(crate) fn evaluate(
        &mut self,
        entry: &PolicyEntry,
        record: EntryHistory<'_>,
        observer: &mut impl RuleObserver,
    ) -> EntryFinding {
        let mut findings = FindingBuilder { finding: EntryFinding::default(), observer };
        self.check_entry(entry, &mut findings);
        self.check_hours(entry, record, &mut findings);
        self.check_bedtime(entry, &mut findings);
        let extra = self.extra_runs(entry).fold(Duration::ZERO, |sum, (_, left)| sum.saturating_add(left));
        self.check_pauses(record, extra, &mut findings);
        self.check_quotas(entry, record, &mut findings);
        let max_run = entry.limits.max_run.map(|max_run| max_run.saturating_add(extra));
        let max_run = max_run.map_or(RuleVerdict::Passes, RuleVerdict::Limits);
        let has_max_run = entry.limits.max_run.is_some();
        let detail = || {
            if has_max_run {
                format!("longest single run{}", extra_text(extra))
            } else {
                "no limit for a single run".to_owned()
            }
        };
        findings.record_verdict("max-run", detail, max_run);
        findings.finding
    }

    /// Evaluates the rules about usage over days.
    pub(super) fn evaluate_quotas(&mut self, entry: &PolicyEntry, record: EntryHistory<'_>) -> EntryFinding {
        let mut findings = FindingBuilder { finding: EntryFinding::default(), observer: &mut NoObserver };
        self.check_quotas(entry, record, &mut findings);
        findings.finding
    }

    /// Returns the evaluation of the same profile at another moment, as far as that can be known now.
    fn evaluation_at(&mut self, at: Timestamp) -> &mut EntryEvaluation<'a> {
        let (facts, profile) = (self.facts, self.profile);
        self.later_evaluations.entry(at).or_insert_with(|| {
            let day = facts.wall.local(at).day();
            let moment = EvaluationTime { wall: at, shown: at, mono: None, day };
            EntryEvaluation {
                scope: EvaluationScope::ReasonsOnly,
                ..EntryEvaluation::new(facts, profile, moment)
            }
        })
    }

    /// Returns the time at which no reason is left, if that can be known.
    pub(crate) fn next_available(
        &mut self,
        entry: &PolicyEntry,
        record: EntryHistory<'_>,
        finding: &EntryFinding,
    ) -> Option<Timestamp> {
        /// Each round passes the end of a reason; a rule that keeps finding new ones will not stop.
        const MAX_ROUNDS: usize = 16;
        let mut at = self.latest_reason_end(&finding.reasons)?;
        for _ in 0..MAX_ROUNDS {
            let reasons = self.evaluation_at(at).evaluate(entry, record, &mut NoObserver).reasons;
            if reasons.is_empty() {
                return Some(at);
            }
            at = self.latest_reason_end(&reasons)?;
        }
        None
    }

    fn check_entry<W: RuleObserver>(&self, entry: &PolicyEntry, findings: &mut FindingBuilder<'_, W>) {
        let (facts, profile) = (&self.facts, self.profile);
        let stranger = self.profile_unknown || !entry.is_for(profile);
        let verdict =
            if stranger { RuleVerdict::Refuses(ReasonCode::NotForProfile) } else { RuleVerdict::Passes };
        let detail = || match (self.profile_unknown, stranger) {
            (true, _) => format!("the policy has no profile `{profile}`"),
            (false, true) => format!("not available to {profile}"),
            (false, false) => format!("available to {profile}"),
        };
        findings.record_verdict("profile", detail, verdict);
        let disabled = entry.disabled.as_ref().map_or(RuleVerdict::Passes, |disabled| {
            RuleVerdict::Refuses(ReasonCode::Disabled { reason: disabled.reason.clone() })
        });
        let is_disabled = entry.disabled.is_some();
        let detail = || if is_disabled { "disabled in the policy" } else { "not disabled" }.to_owned();
        findings.record_verdict("disabled", detail, disabled);
        let kind = entry.kind.name();
        let possible = facts.capabilities.spawn_kinds_supported.contains(kind);
        let impossible = || RuleVerdict::Refuses(ReasonCode::HostCannotRun { kind: kind.to_owned() });
        let verdict = if possible { RuleVerdict::Passes } else { impossible() };
        let detail = || {
            let can = if possible { "can" } else { "can't" };
            format!("this machine {can} run entries of kind `{kind}`")
        };
        findings.record_verdict("host", detail, verdict);
        self.check_login(entry, findings);
        if self.at.mono.is_none() {
            return;
        }
        let untrusted = facts.clock_behind.map_or(RuleVerdict::Passes, |latest_seen| {
            RuleVerdict::Refuses(ReasonCode::ClockUntrusted { latest_seen })
        });
        let is_behind = facts.clock_behind.is_some();
        let detail = || if is_behind { "clock was set back" } else { "clock is trusted" }.to_owned();
        findings.record_verdict("clock", detail, untrusted);
        let trouble = facts.store_trouble.map_or(RuleVerdict::Passes, |detail| {
            RuleVerdict::Refuses(ReasonCode::StoreUnavailable { detail: detail.to_owned() })
        });
        let can_record = facts.store_trouble.is_none();
        let detail =
            || if can_record { "usage can be recorded" } else { "usage can't be recorded" }.to_owned();
        findings.record_verdict("store", detail, trouble);
        self.check_slot(entry, findings);
    }

    /// Checks that the place of the entry is free: the profile's foreground, the entry's own in the background, or the
    /// account's login (S19.1).
    fn check_slot<W: RuleObserver>(&self, entry: &PolicyEntry, findings: &mut FindingBuilder<'_, W>) {
        let is_of_account = |session: &SessionRecord| matches!(&session.slot, SessionSlot::Login { account } if Some(&**account) == self.facts.account);
        let occupant = match entry.slot {
            EntrySlot::Foreground => self.foreground,
            EntrySlot::Background => {
                self.facts.sessions.occupant(&SessionSlot::Background, self.profile, &entry.entry_id)
            }
            EntrySlot::Login => self.facts.sessions.iter().find(|session| is_of_account(session)),
        };
        let verdict = occupant.map_or(RuleVerdict::Passes, |session| {
            let (session_id, entry_id) = (session.session_id.clone(), session.entry_id.clone());
            RuleVerdict::Refuses(ReasonCode::SessionActive { session_id, entry_id })
        });
        let detail = || match (entry.slot, occupant) {
            (EntrySlot::Foreground, Some(session)) => format!("{} is running", session.label),
            (EntrySlot::Foreground, None) => "nothing else is running".to_owned(),
            (EntrySlot::Background, Some(_)) => "it is running already".to_owned(),
            (EntrySlot::Background, None) => "runs beside other entries".to_owned(),
            (EntrySlot::Login, Some(_)) => "the account is logged in already".to_owned(),
            (EntrySlot::Login, None) => "the account isn't logged in".to_owned(),
        };
        findings.record_verdict("seat", detail, verdict);
    }

    /// Checks the login that the program would run as.
    fn check_login<W: RuleObserver>(&self, entry: &PolicyEntry, findings: &mut FindingBuilder<'_, W>) {
        let HostCapabilities { needs_account, can_switch_user, missing_logins, .. } = self.facts.capabilities;
        if (!needs_account && missing_logins.is_empty()) || entry.kind.is_login() {
            return;
        }
        // Without the right to switch users, only a login that the entry names matters.
        let login = if *can_switch_user {
            self.facts.policy.system_account(entry, self.profile)
        } else {
            entry.run.user.as_deref()
        };
        let missing = login.filter(|login| missing_logins.contains(*login));
        let verdict = match (login, missing) {
            (_, Some(login)) => RuleVerdict::Refuses(ReasonCode::LoginNotFound { login: login.to_owned() }),
            (None, None) if *needs_account => RuleVerdict::Refuses(ReasonCode::AccountMissing),
            (_, None) => RuleVerdict::Passes,
        };
        let detail = || match (login, missing) {
            (_, Some(login)) => format!("user `{login}` doesn't exist"),
            (Some(login), None) => format!("runs as user `{login}`"),
            (None, None) if *needs_account => format!("no login to run as for {}", self.profile),
            (None, None) => "runs as the service's own user".to_owned(),
        };
        findings.record_verdict("account", detail, verdict);
    }

    fn check_hours<W: RuleObserver>(
        &mut self,
        entry: &PolicyEntry,
        record: EntryHistory<'_>,
        findings: &mut FindingBuilder<'_, W>,
    ) {
        let (facts, at) = (self.facts, self.at.wall);
        let hours = facts.opening_hours(entry);
        if self.scope == EvaluationScope::ReasonsOnly && hours.is_open(at) {
            return;
        }
        let open_state = self.open_state(&hours, record);
        let (is_open, granted) =
            (matches!(open_state, OpenState::Open { .. }), self.granted_open_until(entry));
        let verdict = match (open_state, granted) {
            (OpenState::Open { closes: None }, _) => RuleVerdict::Passes,
            (OpenState::Open { closes: Some(closes) }, granted) => RuleVerdict::LimitsUntil(
                granted.map_or(closes, |granted| hours.extend_through_open_hours(closes.max(granted))),
            ),
            (OpenState::Closed { .. }, Some(granted)) => {
                RuleVerdict::LimitsUntil(hours.extend_through_open_hours(granted))
            }
            (OpenState::Closed { opens }, None) => {
                let opens = opens.and_then(|opens| match &self.bedtime {
                    Some(bedtime) => hours.first_opening_awake(&bedtime.hours, opens),
                    None => Some(opens),
                });
                let next_opening = self.next_granted_opening(entry).into_iter().chain(opens).min();
                RuleVerdict::Refuses(ReasonCode::OutsideHours { next_opening })
            }
        };
        let detail = || {
            let state = match (is_open, granted.is_some()) {
                (true, _) => "inside its hours",
                (false, true) => "outside its hours, but opened by a grant",
                (false, false) => "outside its hours",
            };
            let mode = facts.mode_on(facts.wall.local(at).day());
            let mode = if mode.is_empty() { String::new() } else { format!(", mode {mode}") };
            format!("{state}{mode}{}", self.zone_remark())
        };
        findings.record_verdict("hours", detail, verdict);
    }

    /// Returns the state at the evaluated moment. Entries with the same hours share one search.
    fn open_state(&mut self, hours: &OpeningHours<'_>, record: EntryHistory<'_>) -> OpenState {
        let at = self.at.wall;
        match record.hours {
            Some(group) => *self.open_states.entry(group).or_insert_with(|| hours.open_state_at(at)),
            None => hours.open_state_at(at),
        }
    }

    fn check_pauses<W: RuleObserver>(
        &self,
        record: EntryHistory<'_>,
        extra: Duration,
        findings: &mut FindingBuilder<'_, W>,
    ) {
        let (facts, at) = (&self.facts, self.at);
        let waits = record.cooldown.and_then(|until| facts.pending_until(*until, at));
        let verdict =
            waits.map_or(RuleVerdict::Passes, |until| RuleVerdict::Refuses(ReasonCode::Cooldown { until }));
        let detail =
            || if waits.is_some() { "pause after the last run" } else { "no pause needed" }.to_owned();
        findings.record_verdict("cooldown", detail, verdict);
        let Some(rule) = facts.policy.rules().breaks else { return };
        let streak = facts.streaks.get(self.profile);
        // As long as a session counts, the break hasn't begun.
        let running = self
            .running_streak
            .map(|played| (played, at.wall.saturating_add(rule.length).unwrap_or(Timestamp::MAX)));
        let unrested = running.or_else(|| {
            streak.and_then(|streak| Some((streak.played, facts.pending_until(streak.rested, at)?)))
        });
        let verdict = match unrested {
            Some((played, until)) if played >= rule.after => {
                RuleVerdict::Refuses(ReasonCode::BreakNeeded { until })
            }
            Some((played, _)) => RuleVerdict::Limits((rule.after - played).saturating_add(extra)),
            None => RuleVerdict::Limits(rule.after.saturating_add(extra)),
        };
        let detail = || match unrested {
            // Extra time doesn't shorten a break that is needed.
            Some((played, _)) if played >= rule.after => {
                format!("{} used since the last break", HumanDuration(played))
            }
            Some((played, _)) => {
                format!("{} used since the last break{}", HumanDuration(played), extra_text(extra))
            }
            None => format!("no time used since the last break{}", extra_text(extra)),
        };
        findings.record_verdict("break", detail, verdict);
    }

    fn check_quotas<W: RuleObserver>(
        &mut self,
        entry: &PolicyEntry,
        record: EntryHistory<'_>,
        findings: &mut FindingBuilder<'_, W>,
    ) {
        let (day, is_now) = (self.at.day, self.at.mono.is_some());
        if let Some(unlock) = &entry.unlock {
            let done = used_on_day(self.usage.and_then(|usage| usage.entry_usage(&unlock.entry_id)), day);
            let missing = || ReasonCode::NotUnlocked {
                entry_id: unlock.entry_id.clone(),
                done: done.into(),
                needed: unlock.at_least.into(),
            };
            let verdict =
                if done < unlock.at_least { RuleVerdict::Refuses(missing()) } else { RuleVerdict::Passes };
            let detail = || {
                let (label, day) = (self.label_of(&unlock.entry_id), day_text(day, is_now));
                format!("{} used for {label} {day}", HumanDuration(done))
            };
            findings.record_verdict("unlock", detail, verdict);
        }
        if entry.cost == TimeCost::Free {
            return;
        }
        let policy = self.facts.policy;
        self.for_each_limit(entry, record, |budget, status| {
            let detail = || {
                let period = if status.is_weekly { week_text(day, is_now) } else { day_text(day, is_now) };
                let budget = budget.map(|id| {
                    let label = policy.label_of(PolicyItem::Budget(id)).unwrap_or(id.as_str());
                    format!(" from the budget {label}")
                });
                let budget = budget.unwrap_or_default();
                format!("{} used {period}{budget}", HumanDuration(status.used))
            };
            findings.record_left_today(status.left);
            findings.record_verdict(status.rule, detail, status.verdict.clone());
        });
    }

    /// Returns the label of an entry, or its id if the policy no longer has the entry.
    fn label_of<'e>(&self, entry_id: &'e EntryId) -> &'e str
    where
        'a: 'e,
    {
        self.facts.policy.entry(entry_id).map_or(entry_id.as_str(), |entry| entry.label.as_str())
    }

    /// Returns the grants that are valid for an entry at this moment, oldest first.
    pub(crate) fn valid_grants(&self, entry: &PolicyEntry) -> impl Iterator<Item = &'a GrantView> {
        let (profile, at) = (self.profile, self.at.wall);
        self.facts.grants.iter().filter(move |grant| {
            grant.is_valid_at(at)
                && grant.is_for(profile)
                && grant.scope.includes(&entry.entry_id, &entry.budgets)
        })
    }

    /// Names the policy's zone. No time of day here: the client shows all times in the reader's zone.
    pub(super) fn zone_remark(&self) -> String {
        let zone = self.facts.policy.rules().zone.as_ref().and_then(TimeZone::iana_name);
        zone.map(RuleView::policy_zone_remark).unwrap_or_default()
    }

    /// Returns the start of a grant that opens an entry later.
    pub(super) fn next_granted_opening(&self, entry: &PolicyEntry) -> Option<Timestamp> {
        let advance = self.facts.grants.iter().filter(|grant| {
            matches!(grant.gift, GrantKind::OpenUntil { .. })
                && grant.valid_from > self.at.wall
                && grant.is_valid_at(grant.valid_from)
                && self.facts.grant_applies(grant, self.profile, entry)
        });
        advance.map(|grant| grant.valid_from).min()
    }

    /// Returns the time until which a grant opens an entry now.
    pub(super) fn granted_open_until(&self, entry: &PolicyEntry) -> Option<Timestamp> {
        let (facts, at) = (&self.facts, self.at.wall);
        let holds =
            |grant: &&GrantView| grant.is_valid_at(at) && facts.grant_applies(grant, self.profile, entry);
        let until = facts.grants.iter().filter(holds).filter_map(|grant| match grant.gift {
            GrantKind::OpenUntil { until } if until > at => Some(until.min(grant.lapses_at)),
            GrantKind::OpenUntil { .. } | GrantKind::Extra { .. } => None,
        });
        until.max()
    }

    /// Returns the end of the last reason; `None` if one of them doesn't end by itself, as far as is known.
    fn latest_reason_end(&self, reasons: &[ReasonCode]) -> Option<Timestamp> {
        let end = |reason: &ReasonCode| match reason {
            ReasonCode::ClockUntrusted { .. } => self.facts.clock_trusted_at,
            other => other.until(),
        };
        reasons.iter().map(end).reduce(|latest, end| Some(latest?.max(end?)))?
    }
}

/// Names the extra time in the limit of a run, if there is any.
fn extra_text(extra: Duration) -> String {
    if extra.is_zero() { String::new() } else { format!(", with {} of extra time", HumanDuration(extra)) }
}

/// Names the day that a rule counted, for a sentence such as "45 minutes used today".
fn day_text(day: Day, is_now: bool) -> String {
    if is_now { "today".to_owned() } else { format!("on {day}") }
}

fn week_text(day: Day, is_now: bool) -> String {
    if is_now { "this week".to_owned() } else { format!("in the week of {}", day.week_start()) }
}
