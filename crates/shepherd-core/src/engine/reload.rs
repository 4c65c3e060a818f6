//! Another policy (S7.3): whole, or not at all.

use shepherd_api::AuditKind;
use shepherd_util::Now;

use super::CoreEngine;
use super::run::CoreEvent;
use crate::judge::Nobody;
use crate::policy::{OnReload, Policy};
use crate::session::Stage;

impl CoreEngine {
    /// Another policy applies from now on. A running session keeps its plan, unless the new policy says otherwise,
    /// and then its end can only come nearer.
    pub fn reload(
        &mut self,
        policy: Policy,
        digest: Option<String>,
        actor: &str,
        now: Now,
    ) -> Vec<CoreEvent> {
        self.observe(now);
        self.charge(now);
        self.policy = policy;
        self.next_opening_or_closing = None;
        if self.snapshot.mode.as_ref().is_some_and(|mode| !self.policy.rules().modes.names.contains(mode)) {
            self.snapshot.mode = None;
        }
        let entry_count = self.policy.entries().len();
        self.audit(now, actor, AuditKind::PolicyLoaded { entry_count, digest });
        let mut events = vec![CoreEvent::PolicyReloaded { entry_count }, CoreEvent::EntryAvailabilityChanged];
        if self.policy.rules().on_reload == OnReload::Replan {
            events.extend(self.replan_after_reload(now));
        }
        self.save();
        events
    }

    /// A policy that was refused leaves a trace, and nothing else.
    pub fn reload_failed(&mut self, faults: Vec<String>, actor: &str, now: Now) {
        self.observe(now);
        self.audit(now, actor, AuditKind::PolicyRejected { faults });
    }

    fn replan_after_reload(&mut self, now: Now) -> Option<CoreEvent> {
        let session = self.snapshot.session.as_ref().filter(|session| session.stage == Stage::Running)?;
        let at = self.moment(now);
        let ends = match self.policy.entry(&session.entry_id) {
            Some(entry) => {
                let finding = self.facts(at).judge(&session.profile, entry, at, &mut Nobody);
                let mut ends = self.ends(&finding, now);
                let shut = |reason: &shepherd_api::ReasonCode| {
                    !matches!(
                        reason,
                        shepherd_api::ReasonCode::SessionActive { .. }
                            | shepherd_api::ReasonCode::Cooldown { .. }
                            | shepherd_api::ReasonCode::ClockUntrusted { .. }
                            | shepherd_api::ReasonCode::StoreUnavailable { .. }
                    )
                };
                if finding.reasons.iter().any(shut) {
                    ends.run = Some(shepherd_util::Deadline::after(
                        now.mono,
                        std::time::Duration::ZERO,
                        self.counting(),
                    ));
                }
                // What it has run already counts against the new longest run.
                if let (Some(max_run), Some(run)) = (entry.limits.max_run, &mut ends.run) {
                    let left = max_run.saturating_sub(session.charged);
                    if left < run.remaining(now.mono) {
                        *run = shepherd_util::Deadline::after(now.mono, left, self.counting());
                    }
                }
                ends
            }
            None => return None,
        };
        let session = self.snapshot.session.as_mut()?;
        let before = session.ends.remaining(now.mono);
        session.ends.run = sooner(session.ends.run, ends.run, now);
        session.ends.window = sooner(session.ends.window, ends.window, now);
        let remaining = session.ends.remaining(now.mono);
        let session_id = session.session_id.clone();
        if remaining == before {
            return None;
        }
        self.audit(
            now,
            super::POLICY,
            AuditKind::DeadlineChanged {
                session_id: session_id.clone(),
                remaining: remaining.map(Into::into),
            },
        );
        Some(CoreEvent::DeadlineChanged { session_id, remaining })
    }
}

fn sooner(
    old: Option<shepherd_util::Deadline>,
    new: Option<shepherd_util::Deadline>,
    now: Now,
) -> Option<shepherd_util::Deadline> {
    match (old, new) {
        (Some(old), Some(new)) => {
            Some(if new.remaining(now.mono) < old.remaining(now.mono) { new } else { old })
        }
        (old, new) => old.or(new),
    }
}
