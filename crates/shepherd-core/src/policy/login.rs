//! Logins: an entry can stand for being logged in to the machine, at a desktop, on a console or over SSH (S19.2).

/// The way in which a login is counted, refused and ended. It matters only for entries of the kind `login`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginPolicy {
    pub counts: LoginCounting,
    pub idle: IdleTime,
    pub end: LoginEnd,
    pub without_daemon: LoginWithoutDaemon,
}

impl LoginPolicy {
    /// Returns whether the time of a login counts while one of its desktops, consoles or remote terminals is like this.
    #[must_use]
    pub fn counts(&self, terminal: TerminalState) -> bool {
        let in_use = match self.counts {
            LoginCounting::Active => terminal.active,
            LoginCounting::Unlocked => terminal.active && !terminal.locked,
            LoginCounting::Always => true,
        };
        in_use && !(terminal.idle && self.idle == IdleTime::Free)
    }
}

/// The state of a desktop, console or remote terminal that somebody is logged in to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalState {
    /// In the foreground of its seat. Remote terminals always are.
    pub active: bool,
    pub locked: bool,
    /// Without input for the time that its desktop is set to.
    pub idle: bool,
}

/// The time for which a login counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginCounting {
    /// While it is in the foreground, also while the screen is locked. The kernel switches the foreground, so no program
    /// of the account can pretend.
    #[default]
    Active,
    /// While it is in the foreground and the screen is not locked, as far as the account's own desktop tells.
    Unlocked,
    /// Until the log-out.
    Always,
}

/// The cost of time without input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdleTime {
    #[default]
    Counts,
    Free,
}

/// The end of a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginEnd {
    /// Everything that the account runs is ended.
    #[default]
    Terminate,
    /// The screen is locked, and locked again when it is unlocked.
    Lock,
}

/// The answer to a log-in while no daemon can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginWithoutDaemon {
    #[default]
    Refuse,
    Allow,
}
