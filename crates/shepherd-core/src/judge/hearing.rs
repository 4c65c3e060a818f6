//! The rules, one after another, for somebody at a moment.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shepherd_api::{Gift, GrantView, ReasonCode};
use shepherd_util::{BudgetId, HumanDuration, ProfileId};

use super::limit::{Extra, Standing};
use super::record::Record;
use super::{Bench, Facts, Finding, Moment, Nobody, Saying, Witness};
use crate::hours::Opening;
use crate::policy::{Cost, Day, Entry};
use crate::usage::{ProfileUsage, on};

/// Somebody at a moment, and one entry after another is asked about. What the answers share is worked out once.
pub(crate) struct Hearing<'a> {
    pub(super) facts: Facts<'a>,
    pub(super) profile: &'a ProfileId,
    /// The policy has no such profile.
    unknown: bool,
    pub(super) at: Moment,
    pub(super) usage: Option<&'a ProfileUsage>,
    /// When the day and the week are over that use is charged to.
    pub(super) day_ends: Option<Timestamp>,
    pub(super) week_ends: Option<Timestamp>,
    /// The extra time that this profile was granted.
    pub(super) extras: Vec<Extra<'a>>,
    /// What the budgets that came up so far say.
    pub(super) budgets: BTreeMap<BudgetId, Vec<Standing>>,
    /// The same profile at other moments that were asked about.
    later: BTreeMap<Timestamp, Hearing<'a>>,
    asked: Asked,
}

/// What is asked of a hearing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Whether an entry may run, and for how long.
    Everything,
    /// Only what speaks against it. To find out when it closes is half the work of a listing at night.
    Reasons,
}

impl<'a> Hearing<'a> {
    pub(crate) fn new(facts: Facts<'a>, profile: &'a ProfileId, at: Moment) -> Self {
        let held = facts.grants.iter().filter(|grant| grant.is_for(profile));
        Self {
            facts,
            profile,
            unknown: !facts.policy.rules().profiles.contains_key(profile),
            at,
            usage: facts.usage.of(profile),
            day_ends: facts.wall.end_of_day(at.wall, at.day),
            week_ends: facts.wall.end_of_day(at.wall, at.day.week_start().plus(6)),
            extras: held.filter_map(|grant| Extra::of(grant, &facts.wall)).collect(),
            budgets: BTreeMap::new(),
            later: BTreeMap::new(),
            asked: Asked::Everything,
        }
    }

    /// Asks every rule.
    pub(crate) fn judge(&mut self, entry: &Entry, record: Record<'_>, witness: &mut impl Witness) -> Finding {
        let mut bench = Bench { finding: Finding::default(), witness };
        self.ask_about_the_entry(entry, &mut bench);
        self.ask_about_hours(entry, &mut bench);
        self.ask_about_pauses(record, &mut bench);
        self.ask_about_quotas(entry, record, &mut bench);
        let max_run = entry.limits.max_run.map_or(Saying::Nothing, Saying::AtMost);
        bench.take("max-run", || "the longest run of this entry".to_owned(), max_run);
        bench.finding
    }

    /// Asks those about use over days.
    pub(super) fn judge_quotas(&mut self, entry: &Entry, record: Record<'_>) -> Finding {
        let mut bench = Bench { finding: Finding::default(), witness: &mut Nobody };
        self.ask_about_quotas(entry, record, &mut bench);
        bench.finding
    }

