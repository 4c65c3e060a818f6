//! What a command did that could not be recorded is undone: what is not on record was not given (S8.2). What takes
//! something away stays taken.

use shepherd_api::TimeRequestState;
use shepherd_util::{ClockReading, GrantId, RequestId, SessionId};

use super::{CoreEngine, CoreEvent, NextChange, POLICY_ACTOR};
use crate::policy::ModeName;
use crate::state::ClockRecord;

/// What there is to undo about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoAction {
    /// Nothing: it gave nothing.
    Nothing,
    /// A launch was approved.
    Launch(SessionId),
    /// Something was given.
    Grant(GrantId),
    /// A request was answered with a grant.
    RequestAnswer {
        /// Which request.
        request_id: RequestId,
        /// How it stood before.
        before: TimeRequestState,
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
    pub fn undo(&mut self, undo: &UndoAction, detail: &str, now: ClockReading) -> Vec<CoreEvent> {
        match undo {
            UndoAction::Nothing => Vec::new(),
            UndoAction::Launch(session_id) => {
                self.launch_failed(session_id, format!("it could not be recorded: {detail}"), now)
            }
            UndoAction::Grant(grant_id) => self.revoke(grant_id, POLICY_ACTOR, now).unwrap_or_default(),
            UndoAction::RequestAnswer { request_id, before, grant_id } => {
                let events = self.revoke(grant_id, POLICY_ACTOR, now).unwrap_or_default();
                self.set_request_state(request_id, before.clone(), "open again", POLICY_ACTOR, now);
                events
            }
            UndoAction::Mode(mode) => self.set_mode(mode.clone(), POLICY_ACTOR, now),
            UndoAction::Clock(before) => self.restore_clock(before, now),
        }
    }

    fn restore_clock(&mut self, before: &ClockRecord, now: ClockReading) -> Vec<CoreEvent> {
        let clock = &mut self.snapshot.clock;
        clock.latest_seen = clock.latest_seen.max(before.latest_seen);
        clock.accounting_day = clock.accounting_day.max(before.accounting_day);
        clock.held_until = clock.held_until.max(before.held_until);
        self.anchor = None;
        self.next_change = NextChange::Unknown;
        self.observe(now);
        self.save_snapshot();
        vec![CoreEvent::EntryAvailabilityChanged]
    }
}
