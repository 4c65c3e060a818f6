//! The logins that are being ended, as a pure state machine: what to do next, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use shepherd_core::policy::LoginEnd;
use shepherd_host_api::{LoginStopRequest, LoginTerminal};
use tokio::time::Instant;

/// The time that programs have to end once logind has asked them to. The time to save one's work came before.
const TERMINATION_TIME: Duration = Duration::from_millis(500);

/// The time in which a desktop has to report that its screen is locked.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// The time until a second kill. logind starts the account's service manager while a login begins.
const SETTLING_TIME: Duration = Duration::from_millis(250);

/// The time until the next kill, if processes survived one.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// The logins that are being ended, by user id.
#[derive(Debug, Default)]
pub(super) struct LoginStops(BTreeMap<u32, StopStage>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopStage {
    /// The person may save. Nothing has happened.
    Grace { until: Instant, end: LoginEnd },
    /// The desktops were asked to lock their screens.
    Locking { until: Instant },
    /// logind was asked to end the sessions.
    Terminating { until: Instant },
    /// All processes of the account are being killed.
    Killing { pass: KillPass },
    /// Nothing is left, but a service manager that was about to start may follow.
    Settling { until: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillPass {
    First,
    Last,
}

/// The next thing to do about a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StopOrder {
    Lock {
        terminal: String,
    },
    Terminate {
        terminal: String,
    },
    /// Stop everything that logind runs for the account.
    TerminateAccount {
        uid: u32,
    },
    Kill {
        uid: u32,
    },
    /// The login is over.
    ReportEnd {
        uid: u32,
    },
}

impl LoginStops {
    /// Begins to end a login. A second request can only make the end come sooner.
    pub(super) fn begin(&mut self, request: LoginStopRequest, now: Instant) {
        let LoginStopRequest { uid, grace, end } = request;
        let until = now + grace;
        let stage = self.0.entry(uid).or_insert(StopStage::Grace { until, end });
        if let StopStage::Grace { until: known, .. } = stage {
            *known = until.min(*known);
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |stage: &StopStage| match stage {
            StopStage::Grace { until, .. }
            | StopStage::Locking { until }
            | StopStage::Terminating { until }
            | StopStage::Settling { until } => Some(*until),
            StopStage::Killing { .. } => None,
        };
        self.0.values().filter_map(due).min()
    }

    /// Returns what has to be done now.
    pub(super) fn advance(&mut self, terminals: &[LoginTerminal], now: Instant) -> Vec<StopOrder> {
        let mut orders = Vec::new();
        self.0.retain(|uid, stage| {
            let own: Vec<&LoginTerminal> = terminals.iter().filter(|terminal| terminal.uid == *uid).collect();
            let next = stage.next(*uid, &own, now, &mut orders);
            next.is_some_and(|next| {
                *stage = next;
                true
            })
        });
        orders
    }

    /// Takes note of a kill. Returns true if the login is over.
    pub(super) fn killed(&mut self, uid: u32, left: usize, now: Instant) -> bool {
        let pass = self.0.get(&uid).copied();
        if left > 0 {
            self.0.insert(uid, StopStage::Terminating { until: now + KILL_AGAIN });
        } else if pass == Some(StopStage::Killing { pass: KillPass::First }) {
            self.0.insert(uid, StopStage::Settling { until: now + SETTLING_TIME });
        } else {
            return self.0.remove(&uid).is_some();
        }
        false
    }
}

impl StopStage {
    /// Returns the next stage; `None` if the login is over.
    fn next(
        self,
        uid: u32,
        own: &[&LoginTerminal],
        now: Instant,
        orders: &mut Vec<StopOrder>,
    ) -> Option<Self> {
        let is_gone = own.is_empty();
        let terminate = |orders: &mut Vec<StopOrder>| {
            orders.extend(own.iter().map(|login| StopOrder::Terminate { terminal: login.id.clone() }));
            orders.push(StopOrder::TerminateAccount { uid });
            Self::Terminating { until: now + TERMINATION_TIME }
        };
        let kill = |orders: &mut Vec<StopOrder>| {
            orders.push(StopOrder::Kill { uid });
            Self::Killing { pass: KillPass::First }
        };
        match self {
            Self::Grace { end: LoginEnd::Lock, .. } if is_gone => {
                orders.push(StopOrder::ReportEnd { uid });
                None
            }
            // The person logged out: the rest of the account's programs end now.
            Self::Grace { .. } if is_gone => {
                orders.push(StopOrder::TerminateAccount { uid });
                Some(kill(orders))
            }
            Self::Grace { until, .. } | Self::Terminating { until } | Self::Settling { until }
                if now < until =>
            {
                Some(self)
            }
            Self::Grace { end: LoginEnd::Lock, .. } => {
                let unlocked = own.iter().filter(|login| !login.state.locked);
                orders.extend(unlocked.map(|login| StopOrder::Lock { terminal: login.id.clone() }));
                Self::Locking { until: now + LOCK_TIME }.next(uid, own, now, orders)
            }
            Self::Locking { .. } if own.iter().all(|login| login.state.locked) => {
                orders.push(StopOrder::ReportEnd { uid });
                None
            }
            Self::Locking { until } if now < until => Some(self),
            // A console and a desktop that doesn't lock its screen can only be logged out.
            Self::Grace { end: LoginEnd::Terminate, .. } | Self::Locking { .. } => Some(terminate(orders)),
            Self::Terminating { .. } => Some(kill(orders)),
            Self::Settling { .. } => {
                orders.push(StopOrder::Kill { uid });
                Some(Self::Killing { pass: KillPass::Last })
            }
            Self::Killing { .. } => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use shepherd_core::policy::TerminalState;

    use super::*;

    const UID: u32 = 1001;

    fn terminal(id: &str, locked: bool) -> LoginTerminal {
        LoginTerminal {
            id: id.to_owned(),
            uid: UID,
            state: TerminalState { locked, ..TerminalState::default() },
        }
    }

    fn begin(stops: &mut LoginStops, grace: u64, end: LoginEnd, now: Instant) {
        stops.begin(LoginStopRequest { uid: UID, grace: Duration::from_secs(grace), end }, now);
    }

    fn terminate(ids: &[&str]) -> Vec<StopOrder> {
        let sessions = ids.iter().map(|id| StopOrder::Terminate { terminal: (*id).to_owned() });
        sessions.chain([StopOrder::TerminateAccount { uid: UID }]).collect()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    // S19.2
    #[test]
    fn after_the_grace_all_sessions_are_ended_and_then_all_processes() {
        let (mut stops, start) = (LoginStops::default(), Instant::now());
        let logins =
            [terminal("2", false), terminal("5", true), LoginTerminal { uid: 7, ..terminal("3", false) }];
        begin(&mut stops, 30, LoginEnd::Terminate, start);
        assert_eq!(stops.advance(&logins, start + seconds(29)), []);
        assert_eq!(stops.next_due(), Some(start + seconds(30)));
        assert_eq!(stops.advance(&logins, start + seconds(30)), terminate(&["2", "5"]));
        assert_eq!(stops.advance(&logins, start + seconds(30)), []);
        let killing = start + seconds(30) + TERMINATION_TIME;
        assert_eq!(stops.advance(&logins, killing), [StopOrder::Kill { uid: UID }]);
        assert_eq!((stops.advance(&logins, killing + seconds(9)), stops.next_due()), (vec![], None));
        assert!(!stops.killed(UID, 1, killing), "a process hangs");
        assert_eq!(stops.advance(&logins, killing + KILL_AGAIN), [StopOrder::Kill { uid: UID }]);
        assert!(!stops.killed(UID, 0, killing), "a service manager may follow");
        assert_eq!(stops.advance(&logins, killing + SETTLING_TIME), [StopOrder::Kill { uid: UID }]);
        assert!(stops.killed(UID, 0, killing));
        assert_eq!(stops.advance(&logins, killing + seconds(99)), []);
    }

    // S19.2
    #[test]
    fn a_log_out_within_the_grace_ends_the_rest_at_once() {
        let (mut stops, start) = (LoginStops::default(), Instant::now());
        begin(&mut stops, 30, LoginEnd::Terminate, start);
        let orders = [StopOrder::TerminateAccount { uid: UID }, StopOrder::Kill { uid: UID }];
        assert_eq!(stops.advance(&[], start), orders);
    }

    #[test]
    fn a_second_request_only_makes_the_end_come_sooner() {
        let (mut stops, start) = (LoginStops::default(), Instant::now());
        for grace in [30, 60, 0, 10] {
            begin(&mut stops, grace, LoginEnd::Terminate, start);
        }
        assert_eq!(stops.next_due(), Some(start));
    }

    // S19.2
    #[test]
    fn a_login_that_is_locked_is_over_and_one_that_is_not_is_logged_out() {
        let (mut stops, start) = (LoginStops::default(), Instant::now());
        let lock = |id: &str| StopOrder::Lock { terminal: id.to_owned() };
        begin(&mut stops, 0, LoginEnd::Lock, start);
        assert_eq!(stops.advance(&[terminal("2", false)], start), [lock("2")]);
        let over = [StopOrder::ReportEnd { uid: UID }];
        assert_eq!(stops.advance(&[terminal("2", true)], start + seconds(1)), over);

        begin(&mut stops, 0, LoginEnd::Lock, start);
        let console = [terminal("2", true), terminal("4", false)];
        assert_eq!(stops.advance(&console, start), [lock("4")]);
        assert_eq!(stops.advance(&console, start + LOCK_TIME), terminate(&["2", "4"]));
    }
}