    /// The same profile at another moment, as far as that can be known now.
    fn later(&mut self, at: Timestamp) -> &mut Hearing<'a> {
        let (facts, profile) = (self.facts, self.profile);
        self.later.entry(at).or_insert_with(|| {
            let day = facts.wall.local(at).day();
            let moment = Moment { wall: at, shown: at, mono: None, day };
            Hearing { asked: Asked::Reasons, ..Hearing::new(facts, profile, moment) }
        })
    }

    /// When nothing will speak against it any more, where that can be known.
    pub(crate) fn available_again(
        &mut self,
        entry: &Entry,
        record: Record<'_>,
        finding: &Finding,
    ) -> Option<Timestamp> {
        /// Each round passes the end of a reason; a rule that keeps finding new ones is not going to stop.
        const ROUNDS: usize = 16;
        let mut at = self.all_over(&finding.reasons)?;
        for _ in 0..ROUNDS {
            let reasons = self.later(at).judge(entry, record, &mut Nobody).reasons;
            if reasons.is_empty() {
                return Some(at);
            }
            at = self.all_over(&reasons)?;
        }
        None
    }

    fn ask_about_the_entry<W: Witness>(&self, entry: &Entry, bench: &mut Bench<'_, W>) {
        let (facts, profile) = (&self.facts, self.profile);
        let stranger = self.unknown || !entry.is_for(profile);
        let saying = if stranger { Saying::No(ReasonCode::NotForProfile) } else { Saying::Nothing };
        bench.take("profile", || format!("profile `{profile}`"), saying);
        let disabled = entry.disabled.as_ref().map_or(Saying::Nothing, |disabled| {
            Saying::No(ReasonCode::Disabled { reason: disabled.reason.clone() })
        });
        bench.take("disabled", || "whether the policy has switched it off".to_owned(), disabled);
        let kind = entry.kind.name();
        let possible = facts.capabilities.spawn_kinds_supported.contains(kind);
        let impossible = || Saying::No(ReasonCode::HostCannotRun { kind: kind.to_owned() });
        let saying = if possible { Saying::Nothing } else { impossible() };
        bench.take("host", || format!("whether this machine can run `{kind}`"), saying);
        if facts.capabilities.needs_account {
            let account = facts.policy.account_of(entry, profile);
            let saying = account.map_or(Saying::No(ReasonCode::AccountMissing), |_| Saying::Nothing);
            bench.take("account", || "as which user it would run".to_owned(), saying);
        }
        if self.at.mono.is_none() {
            return;
        }
        let untrusted = facts
            .clock_behind
            .map_or(Saying::Nothing, |latest_seen| Saying::No(ReasonCode::ClockUntrusted { latest_seen }));
        bench.take("clock", || "the latest time ever seen".to_owned(), untrusted);
        let trouble = facts.store_trouble.map_or(Saying::Nothing, |detail| {
            Saying::No(ReasonCode::StoreUnavailable { detail: detail.to_owned() })
        });
        bench.take("store", || "whether use can be looked up and recorded".to_owned(), trouble);
        let active = facts.active.map_or(Saying::Nothing, |(session_id, entry_id)| {
            let (session_id, entry_id) = (session_id.clone(), entry_id.clone());
            Saying::No(ReasonCode::SessionActive { session_id, entry_id })
        });
        bench.take("seat", || "whether something else is running".to_owned(), active);
    }

    fn ask_about_hours<W: Witness>(&self, entry: &Entry, bench: &mut Bench<'_, W>) {
        let (facts, at) = (&self.facts, self.at.wall);
        let hours = facts.hours(entry);
        if self.asked == Asked::Reasons && hours.is_open(at) {
            return;
        }
        let saying = match (hours.at(at), self.open_until(entry)) {
            (Opening::Open { closes: None }, _) => Saying::Nothing,
            (Opening::Open { closes: Some(closes) }, granted) => {
                Saying::Until(granted.map_or(closes, |granted| hours.follow(closes.max(granted))))
            }
            (Opening::Closed { .. }, Some(granted)) => Saying::Until(hours.follow(granted)),
            (Opening::Closed { opens }, None) => {
                // A window may be opened in advance by a grant.
                let advance = facts.grants.iter().filter(|grant| {
                    matches!(grant.gift, Gift::OpenUntil { .. })
                        && grant.valid_from > at
                        && grant.holds_at(grant.valid_from)
                        && facts.concerns(grant, self.profile, entry)
                });
                let opens = advance.map(|grant| grant.valid_from).chain(opens).min();
                Saying::No(ReasonCode::OutsideHours { next_opening: opens })
            }
        };
        let look = || {
            let local = at.to_zoned(facts.wall.zone.clone());
            let mode = facts.mode_on(Day::from_date(local.date()));
            let mode = if mode.is_empty() { String::new() } else { format!(", mode `{mode}`") };
            format!("{}{mode}", local.strftime("%a %Y-%m-%d %H:%M"))
        };
        bench.take("hours", look, saying);
    }

    fn ask_about_pauses<W: Witness>(&self, record: Record<'_>, bench: &mut Bench<'_, W>) {
        let (facts, at) = (&self.facts, self.at);
        let waits = record.cooldown.and_then(|until| facts.still_until(*until, at));
        let saying = waits.map_or(Saying::Nothing, |until| Saying::No(ReasonCode::Cooldown { until }));
        bench.take("cooldown", || "the pause after its last run".to_owned(), saying);
        let Some(rule) = facts.policy.rules().breaks else { return };
        let streak = facts.streaks.get(self.profile);
        let unrested = streak.and_then(|streak| Some((streak.played, facts.still_until(streak.rested, at)?)));
        let saying = match unrested {
            Some((played, until)) if played >= rule.after => Saying::No(ReasonCode::BreakNeeded { until }),
            Some((played, _)) => Saying::AtMost(rule.after - played),
            None => Saying::AtMost(rule.after),
        };
        bench.take("break", || "time in a row, across entries".to_owned(), saying);
    }

    fn ask_about_quotas<W: Witness>(&mut self, entry: &Entry, record: Record<'_>, bench: &mut Bench<'_, W>) {
        let day = self.at.day;
        if let Some(unlock) = &entry.unlock {
            let done = on(self.usage.and_then(|usage| usage.of_entry(&unlock.entry_id)), day);
            let missing = || ReasonCode::NotUnlocked {
                entry_id: unlock.entry_id.clone(),
                done: done.into(),
                needed: unlock.at_least.into(),
            };
            let saying = if done < unlock.at_least { Saying::No(missing()) } else { Saying::Nothing };
            bench.take("unlock", || format!("use of `{}` today", unlock.entry_id), saying);
        }
        if entry.cost == Cost::Free {
            return;
        }
        self.each_limit(entry, record, |standing| {
            let look = || format!("{} used on {day}", HumanDuration(standing.used));
            bench.take(standing.rule, look, standing.saying.clone());
        });
    }

    /// How far a grant opens an entry now.
    fn open_until(&self, entry: &Entry) -> Option<Timestamp> {
        let (facts, at) = (&self.facts, self.at.wall);
        let holds = |grant: &&GrantView| grant.holds_at(at) && facts.concerns(grant, self.profile, entry);
        let until = facts.grants.iter().filter(holds).filter_map(|grant| match grant.gift {
            Gift::OpenUntil { until } if until > at => Some(until.min(grant.lapses_at)),
            Gift::OpenUntil { .. } | Gift::Extra { .. } => None,
        });
        until.max()
    }

    /// When the last of them ends; `None` if one of them never does by itself, as far as is known.
    fn all_over(&self, reasons: &[ReasonCode]) -> Option<Timestamp> {
        let end = |reason: &ReasonCode| match reason {
            ReasonCode::ClockUntrusted { .. } => self.facts.trusted_again,
            other => other.until(),
        };
        reasons.iter().map(end).reduce(|latest, end| Some(latest?.max(end?)))?
    }
}
