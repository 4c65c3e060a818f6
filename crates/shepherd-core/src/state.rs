//! What outlives the daemon: the engine is made from it, and says what has to be written of it.
//!
//! The engine keeps all of this in memory and never asks the store. Every change leaves it as a [`StoreWrite`];
//! whoever runs the engine makes the writes durable *before* acting on what the engine said.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shepherd_api::{AuditEvent, GrantView, TimeRequestView};
use shepherd_util::{BootId, BootInstant, BudgetId, ClockReading, EntryId, ProfileId};

use crate::policy::{Day, ModeName};
use crate::session::SessionRecord;

/// What use is counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageCounter {
    /// One entry.
    Entry(EntryId),
    /// A budget.
    Budget(BudgetId),
}

/// Use of a counter by a profile on a day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UsageKey {
    /// Whose.
    pub profile: ProfileId,
    /// Of what.
    pub counter: UsageCounter,
    /// On which accounting day.
    pub day: Day,
}

/// A moment that no change of the wall clock brings nearer while its boot lasts. After a reboot only the wall clock is
/// left to go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseEnd {
    /// By the wall clock.
    pub wall: Timestamp,
    /// By the clock of the boot in which it was set.
    pub boot: BootInstant,
}

/// Everything that the store holds for the engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredState {
    /// Use by key.
    pub usage: BTreeMap<UsageKey, Duration>,
    /// Pauses after a run.
    pub cooldowns: BTreeMap<(ProfileId, EntryId), PauseEnd>,
    /// The rest.
    pub snapshot: EngineSnapshot,
    /// The last sign of life while a session ran, if one can be read.
    pub heartbeat: Option<DaemonHeartbeat>,
}

/// How often a [`DaemonHeartbeat`] has to be made durable while there is a session, from its launch to its end. A power cut costs
/// the child at most this and what a disk takes to write it, and never wins it anything.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// A sign of life: the daemon was there at this moment, and so was whatever it had in hand. It says nothing else,
/// because what follows from it can be worked out; so nobody but whoever writes it has to wake up for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonHeartbeat {
    /// In which boot.
    pub boot: BootId,
    /// When.
    pub at: ClockReading,
}

/// The rest of what outlives the daemon: small, and written as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineSnapshot {
    /// The session, if there is one.
    pub session: Option<SessionRecord>,
    /// What is known of the clock.
    pub clock: ClockRecord,
    /// The mode that somebody chose; `NotRequested` lets the calendar decide.
    pub mode: Option<ModeName>,
    /// Extra time and longer windows, and for a while those that have lapsed or were taken back.
    pub grants: Vec<GrantView>,
    /// What children asked for, and for a while how it was answered.
    pub requests: Vec<TimeRequestView>,
    /// Time in a row, by profile.
    pub streaks: BTreeMap<ProfileId, PlayStreak>,
}

/// What is known of the clock (S4.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockRecord {
    /// The latest time ever seen.
    pub latest_seen: Option<Timestamp>,
    /// When that was, by the clock that nobody can set: while its boot lasts, the time goes on from there.
    pub seen_at: Option<BootInstant>,
    /// The day that use is charged to; it never goes back by itself.
    pub accounting_day: Option<Day>,
    /// The zone in which it was seen, and its offset in seconds at that time.
    pub zone: Option<(String, i64)>,
    /// A change of the zone has put the wall back: until it shows as late as before, nothing is opened again.
    pub held_until: Option<Timestamp>,
}

impl ClockRecord {
    /// The latest time that counted, on both clocks, if that was in this boot.
    pub(crate) fn latest_in_boot(&self, boot: BootId) -> Option<ClockReading> {
        let mono = self.seen_at?.during(boot)?;
        self.latest_seen.map(|wall| ClockReading { wall, mono })
    }
}

/// Time in a row, for the rule about breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayStreak {
    /// How much.
    pub played: Duration,
    /// When the break that ends it would be over, counted from the last end of a session.
    pub rested: PauseEnd,
}

/// One durable change. Those of one step belong together: all or none.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreWrite {
    /// More use.
    AddUsage {
        /// Under which key.
        key: UsageKey,
        /// How much more.
        amount: Duration,
    },
    /// A pause after a run.
    SetCooldown {
        /// Whose.
        profile: ProfileId,
        /// Of which entry.
        entry_id: EntryId,
        /// Until when.
        until: PauseEnd,
    },
    /// The rest, as a whole.
    SaveSnapshot(Box<EngineSnapshot>),
    /// A line for the audit log.
    AppendAudit(Box<AuditEvent>),
}
