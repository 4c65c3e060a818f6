//! A session: its plan, made at launch, and its record, which is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use shepherd_api::{EndReason, SessionCounting, SessionSlot, WarningSeverity};
use shepherd_util::{
    BootId, BudgetId, ClockReading, Deadline, DeadlineClock, EntryId, GrantId, MonotonicInstant, ProfileId,
    SessionId,
};

use crate::policy::{Day, EntrySlot, PolicyEntry};
use crate::user_display::UserDisplay;

/// The plan of an approved session: what to start, when to warn, when and how to end it (S3.4). Computed once, at
/// launch.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    pub session_id: SessionId,
    pub entry_id: EntryId,
    /// The entry as the policy had it at launch, with the user that the program runs as filled in.
    pub entry: PolicyEntry,
    /// The display of the client's desktop, unless the entry names a display itself.
    pub display: Option<UserDisplay>,
    pub profile: ProfileId,
    /// The wall time of the approval.
    pub started_at: Timestamp,
    /// The end of the session if the machine stays awake; `None` if the session is unlimited.
    pub deadline: Option<MonotonicInstant>,
    /// The warnings in the order in which they come.
    pub warnings: Vec<ScheduledWarning>,
    /// The time that the program gets to end after it was asked to.
    pub stop_grace: Duration,
}

/// A warning of a session. It stays in the record when it was given, because an extension may bring it back (S3.5b).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledWarning {
    /// The warning comes this long before the end.
    pub before: Duration,
    pub severity: WarningSeverity,
    pub message_template: Option<String>,
    /// Set if the end was further away than the threshold when it was last planned. A session shorter than a threshold
    /// gets no such warning (S2.5), unless its end is moved.
    pub armed: bool,
    /// Set if the warning was given before the end moved away from it. If the end moves back past the threshold, the
    /// warning isn't given again.
    #[serde(default)]
    pub repeated: bool,
}

/// The two deadlines of a session; the earlier one wins (S4.4). While a session doesn't count, its run deadline is on
/// [`DeadlineClock::Stopped`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeadlines {
    /// The moment at which run time or a quota is used up.
    pub run: Option<Deadline>,
    /// The moment at which the window closes.
    pub window: Option<Deadline>,
}

impl SessionDeadlines {
    /// Returns the deadline that comes first if the machine stays awake.
    #[must_use]
    pub fn earliest(&self, now: MonotonicInstant) -> Option<Deadline> {
        match (self.run, self.window) {
            (Some(run), Some(window)) => Some(run.earlier(window, now)),
            (run, window) => run.or(window),
        }
    }

    /// Returns the time that is left; `None` if the session is unlimited.
    #[must_use]
    pub fn remaining(&self, now: MonotonicInstant) -> Option<Duration> {
        self.earliest(now).map(|deadline| deadline.remaining(now))
    }

    /// Returns the time at which the window closes, if that comes before the run time is used up. It is rounded to
    /// seconds, because the two clocks differ a little.
    pub(crate) fn hours_end(&self, now: ClockReading) -> Option<Timestamp> {
        let left = self.window?.remaining(now.mono);
        if self.run.is_some_and(|run| run.remaining(now.mono) <= left) {
            return None;
        }
        now.wall.checked_add(left).and_then(|end| end.round(Unit::Second)).ok()
    }

    /// Returns the most time that can have counted since `then` before a deadline came; `None` if the session is
    /// unlimited. Where suspended time counts but doesn't bring the deadline nearer, all of it is included, because it
    /// may have come before the deadline.
    pub(crate) fn max_counted_since(
        &self,
        then: MonotonicInstant,
        now: MonotonicInstant,
        counting: DeadlineClock,
    ) -> Option<Duration> {
        let most = |end: Deadline| match (end.clock(), counting) {
            (DeadlineClock::Awake, DeadlineClock::Total) => {
                end.remaining(then).saturating_add(now.suspended_since(then))
            }
            _ => end.remaining(then),
        };
        [self.run, self.window].into_iter().flatten().map(most).min()
    }

    /// Returns the time after which the session ends by itself; `None` if it is unlimited, or as long as its run time
    /// stands still and no window closes.
    pub(crate) fn time_to_end(&self, now: MonotonicInstant) -> Option<Duration> {
        let advances = |end: &Deadline| end.clock() != DeadlineClock::Stopped;
        [self.run, self.window].into_iter().flatten().filter(advances).map(|end| end.remaining(now)).min()
    }

    /// Moves the run deadline to another clock, with the time that is left now.
    pub(crate) fn set_run_clock(&mut self, now: MonotonicInstant, clock: DeadlineClock) {
        self.run = self.run.map(|end| Deadline::after(now, end.remaining(now), clock));
    }

