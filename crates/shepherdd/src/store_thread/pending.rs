//! The writes that wait for the store.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditEvent, AuditKind};
use shepherd_core::{EngineSnapshot, PauseEnd, SessionRecord, StoreWrite, UsageKey};
use shepherd_store::{AuditEventError, Store, StoreError};
use shepherd_util::{EntryId, ProfileId, SessionId};

use super::BatchWaiter;

/// The number of audit events that wait for a broken disk: more than a day's worth. Further events are dropped,
/// refusals first, and counted.
const MAX_PENDING_LINES: usize = 100_000;

const DAEMON_ACTOR: &str = "shepherdd";

/// Writes that were not tried yet. Except for audit events, only the latest write about each thing is kept.
#[derive(Default)]
pub(super) struct PendingBatch {
    /// The number of the last batch; 0 if there is none.
    up_to: u64,
    usage: BTreeMap<UsageKey, Duration>,
    cooldowns: BTreeMap<(ProfileId, EntryId), PauseEnd>,
    /// The sessions that change, each with its new record; `None` removes it.
    sessions: BTreeMap<SessionId, Option<Box<SessionRecord>>>,
    snapshot: Option<Box<EngineSnapshot>>,
    lines: Vec<AuditEvent>,
    /// The number of dropped audit events.
    dropped_lines: usize,
    /// True if the loop wants a report.
    is_awaited: bool,
}

/// A batch that was given to the store. Until it is known to be there, it is given again unchanged: a batch that failed
/// may be on disk as a whole, so nothing may be added to it or removed from it.
pub(super) struct BatchAttempt {
    pub(super) up_to: u64,
    pub(super) writes: Vec<StoreWrite>,
    pub(super) is_awaited: bool,
    /// The number of batches in the store before it.
    pub(super) generation: u64,
}

impl PendingBatch {
    pub(super) fn add(&mut self, batch: u64, writes: Vec<StoreWrite>, awaited: BatchWaiter) {
        self.up_to = batch;
        self.is_awaited |= awaited == BatchWaiter::EventLoop;
        self.drop_excess_lines();
        for write in writes {
            match write {
                StoreWrite::AddUsage { key, amount } => {
                    let sum = self.usage.entry(key).or_default();
                    *sum = sum.saturating_add(amount);
                }
                StoreWrite::SetCooldown { profile, entry_id, until } => {
                    self.cooldowns.insert((profile, entry_id), until);
                }
                StoreWrite::SaveSession(session) => {
                    self.sessions.insert(session.session_id.clone(), Some(session));
                }
                StoreWrite::DeleteSession(session_id) => drop(self.sessions.insert(session_id, None)),
                StoreWrite::SaveSnapshot(snapshot) => self.snapshot = Some(snapshot),
                StoreWrite::AppendAudit(line) => self.lines.push(*line),
            }
        }
    }

    /// Adds later writes.
    pub(super) fn absorb(&mut self, later: Self) {
        let Self { up_to, usage, cooldowns, sessions, snapshot, lines, dropped_lines: left_out, is_awaited } =
            later;
        self.up_to = up_to;
        self.is_awaited |= is_awaited;
        for (key, amount) in usage {
            let sum = self.usage.entry(key).or_default();
            *sum = sum.saturating_add(amount);
        }
        self.cooldowns.extend(cooldowns);
        self.sessions.extend(sessions);
        self.snapshot = snapshot.or_else(|| self.snapshot.take());
        self.drop_excess_lines();
        self.lines.extend(lines);
        self.dropped_lines += left_out;
    }

    fn drop_excess_lines(&mut self) {
        for is_left_out in [is_refusal, any_line] {
            if self.lines.len() >= MAX_PENDING_LINES {
                let before = self.lines.len();
                self.lines.retain(|line| !is_left_out(line));
                self.dropped_lines += before - self.lines.len();
            }
        }
    }

    pub(super) fn up_to(&self) -> u64 {
        self.up_to
    }

    pub(super) fn is_empty(&self) -> bool {
        self.up_to == 0
    }

    pub(super) fn write_count(&self) -> usize {
        self.usage.len()
            + self.cooldowns.len()
            + self.sessions.len()
            + usize::from(self.snapshot.is_some())
            + self.lines.len()
    }

    /// Requests a report for the pending writes.
    pub(super) fn set_awaited(&mut self) {
        self.is_awaited = true;
    }

