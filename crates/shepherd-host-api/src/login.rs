//! Who is logged in to the machine, and the end of a login (S19.2).

use std::time::Duration;

use shepherd_core::policy::{LoginEnd, TerminalState};
use tokio::sync::mpsc::UnboundedReceiver;

/// The stream of a login monitor's events, in order.
pub type LoginEvents = UnboundedReceiver<LoginEvent>;

/// A desktop, text console or remote terminal that somebody is logged in to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginTerminal {
    /// The name of the terminal, which is unique until the machine restarts.
    pub id: String,
    /// The user id of the account.
    pub uid: u32,
    /// The state that decides whether its time counts.
    pub state: TerminalState,
}

/// A change in who is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginEvent {
    /// All terminals that somebody is logged in to: at first, and after each change.
    Terminals(Vec<LoginTerminal>),
    /// The machine doesn't tell who is logged in, until the next list of terminals.
    Unavailable {
        /// The reason, for people.
        detail: String,
    },
    /// The login of an account was ended as requested.
    Ended {
        /// The user id of the account.
        uid: u32,
    },
    /// A problem that ends no login, such as a process that survives its kill.
    Problem {
        /// A description for people.
        detail: String,
    },
}

/// A request to end the login of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginStopRequest {
    /// The user id of the account.
    pub uid: u32,
    /// The time to save one's work, before anything happens.
    pub grace: Duration,
    /// What happens then.
    pub end: LoginEnd,
}

/// A monitor that tells who is logged in, and ends logins.
///
/// No method waits; the outcome is an event. Nothing is watched before [`watch`](Self::watch).
pub trait LoginMonitor {
    /// Returns the stream of events. There is only one stream: a second call returns one that is closed.
    fn subscribe(&mut self) -> LoginEvents;

    /// Watches from now on, if it doesn't already. A list of terminals, or the reason why there is none, follows.
    fn watch(&mut self);

    /// Stops watching. A login that is being ended still ends.
    fn rest(&mut self);

    /// Ends the login of an account: logs it out everywhere and ends all its processes, or locks its screens.
    /// [`LoginEvent::Ended`] follows when that is done. A second request can only make the end come sooner.
    fn stop(&mut self, request: LoginStopRequest);

    /// Asks one terminal to lock its screen.
    fn lock(&mut self, terminal: &str);
}