    /// Returns whether either deadline has come.
    #[must_use]
    pub fn is_due(&self, now: MonotonicInstant) -> bool {
        [self.run, self.window].into_iter().flatten().any(|deadline| deadline.is_due(now))
    }
}

/// Returns the slot of a program that is launched; `None` for an entry that is never launched.
pub(crate) fn launch_slot(entry: &PolicyEntry) -> Option<SessionSlot> {
    match entry.slot {
        EntrySlot::Foreground => Some(SessionSlot::Foreground),
        EntrySlot::Background => Some(SessionSlot::Background),
        EntrySlot::Login => None,
    }
}

/// The stored state of a session, from which a restarted daemon continues (S9.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub session_id: SessionId,
    pub entry_id: EntryId,
    pub label: String,
    pub profile: ProfileId,
    #[serde(default)]
    pub slot: SessionSlot,
    #[serde(default)]
    pub counting: SessionCounting,
    /// The wall time of the approval.
    pub started_at: Timestamp,
    /// The effective time at which the session was planned, or at which a reload changed its rules. Grants that were
    /// valid by then are settled.
    pub judged_at: Timestamp,
    /// The boot whose monotonic clock the other moments are on.
    pub boot: BootId,
    /// The moment of the approval.
    pub started: MonotonicInstant,
    pub ends: SessionDeadlines,
    /// The warnings, in the order in which they come. Records of older daemons lack those that were given.
    pub warnings: Vec<ScheduledWarning>,
    /// Thresholds of the warnings that were given for the present end, so that none comes twice for it.
    pub given: Vec<Duration>,
    /// The distance by which each grant has moved the deadlines, so that exactly that can be taken back.
    pub extensions: Vec<SessionExtension>,
    /// The moment up to which usage has been charged.
    pub charged_to: MonotonicInstant,
    /// The day that was charged last.
    pub charged_day: Day,
    /// The total that has been charged.
    pub charged: Duration,
    /// The time that the profile had played in a row when this session last began to count, for the break rule.
    #[serde(default)]
    pub in_a_row: Duration,
    /// The part of `charged` that came before that moment.
    #[serde(default)]
    pub charged_before_row: Duration,
    /// The time that had been earned for each budget when the session was planned. More makes the session longer.
    #[serde(default)]
    pub earned: BTreeMap<BudgetId, Duration>,
    pub stage: SessionStage,
    /// The time that the program gets to end after it was asked to.
    pub stop_grace: Duration,
    /// Budgets that are charged besides the entry's own counter.
    pub budgets: Vec<BudgetId>,
    /// Set if the session's time counts against no quota.
    pub free: bool,
    /// The pause that follows the session.
    pub cooldown: Duration,
    /// A crash within this time of the launch causes no cooldown. A record of an older daemon has none.
    #[serde(default)]
    pub crash_within: Duration,
}

/// The time by which a grant has moved the deadlines of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionExtension {
    pub grant_id: GrantId,
    pub run: Duration,
    pub window: Duration,
}

/// The stage of a session (S3.6). `Ended` is missing because an ended session has no record any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionStage {
    /// The session is approved and its program is being started.
    Launching,
    /// The session was stopped before its program had started. If the program still starts, it is stopped at once.
    Withdrawn { reason: EndReason },
    /// The program runs.
    Running {
        /// An opaque text by which the host finds the program again.
        host_session_handle: String,
        /// The most severe warning that was given.
        #[serde(default)]
        warned: Option<WarningSeverity>,
    },
    /// The program was asked to end.
    Expiring {
        host_session_handle: String,
        reason: EndReason,
        /// The moment at which the program was first asked to end.
        #[serde(default = "long_ago")]
        called: MonotonicInstant,
    },
}

/// Leaves no grace period if a record doesn't say when the program was asked to end.
fn long_ago() -> MonotonicInstant {
    MonotonicInstant::BOOT
}

impl SessionRecord {
    /// Returns the rest of the grace period. It begins once: asking again, or coming back after a crash, gives the
    /// program no more time.
    #[must_use]
    pub fn grace_left(&self, now: MonotonicInstant) -> Duration {
        match self.stage {
            SessionStage::Expiring { called, .. } => self.stop_grace.saturating_sub(now.awake_since(called)),
            SessionStage::Launching | SessionStage::Withdrawn { .. } | SessionStage::Running { .. } => {
                self.stop_grace
            }
        }
    }

