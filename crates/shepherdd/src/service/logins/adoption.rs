//! Logins as sessions: a login that begins is adopted, counts while it is in use, and ends with its last terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shepherd_api::{SessionCounting, StopMode, StopRequester};
use shepherd_core::policy::{LoginCounting, LoginEnd, LoginPolicy, PolicyEntry, TerminalState};
use shepherd_core::{AdoptionDecision, AdoptionRequest, EngineReply, ExitInfo, SessionRecord, StopRequest};
use shepherd_host_api::{HostStopRequest, LoginStopRequest, LoginTerminal};
use shepherd_util::{ClockReading, ProfileId, SessionId};

use super::{LOGIN_ACTOR, account_of};
use crate::service::DaemonService;
use crate::service::requests::random_id_bits;

/// The text by which a later daemon recognises the session of a login. It finds the login by its account.
const LOGIN_HANDLE: &str = "login";

impl DaemonService {
    /// Looks at the logins again, because rules or time have changed. While logind can't be asked, the last list may name
    /// logins that are over, and no login is allowed: each would be ended again and again. The next list brings them back.
    pub(in crate::service) fn check_logins(&mut self, now: ClockReading) {
        if self.logins.fault.is_some() {
            return;
        }
        if let Some(known) = self.logins.terminals.clone() {
            self.update_logins(Some(&known), now);
        }
    }

    /// Adopts logins that began, ends the sessions of those that ended, and sets how the others count. A login that the
    /// rules don't allow is ended: at once if it began against the rules, because PAM was bypassed; one that was there
    /// before this daemon or these rules gets its time to save.
    pub(super) fn update_logins(&mut self, before: Option<&[LoginTerminal]>, now: ClockReading) {
        let Some(terminals) = self.logins.terminals.clone() else { return };
        let sessions = self.engine.sessions().iter().filter_map(account_of);
        let accounts: BTreeSet<u32> = terminals.iter().map(|login| login.uid).chain(sessions).collect();
        for uid in accounts.difference(&self.logins.ending.clone()).copied() {
            let is_own = |login: &&LoginTerminal| login.uid == uid;
            let own: Vec<LoginTerminal> = terminals.iter().filter(is_own).cloned().collect();
            let known = before.map(|before| before.iter().filter(is_own).cloned().collect::<Vec<_>>());
            match self.engine.login_session(&uid.to_string()) {
                Some(_) if own.is_empty() => self.end_login_session(uid, now),
                Some(_) => self.require_real_lock(uid, &own, known.as_deref().unwrap_or_default()),
                None => self.adopt_login(uid, &own, known.as_deref(), now),
            }
        }
        self.update_counting(now);
    }

    fn adopt_login(
        &mut self,
        uid: u32,
        own: &[LoginTerminal],
        known: Option<&[LoginTerminal]>,
        now: ClockReading,
    ) {
        let Some(profile) = self.limited_profile(uid, None) else { return };
        let Some(entry) = self.engine.policy().login_entry(&profile).cloned() else { return };
        let end = entry.run.login.end;
        // A screen that was locked at the end of a login needs nothing.
        let is_in_use = |login: &LoginTerminal| end == LoginEnd::Terminate || !login.state.locked;
        if !own.iter().any(is_in_use) {
            return;
        }
        let request = AdoptionRequest {
            entry_id: entry.entry_id.clone(),
            profile,
            account: uid.to_string(),
            session_id: SessionId::from_random(random_id_bits()),
            host_session_handle: LOGIN_HANDLE.to_owned(),
            actor: format!("{LOGIN_ACTOR} uid {uid}"),
        };
        let EngineReply { answer, effects } = self.engine.adopt_session(&request, now);
        self.carry_out(effects, now);
        match answer {
            AdoptionDecision::Adopted(plan) => {
                tracing::info!(uid, session_id = %plan.session_id, "a login was adopted");
            }
            AdoptionDecision::Denied { reasons } => {
                tracing::info!(uid, ?reasons, "ending a login that isn't allowed now");
                let was_there = known.is_none_or(|known| known.iter().any(is_in_use));
                let grace = if was_there { self.login_grace(&entry) } else { Duration::ZERO };
                self.stop_login(uid, grace, end);
            }
        }
    }

