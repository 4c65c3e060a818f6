//! What a command did that could not be recorded is undone: what is not on record was not given (S8.2). What takes
//! something away stays taken.

use shepherd_api::RequestState;
use shepherd_util::{GrantId, Now, RequestId, SessionId};

use super::{CoreEngine, CoreEvent, NextChange, POLICY};
use crate::policy::ModeName;
use crate::state::ClockRecord;

/// What there is to undo about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Nothing: it gave nothing.
    Nothing,
    /// A launch was approved.
    Launch(SessionId),
    /// Something was given.
    Grant(GrantId),
    /// A request was answered with a grant.
    Answer {
        /// Which request.
        request_id: RequestId,
        /// How it stood before.
        before: RequestState,
        /// The grant.
        grant_id: GrantId,
    },
    /// Another mode was chosen; this was the choice before.
    Mode(Option<ModeName>),
    /// The clock was vouched for; this was known of it before.
    Clock(Box<ClockRecord>),
}

impl CoreEngine {
    /// Undoes what could not be recorded. Of several commands, the last one first.
    pub fn undo(&mut self, undo: &Undo, detail: &str, now: Now) -> Vec<CoreEvent> {
        match undo {
            Undo::Nothing => Vec::new(),
            Undo::Launch(session_id) => {
                self.launch_failed(session_id, format!("it could not be recorded: {detail}"), now)
            }
            Undo::Grant(grant_id) => self.revoke(grant_id, POLICY, now).unwrap_or_default(),
            Undo::Answer { request_id, before, grant_id } => {
                let events = self.revoke(grant_id, POLICY, now).unwrap_or_default();
                self.decide(request_id, before.clone(), "open again", POLICY, now);
                events
            }
            Undo::Mode(mode) => self.choose_mode(mode.clone(), POLICY, now),
            Undo::Clock(before) => self.distrust_clock(before, now),
        }
    }

    fn distrust_clock(&mut self, before: &ClockRecord, now: Now) -> Vec<CoreEvent> {
        let clock = &mut self.snapshot.clock;
        clock.latest_seen = clock.latest_seen.max(before.latest_seen);
        clock.accounting_day = clock.accounting_day.max(before.accounting_day);
        clock.held_until = clock.held_until.max(before.held_until);
        self.anchor = None;
        self.next_change = NextChange::Unknown;
        self.observe(now);
        self.save();
        vec![CoreEvent::EntryAvailabilityChanged]
    }
}