    /// Returns the run time so far: the charged time, and the time since then.
    pub(crate) fn run_time(&self, now: MonotonicInstant, counting: DeadlineClock) -> Duration {
        let since = match self.run_clock(counting) {
            DeadlineClock::Awake => now.awake_since(self.charged_to),
            DeadlineClock::Total => now.total_since(self.charged_to),
            DeadlineClock::Stopped => Duration::ZERO,
        };
        if self.stage.has_program() { self.charged.saturating_add(since) } else { Duration::ZERO }
    }

    /// Returns the clock on which the run time of this session is counted, if running sessions are counted on `counting`.
    pub(crate) fn run_clock(&self, counting: DeadlineClock) -> DeadlineClock {
        match self.counting {
            SessionCounting::Active | SessionCounting::Idle => counting,
            SessionCounting::Stopped => DeadlineClock::Stopped,
        }
    }

    /// Returns whether time is charged to this session.
    pub(crate) fn is_counting(&self) -> bool {
        self.stage.has_program() && self.counting != SessionCounting::Stopped
    }

    /// Returns the time that the profile has played in a row, as far as this session has been charged.
    pub(crate) fn played_in_a_row(&self) -> Duration {
        self.in_a_row.saturating_add(self.charged.saturating_sub(self.charged_before_row))
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.stage, SessionStage::Running { .. })
    }

    /// Returns the end of the session if the machine stays awake.
    pub(crate) fn expected_end(&self, now: MonotonicInstant) -> Option<MonotonicInstant> {
        self.ends.earliest(now).map(|deadline| deadline.expected_at(now))
    }

    /// Plans the warnings for an end that was moved (S3.5b). A warning that was given comes again if its threshold lies
    /// before the new end. A warning that was to come again is dropped if the new end is nearer than its threshold.
    pub(crate) fn replan_warnings(&mut self, remaining: Option<Duration>) {
        let Self { warnings, given, .. } = self;
        for warning in warnings {
            if remaining.is_some_and(|remaining| warning.before < remaining) {
                let known = given.len();
                given.retain(|threshold| *threshold != warning.before);
                warning.repeated |= given.len() < known;
                warning.armed = true;
            } else if warning.repeated && warning.armed {
                warning.armed = false;
                given.push(warning.before);
            }
        }
    }
}

impl SessionStage {
    /// Returns the text by which the host finds the program again, once there is a program.
    #[must_use]
    pub fn host_session_handle(&self) -> Option<&str> {
        match self {
            Self::Launching | Self::Withdrawn { .. } => None,
            Self::Running { host_session_handle, .. } | Self::Expiring { host_session_handle, .. } => {
                Some(host_session_handle)
            }
        }
    }

    /// Returns the reason why the session is being ended; `None` if it isn't.
    #[must_use]
    pub fn end_reason(&self) -> Option<&EndReason> {
        match self {
            Self::Launching | Self::Running { .. } => None,
            Self::Withdrawn { reason } | Self::Expiring { reason, .. } => Some(reason),
        }
    }

    /// Returns whether a program has come up. A session costs nothing before that.
    pub(crate) fn has_program(&self) -> bool {
        self.host_session_handle().is_some()
    }

    /// Begins to end the session. If the session is already being ended, the first reason and time are kept.
    pub(crate) fn expire(&mut self, reason: EndReason, called: MonotonicInstant) {
        let stage = std::mem::replace(self, Self::Launching);
        *self = match stage {
            Self::Launching => Self::Withdrawn { reason },
            Self::Running { host_session_handle, .. } => {
                Self::Expiring { host_session_handle, reason, called }
            }
            settled @ (Self::Withdrawn { .. } | Self::Expiring { .. }) => settled,
        };
    }

    /// Raises the warning level of a running session.
    pub(crate) fn record_warning(&mut self, severity: WarningSeverity) {
        if let Self::Running { warned, .. } = self {
            *warned = (*warned).max(Some(severity));
        }
    }

    /// Starts the grace period again, because the clock of the earlier boot is gone.
    pub(crate) fn restart_grace(&mut self, now: MonotonicInstant) {
        if let Self::Expiring { called, .. } = self {
            *called = now;
        }
    }

    /// Records that the program has started.
    pub(crate) fn program_started(&mut self, host_session_handle: String, now: MonotonicInstant) {
        let stage = std::mem::replace(self, Self::Launching);
        *self = match stage {
            Self::Launching => Self::Running { host_session_handle, warned: None },
            Self::Running { warned, .. } => Self::Running { host_session_handle, warned },
            Self::Withdrawn { reason } => Self::Expiring { host_session_handle, reason, called: now },
            Self::Expiring { reason, called, .. } => Self::Expiring { host_session_handle, reason, called },
        };
    }
}