    /// Takes all writes, for a store that holds this many batches.
    pub(super) fn take_attempt(&mut self, generation: u64) -> Option<BatchAttempt> {
        if self.is_empty() {
            return None;
        }
        let Self {
            up_to,
            usage,
            cooldowns,
            sessions,
            snapshot,
            mut lines,
            dropped_lines: left_out,
            is_awaited,
        } = std::mem::take(self);
        if left_out > 0 {
            let at = lines.last().map_or_else(Timestamp::now, |line| line.at);
            lines.push(audit_note(
                at,
                format!("{left_out} events were dropped here, because too many waited for the disk"),
            ));
        }
        let usage = usage.into_iter().map(|(key, amount)| StoreWrite::AddUsage { key, amount });
        let cooldowns = cooldowns.into_iter().map(|((profile, entry_id), until)| StoreWrite::SetCooldown {
            profile,
            entry_id,
            until,
        });
        let lines = lines.into_iter().map(|line| StoreWrite::AppendAudit(Box::new(line)));
        let sessions = sessions.into_iter().map(|(session_id, session)| match session {
            Some(session) => StoreWrite::SaveSession(session),
            None => StoreWrite::DeleteSession(session_id),
        });
        let writes =
            usage.chain(cooldowns).chain(sessions).chain(snapshot.map(StoreWrite::SaveSnapshot)).chain(lines);
        Some(BatchAttempt { up_to, writes: writes.collect(), is_awaited, generation })
    }
}

impl BatchAttempt {
    /// Gives the batch to a store. An event that no log can take is refused before anything is written; a note replaces
    /// it, or it would be retried for ever, and everything behind it would wait.
    pub(super) fn apply_to(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        for _ in 0..self.writes.len() {
            match store.apply(&self.writes) {
                Err(StoreError::Event { index, source }) => self.replace_line(index, &source),
                done => return done,
            }
        }
        store.apply(&self.writes)
    }

    fn replace_line(&mut self, index: usize, why: &AuditEventError) {
        tracing::error!(%why, "could not write an event to the audit log");
        let mut lines = self.writes.iter_mut().filter_map(|write| match write {
            StoreWrite::AppendAudit(line) => Some(line),
            StoreWrite::AddUsage { .. }
            | StoreWrite::SetCooldown { .. }
            | StoreWrite::SaveSession(_)
            | StoreWrite::DeleteSession(_)
            | StoreWrite::SaveSnapshot(_) => None,
        });
        if let Some(line) = lines.nth(index) {
            **line = audit_note(line.at, format!("an event of this time could not be written: {why}"));
        }
    }
}

fn audit_note(at: Timestamp, text: String) -> AuditEvent {
    AuditEvent { at, actor: DAEMON_ACTOR.to_owned(), what: AuditKind::Note { text } }
}

/// Returns whether an event is a refusal, which any client can cause.
fn is_refusal(line: &AuditEvent) -> bool {
    matches!(line.what, AuditKind::LaunchDenied { .. } | AuditKind::CommandRefused { .. })
}

fn any_line(_: &AuditEvent) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: AuditKind) -> StoreWrite {
        StoreWrite::AppendAudit(Box::new(AuditEvent {
            at: Timestamp::UNIX_EPOCH,
            actor: String::new(),
            what,
        }))
    }

    fn refusal() -> StoreWrite {
        line(AuditKind::CommandRefused { command: String::new(), reason: String::new() })
    }

    fn note_write(text: &str) -> StoreWrite {
        line(AuditKind::Note { text: text.to_owned() })
    }

    /// Refusals can displace nothing but other refusals.
    #[test]
    fn refusals_are_dropped_first_and_dropped_events_are_counted() {
        let mut waiting = PendingBatch::default();
        let mut add = |lines: Vec<StoreWrite>| {
            waiting.add(1, lines, BatchWaiter::Nobody);
            waiting.lines.len()
        };
        assert_eq!(add(vec![note_write("kept")]), 1);
        assert_eq!(add(vec![refusal(); MAX_PENDING_LINES]), MAX_PENDING_LINES + 1);
        assert_eq!(add(vec![note_write("kept too")]), 2);
        assert_eq!(add(vec![note_write("much"); MAX_PENDING_LINES]), MAX_PENDING_LINES + 2);
        assert_eq!(add(vec![note_write("last")]), 1);
        let note = format!(
            "{} events were dropped here, because too many waited for the disk",
            2 * MAX_PENDING_LINES + 2
        );
        let note = StoreWrite::AppendAudit(Box::new(audit_note(Timestamp::UNIX_EPOCH, note)));
        assert_eq!(waiting.take_attempt(0).unwrap().writes, [note_write("last"), note]);
    }
}