    fn login_grace(&self, entry: &PolicyEntry) -> Duration {
        entry.run.stop_grace.unwrap_or(self.engine.policy().rules().stop_grace)
    }

    /// Stops the program of a session, or ends the login that a session stands for.
    pub(in crate::service) fn stop_session_program(&mut self, session_id: SessionId, grace: Duration) {
        let session = self.engine.sessions().get(&session_id);
        match session.and_then(|session| Some((account_of(session)?, self.login_policy(session)))) {
            Some((uid, login)) => self.stop_login(uid, grace, login.end),
            None => self.host.stop(HostStopRequest { session_id, grace }),
        }
    }

    fn stop_login(&mut self, uid: u32, grace: Duration, end: LoginEnd) {
        self.logins.ending.insert(uid);
        self.logins.monitor.stop(LoginStopRequest { uid, grace, end });
    }

    /// Reports that a login was ended, and stops what Shepherd itself runs for the account, because its desktop is gone. A
    /// login that was ended because it began against the rules has no session, and no say over these programs.
    pub(super) fn finish_login(&mut self, uid: u32, now: ClockReading) {
        let session = self.engine.login_session(&uid.to_string());
        let end = session.map(|session| self.login_policy(session).end);
        self.end_login_session(uid, now);
        if end == Some(LoginEnd::Terminate) {
            self.stop_programs_of(uid, now);
        }
    }

    fn stop_programs_of(&mut self, uid: u32, now: ClockReading) {
        let Some(name) = self.logins.names.get(&uid) else { return };
        if !self.engine.capabilities().can_switch_user {
            return;
        }
        let policy = self.engine.policy();
        let runs_as = |session: &SessionRecord| {
            let entry = policy.entry(&session.entry_id).filter(|entry| !entry.kind.is_login())?;
            policy.system_account(entry, &session.profile)
        };
        let sessions = self.engine.sessions().iter().filter(|session| runs_as(session) == Some(name));
        let programs: Vec<SessionId> = sessions.map(|session| session.session_id.clone()).collect();
        let (by, mode) = (StopRequester::Policy, StopMode::Force);
        let request = StopRequest { by, mode, actor: format!("{LOGIN_ACTOR} uid {uid}") };
        for session_id in programs {
            let outcome = self.engine.stop_session(&session_id, &request, now);
            self.carry_out(outcome.effects, now);
        }
    }

    /// Reports the end of a login to the engine, if there is a session for it.
    pub(super) fn end_login_session(&mut self, uid: u32, now: ClockReading) {
        let Some(session) = self.engine.login_session(&uid.to_string()) else { return };
        let exit = ExitInfo { session_id: session.session_id.clone(), code: None, signal: None };
        self.handle_session_exit(&exit, now);
    }

    /// Returns the settings of a login, or the defaults if the policy no longer has its entry.
    fn login_policy(&self, session: &SessionRecord) -> LoginPolicy {
        let entry = self.engine.policy().entry(&session.entry_id);
        entry.map(|entry| entry.run.login).unwrap_or_default()
    }

