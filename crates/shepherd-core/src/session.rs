//! A session: its plan, and what has to be remembered of it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shepherd_api::{EndReason, WarningSeverity};
use shepherd_util::{
    BootId, Deadline, DeadlineClock, EntryId, GrantId, MonotonicInstant, ProfileId, SessionId,
};

use crate::policy::{Day, PolicyEntry};

/// What to do at launch, when to warn, when and how to expire (S3.4). Worked out once, at launch.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    /// Its name.
    pub session_id: SessionId,
    /// Of which entry.
    pub entry_id: EntryId,
    /// The entry as the policy had it.
    pub entry: PolicyEntry,
    /// Whose time it is.
    pub profile: ProfileId,
    /// When it was approved.
    pub started_at: Timestamp,
    /// When it ends, if the machine stays awake; `NotRequested` is without end.
    pub deadline: Option<MonotonicInstant>,
    /// The warnings, in the order in which they come.
    pub warnings: Vec<ScheduledWarning>,
    /// How long the program may take to end after it was asked to.
    pub stop_grace: Duration,
}

/// A warning that will be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledWarning {
    /// So long before the end.
    pub before: Duration,
    /// How loud.
    pub severity: WarningSeverity,
    /// What will be said.
    pub message_template: Option<String>,
    /// Whether the end was still further away when it was last planned. A session shorter than a threshold has no
    /// such warning (S2.5), unless its end is moved.
    pub armed: bool,
}

/// The two ends of a session; the earlier wins (S4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeadlines {
    /// When run time or a quota is used up.
    pub run: Option<Deadline>,
    /// When the window closes.
    pub window: Option<Deadline>,
}

impl SessionDeadlines {
    /// The one that comes first if the machine stays awake.
    #[must_use]
    pub fn earliest(&self, now: MonotonicInstant) -> Option<Deadline> {
        match (self.run, self.window) {
            (Some(run), Some(window)) => Some(run.earlier(window, now)),
            (run, window) => run.or(window),
        }
    }

    /// What is left; `NotRequested` is without end.
    #[must_use]
    pub fn remaining(&self, now: MonotonicInstant) -> Option<Duration> {
        self.earliest(now).map(|deadline| deadline.remaining(now))
    }

    /// How much can have counted since then at most, before the first end came; `NotRequested` is without end. Where sleep
    /// counts, but not for an end, nobody knows whether it came before.
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

    /// Whether either has come.
    #[must_use]
    pub fn is_due(&self, now: MonotonicInstant) -> bool {
        [self.run, self.window].into_iter().flatten().any(|deadline| deadline.is_due(now))
    }
}

/// What is remembered of a session, so that a restarted daemon goes on with it (S9.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its name.
    pub session_id: SessionId,
    /// Of which entry.
    pub entry_id: EntryId,
    /// What it is called.
    pub label: String,
    /// Whose time it is.
    pub profile: ProfileId,
    /// When it was approved, by the wall clock.
    pub started_at: Timestamp,
    /// The time that counted when it was planned, or when other rules came: what began to hold until then is settled.
    pub judged_at: Timestamp,
    /// The boot whose clock the rest is on.
    pub boot: BootId,
    /// When it was approved.
    pub started: MonotonicInstant,
    /// When it ends.
    pub ends: SessionDeadlines,
    /// Warnings that are still to come, in order.
    pub warnings: Vec<ScheduledWarning>,
    /// Thresholds of the warnings that were given, so that none comes twice even if the end moves.
    pub given: Vec<Duration>,
    /// How far grants have moved its ends, so that exactly that can be taken back.
    pub extensions: Vec<SessionExtension>,
    /// Up to here its time has been charged.
    pub charged_to: MonotonicInstant,
    /// The day that it was charged to last.
    pub charged_day: Day,
    /// How much it has been charged with.
    pub charged: Duration,
    /// Time in a row before it, for the rule about breaks.
    #[serde(default)]
    pub in_a_row: Duration,
    /// Where it is.
    pub stage: SessionStage,
    /// How long the program may take to end after it was asked to.
    pub stop_grace: Duration,
    /// Counters besides the entry's own that its time is charged to.
    pub budgets: Vec<shepherd_util::BudgetId>,
    /// Whether its time counts against quotas.
    pub free: bool,
    /// The pause after it.
    pub cooldown: Duration,
}

/// How far a grant has moved the ends of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionExtension {
    /// Which grant.
    pub grant_id: GrantId,
    /// By how much the run got longer.
    pub run: Duration,
    /// By how much the window got longer.
    pub window: Duration,
}

/// Where a session is (S3.6). `Ended` is not here: an ended session is no longer remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionStage {
    /// Approved; the program is being started.
    Launching,
    /// Stopped before its program came up: should it still come up, it is ended at once.
    Withdrawn {
        /// Why it will have ended.
        reason: EndReason,
    },
    /// The program runs.
    Running {
        /// What the host needs to find the program again; opaque to us.
        host_session_handle: String,
        /// `Warned`, and how loudly at most.
        #[serde(default)]
        warned: Option<WarningSeverity>,
    },
    /// The program is being ended.
    Expiring {
        /// What the host needs to find the program again.
        host_session_handle: String,
        /// Why it will have ended.
        reason: EndReason,
        /// When it was first asked to.
        #[serde(default = "long_ago")]
        called: MonotonicInstant,
    },
}

/// Whoever has forgotten when an end was called gives no more time.
fn long_ago() -> MonotonicInstant {
    MonotonicInstant::BOOT
}

impl SessionRecord {
    /// How long its program may still take to end. It is asked once: who asks again, or comes back to it after a
    /// crash, gives it what is left.
    #[must_use]
    pub fn grace_left(&self, now: MonotonicInstant) -> Duration {
        match self.stage {
            SessionStage::Expiring { called, .. } => self.stop_grace.saturating_sub(now.awake_since(called)),
            SessionStage::Launching | SessionStage::Withdrawn { .. } | SessionStage::Running { .. } => {
                self.stop_grace
            }
        }
    }
}

impl SessionStage {
    /// What the host needs to find the program again, once there is one.
    #[must_use]
    pub fn host_session_handle(&self) -> Option<&str> {
        match self {
            Self::Launching | Self::Withdrawn { .. } => None,
            Self::Running { host_session_handle, .. } | Self::Expiring { host_session_handle, .. } => {
                Some(host_session_handle)
            }
        }
    }

    /// Why it will have ended, once that is settled.
    #[must_use]
    pub fn end_reason(&self) -> Option<&EndReason> {
        match self {
            Self::Launching | Self::Running { .. } => None,
            Self::Withdrawn { reason } | Self::Expiring { reason, .. } => Some(reason),
        }
    }

    /// Whether there is, or was, a program: what has not been started costs nothing.
    pub(crate) fn has_program(&self) -> bool {
        self.host_session_handle().is_some()
    }

    /// The end has been called. The first reason and the first call stay.
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

    /// A warning was given.
    pub(crate) fn record_warning(&mut self, severity: WarningSeverity) {
        if let Self::Running { warned, .. } = self {
            *warned = (*warned).max(Some(severity));
        }
    }

    /// The clock of the boot in which the end was called is gone.
    pub(crate) fn restart_grace(&mut self, now: MonotonicInstant) {
        if let Self::Expiring { called, .. } = self {
            *called = now;
        }
    }

    /// The program has come up.
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
