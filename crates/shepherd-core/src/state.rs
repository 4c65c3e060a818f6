//! The state that outlives the daemon. An engine is built from a [`StoredState`], keeps all of it in memory and never
//! asks the store; every change leaves the engine as [`StoreWrite`]s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shepherd_api::{AuditEvent, GrantView, TimeRequestView};
use shepherd_util::{BootId, BootInstant, BudgetId, ClockReading, EntryId, GrantId, ProfileId, SessionId};

use crate::policy::{Day, ModeName};
use crate::session::SessionRecord;

/// The counter that usage is charged to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageCounter {
    Entry(EntryId),
    Budget(BudgetId),
}

/// The key of stored usage: a counter of a profile on an accounting day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UsageKey {
    pub profile: ProfileId,
    pub counter: UsageCounter,
    pub day: Day,
}

/// The end of a pause, on both clocks. While the boot lasts, no change of the wall clock brings it nearer; after a
/// reboot only the wall clock is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseEnd {
    pub wall: Timestamp,
    pub boot: BootInstant,
}

/// Everything that the store holds for the engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredState {
    pub usage: BTreeMap<UsageKey, Duration>,
    /// Pauses after a run.
    pub cooldowns: BTreeMap<(ProfileId, EntryId), PauseEnd>,
    pub sessions: BTreeMap<SessionId, SessionRecord>,
    pub snapshot: EngineSnapshot,
    /// The last heartbeat while a session ran, if it can be read.
    pub heartbeat: Option<DaemonHeartbeat>,
}

/// The interval at which a [`DaemonHeartbeat`] is made durable while there is a session, from launch to end. A power
/// cut costs the child at most this interval and the time of a disk write, and never gains the child time.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// A heartbeat: the daemon and its session were alive at this moment. Usage up to then is computed from it after a
/// crash, so only the thread that writes it has to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonHeartbeat {
    pub boot: BootId,
    pub at: ClockReading,
}

/// The part of the stored state that is small and written as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineSnapshot {
    pub clock: ClockRecord,
    /// The mode that a person chose; `None` lets the calendar decide.
    pub mode: Option<ModeName>,
    /// Grants, including those that lapsed or were revoked recently.
    pub grants: Vec<GrantView>,
    /// Time requests, including those that were answered recently.
    pub requests: Vec<TimeRequestView>,
    pub streaks: BTreeMap<ProfileId, PlayStreak>,
    /// The extra run time of grants that runs have used up.
    pub extra_runs: Vec<ExtraRunUse>,
    /// The number of crashes in a row that caused no cooldown, by profile and entry.
    pub crashes: BTreeMap<ProfileId, BTreeMap<EntryId, u32>>,
    /// The last correction of the clock to an earlier day.
    pub clock_correction: Option<ClockCorrection>,
}

/// The part of a grant's extra time that made runs of a profile longer on a day. A grant gives its time once a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraRunUse {
    pub grant_id: GrantId,
    pub profile: ProfileId,
    pub day: Day,
    pub used: Duration,
}

/// The facts about the clock that are kept to notice when it is set back (S4.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockRecord {
    /// The latest time ever seen.
    pub latest_seen: Option<Timestamp>,
    /// The monotonic moment at which `latest_seen` was seen. While that boot lasts, time continues from there.
    pub seen_at: Option<BootInstant>,
    /// The day that usage is charged to; it never goes back by itself.
    pub accounting_day: Option<Day>,
    /// The latest time that the system's time synchronisation has confirmed.
    pub synchronised: Option<Timestamp>,
    /// The monotonic moment of `synchronised`. While that boot lasts, a time source that has lost time since isn't
    /// trusted.
    pub synchronised_at: Option<BootInstant>,
}

impl ClockRecord {
    /// Returns the latest effective time on both clocks, if it was seen in this boot.
    pub(crate) fn latest_in_boot(&self, boot: BootId) -> Option<ClockReading> {
        let mono = self.seen_at?.during(boot)?;
        self.latest_seen.map(|wall| ClockReading { wall, mono })
    }
}

/// A correction of the clock to an earlier day: a person or the time synchronisation confirmed the clock while it was
/// behind. It shows which usage was charged to two days, because either day may be the real one (S4.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCorrection {
    /// The accounting day before the correction, and those before earlier corrections, unless the clock has reached them.
    #[serde(default)]
    pub last_days: BTreeSet<Day>,
    /// The part of the usage of later days that is charged to another day as well.
    pub charged_twice: Vec<UsageAmount>,
    /// Recent usage since the correction, as long as there are `last_days`.
    pub used_since: Vec<UsageAmount>,
}

/// Usage of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageAmount {
    pub key: UsageKey,
    pub amount: Duration,
}

/// The time that a profile has played in a row, for the break rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayStreak {
    pub played: Duration,
    /// The end of the break that would end the streak, counted from the end of the last session.
    pub rested: PauseEnd,
}

/// A durable change. The writes of one [`Effect::Persist`](crate::Effect::Persist) belong together: all or none.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreWrite {
    /// Adds to the stored usage of a key.
    AddUsage { key: UsageKey, amount: Duration },
    /// Stores the pause after a run.
    SetCooldown { profile: ProfileId, entry_id: EntryId, until: PauseEnd },
    /// Stores a session, or replaces its record.
    SaveSession(Box<SessionRecord>),
    /// Removes a session that is over.
    DeleteSession(SessionId),
    /// Replaces the stored snapshot.
    SaveSnapshot(Box<EngineSnapshot>),
    /// Appends a line to the audit log.
    AppendAudit(Box<AuditEvent>),
}