    /// Sets how each session counts, by the terminals of its account or profile.
    pub(in crate::service) fn update_counting(&mut self, now: ClockReading) {
        let Some(terminals) = &self.logins.terminals else { return };
        let mut of_profiles: BTreeMap<ProfileId, Vec<TerminalState>> = BTreeMap::new();
        for login in terminals {
            if let Some(profile) = self.profile_of_account(login.uid) {
                of_profiles.entry(profile).or_default().push(login.state);
            }
        }
        let counting = |session: &SessionRecord| match account_of(session) {
            Some(uid) => {
                let own = terminals.iter().filter(|login| login.uid == uid).map(|login| login.state);
                login_counting(self.login_policy(session), own)
            }
            None => program_counting(of_profiles.get(&session.profile).map_or(&[], Vec::as_slice)),
        };
        let sessions = self.engine.sessions().iter();
        let changes: Vec<(SessionId, SessionCounting)> =
            sessions.map(|session| (session.session_id.clone(), counting(session))).collect();
        for (session_id, counting) in changes {
            let effects = self.engine.set_counting(&session_id, counting, now);
            self.carry_out(effects, now);
        }
    }

    /// Locks a screen that its desktop reports as locked. The report comes from the child's own programs, and the time of
    /// a screen that only pretends to be locked would not count.
    fn require_real_lock(&mut self, uid: u32, own: &[LoginTerminal], known: &[LoginTerminal]) {
        let session = self.engine.login_session(&uid.to_string());
        let counts = session.map(|session| self.login_policy(session).counts);
        if counts != Some(LoginCounting::Unlocked) {
            return;
        }
        let was_locked = |id: &str| known.iter().any(|login| login.id == id && login.state.locked);
        for login in own.iter().filter(|login| login.state.locked && !was_locked(&login.id)) {
            self.logins.monitor.lock(&login.id);
        }
    }
}

/// Returns how a login counts: not at all, unless one of its terminals does.
fn login_counting(login: LoginPolicy, own: impl Iterator<Item = TerminalState>) -> SessionCounting {
    let counted: Vec<TerminalState> = own.filter(|state| login.counts(*state)).collect();
    if counted.is_empty() {
        SessionCounting::Stopped
    } else if counted.iter().all(|state| state.idle) {
        SessionCounting::Idle
    } else {
        SessionCounting::Active
    }
}

/// Returns how a program counts: it earns nothing while nobody uses a terminal of its profile. Without a terminal of the
/// profile in the foreground, nobody can tell.
fn program_counting(terminals: &[TerminalState]) -> SessionCounting {
    let mut active = terminals.iter().filter(|state| state.active).peekable();
    if active.peek().is_some() && active.all(|state| state.idle || state.locked) {
        SessionCounting::Idle
    } else {
        SessionCounting::Active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(words: &[&str]) -> Vec<TerminalState> {
        let state = |word: &&str| TerminalState {
            active: word.contains('a'),
            locked: word.contains('l'),
            idle: word.contains('i'),
        };
        words.iter().map(state).collect()
    }

    // S19.2
    #[test]
    fn a_login_counts_if_one_of_its_terminals_does() {
        use SessionCounting::{Active, Idle, Stopped};
        let unlocked = LoginPolicy { counts: LoginCounting::Unlocked, ..LoginPolicy::default() };
        for (words, expected) in [
            (&["a"][..], Active),
            (&["al"], Stopped),
            (&["ai"], Idle),
            (&["-", "al", "ai"], Idle),
            (&["ai", "a"], Active),
            (&[], Stopped),
        ] {
            let counting = login_counting(unlocked, states(words).into_iter());
            assert_eq!(counting, expected, "{words:?}");
        }
        let usual = login_counting(LoginPolicy::default(), states(&["al"]).into_iter());
        assert_eq!(usual, Active, "a screen that says that it is locked");
    }

    // S19.4
    #[test]
    fn a_program_earns_nothing_while_nobody_is_at_the_terminals_of_its_profile() {
        use SessionCounting::{Active, Idle};
        for (words, expected) in [
            (&[][..], Active),
            (&["-"], Active),
            (&["i"], Active),
            (&["ai"], Idle),
            (&["al"], Idle),
            (&["ai", "i"], Idle),
            (&["ai", "a"], Active),
        ] {
            assert_eq!(program_counting(&states(words)), expected, "{words:?}");
        }
    }
}
