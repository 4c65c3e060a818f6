//! The task that watches logind. It connects only while somebody wants to know, and again when logind or the bus was
//! restarted.

use std::time::Duration;

use shepherd_host_api::{LoginEvent, LoginStopRequest, LoginTerminal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use ward_process::UserProcesses;

use super::LogindBus;
use super::connection::{LogindConnection, LogindSignal};
use super::stops::{LoginStops, StopOrder};

/// The time until the first attempt to connect again. It doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(250);

/// The longest time between two attempts.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The time in which killed processes have to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// A request to the watcher.
#[derive(Debug)]
pub(super) enum LogindRequest {
    Watch,
    Rest,
    Stop(LoginStopRequest),
    Lock(String),
}

/// The result of a kill.
struct KillReport {
    uid: u32,
    left: std::io::Result<usize>,
}

/// The state of the task.
pub(super) struct LogindWatcher {
    bus: LogindBus,
    requests: UnboundedReceiver<LogindRequest>,
    events: UnboundedSender<LoginEvent>,
    stops: LoginStops,
    kills: (UnboundedSender<KillReport>, UnboundedReceiver<KillReport>),
    connection: ConnectionState,
    /// The terminals as last reported. They hold while logind can't be asked: a login that is being ended keeps its grace.
    reported: Vec<LoginTerminal>,
    /// True if the last report was that logind can't be asked.
    reported_unavailable: bool,
}

enum ConnectionState {
    /// Nobody wants to know who is logged in.
    Unwanted,
    /// logind could not be reached.
    Broken {
        retry_at: Instant,
        delay: Duration,
    },
    Open(Box<LogindConnection>),
}

/// One thing that happened.
enum WatcherInput {
    Request(LogindRequest),
    Signal(Option<zbus::Result<LogindSignal>>),
    Killed(KillReport),
    Due,
    RetryDue,
}

impl LogindWatcher {
    pub(super) fn new(
        bus: LogindBus,
        requests: UnboundedReceiver<LogindRequest>,
        events: UnboundedSender<LoginEvent>,
    ) -> Self {
        let (stops, kills) = (LoginStops::default(), unbounded_channel());
        Self {
            bus,
            requests,
            events,
            stops,
            kills,
            connection: ConnectionState::Unwanted,
            reported: Vec::new(),
            reported_unavailable: false,
        }
    }

    /// Runs until nobody can send requests any more.
    pub(super) async fn run(mut self) {
        while let Some(input) = self.next_input().await {
            match input {
                WatcherInput::Request(request) => self.handle_request(request).await,
                WatcherInput::Signal(Some(Ok(signal))) => self.handle_signal(signal).await,
                WatcherInput::Signal(Some(Err(error))) => self.lose_connection(&error.to_string()),
                WatcherInput::Signal(None) => self.lose_connection("the message bus was closed"),
                WatcherInput::Killed(report) => self.handle_kill(&report).await,
                WatcherInput::Due => {}
                WatcherInput::RetryDue => self.connect().await,
            }
            self.carry_out_stops().await;
        }
    }

    /// Waits for the next input; `None` if the monitor is gone.
    async fn next_input(&mut self) -> Option<WatcherInput> {
        let due = self.stops.next_due();
        let (signal, retry_at) = match &mut self.connection {
            ConnectionState::Unwanted => (None, None),
            ConnectionState::Broken { retry_at, .. } => (None, Some(*retry_at)),
            ConnectionState::Open(connection) => (Some(connection), None),
        };
        Some(tokio::select! {
            request = self.requests.recv() => WatcherInput::Request(request?),
            signal = next_signal(signal) => WatcherInput::Signal(signal),
            Some(report) = self.kills.1.recv() => WatcherInput::Killed(report),
            () = wait_until(due) => WatcherInput::Due,
            () = wait_until(retry_at) => WatcherInput::RetryDue,
        })
    }

    async fn handle_request(&mut self, request: LogindRequest) {
        match request {
            LogindRequest::Watch => {
                if matches!(self.connection, ConnectionState::Unwanted) {
                    self.connect().await;
                }
            }
            LogindRequest::Rest => self.connection = ConnectionState::Unwanted,
            LogindRequest::Stop(request) => self.stops.begin(request, Instant::now()),
            LogindRequest::Lock(terminal) => self.lock(&terminal).await,
        }
    }

    async fn connect(&mut self) {
        let delay = match self.connection {
            ConnectionState::Broken { delay, .. } => (delay * 2).min(LAST_RETRY),
            ConnectionState::Unwanted | ConnectionState::Open(_) => FIRST_RETRY,
        };
        match LogindConnection::open(&self.bus).await {
            Ok(connection) => {
                self.connection = ConnectionState::Open(Box::new(connection));
                self.report_terminals();
            }
            Err(error) => self.break_connection(&error.to_string(), delay),
        }
    }

    fn lose_connection(&mut self, reason: &str) {
        self.break_connection(reason, FIRST_RETRY);
    }

    fn break_connection(&mut self, reason: &str, delay: Duration) {
        self.connection = ConnectionState::Broken { retry_at: Instant::now() + delay, delay };
        self.report_unavailable(reason);
    }

    fn report_unavailable(&mut self, reason: &str) {
        self.reported_unavailable = true;
        let detail = format!("could not ask systemd-logind who is logged in: {reason}");
        self.report(LoginEvent::Unavailable { detail });
    }

    fn report_terminals(&mut self) {
        self.reported_unavailable = false;
        self.reported = self.terminals();
        self.report(LoginEvent::Terminals(self.reported.clone()));
    }

    fn report(&self, event: LoginEvent) {
        // The daemon ends when it no longer listens.
        let _ = self.events.send(event);
    }

    fn terminals(&self) -> Vec<LoginTerminal> {
        match &self.connection {
            ConnectionState::Open(connection) => connection.terminals(),
            ConnectionState::Unwanted | ConnectionState::Broken { .. } => self.reported.clone(),
        }
    }

    async fn handle_signal(&mut self, signal: LogindSignal) {
        let ConnectionState::Open(connection) = &mut self.connection else { return };
        let before = connection.terminals();
        let outcome = match signal {
            LogindSignal::Ended => return self.report_unavailable("it has ended"),
            LogindSignal::SessionsChanged => connection.list_terminals().await,
            LogindSignal::SessionChanged { path } => connection.refresh_terminal(&path).await,
        };
        match outcome {
            // A list that looks the same shows that a logind that was gone is back.
            Ok(()) if self.reported_unavailable || before != connection.terminals() => {
                self.report_terminals();
            }
            Ok(()) => {}
            Err(error) => self.lose_connection(&error.to_string()),
        }
    }

    async fn carry_out_stops(&mut self) {
        loop {
            let orders = self.stops.advance(&self.terminals(), Instant::now());
            if orders.is_empty() {
                return;
            }
            for order in orders {
                match order {
                    StopOrder::Lock { terminal } => self.lock(&terminal).await,
                    StopOrder::Terminate { terminal } => self.terminate(&terminal).await,
                    StopOrder::TerminateAccount { uid } => self.terminate_account(uid).await,
                    StopOrder::Kill { uid } => self.start_kill(uid),
                    StopOrder::ReportEnd { uid } => self.report(LoginEvent::Ended { uid }),
                }
            }
        }
    }

    async fn lock(&mut self, terminal: &str) {
        let ConnectionState::Open(connection) = &self.connection else { return };
        if let Err(error) = connection.lock_session(terminal).await {
            let detail = format!("could not lock the screen of session {terminal}: {error}");
            self.report(LoginEvent::Problem { detail });
        }
    }

    async fn terminate(&mut self, terminal: &str) {
        let ConnectionState::Open(connection) = &self.connection else { return };
        // Whatever the answer, all processes of the account are killed next.
        let _ = connection.terminate_session(terminal).await;
    }

    async fn terminate_account(&mut self, uid: u32) {
        let ConnectionState::Open(connection) = &self.connection else { return };
        let _ = connection.terminate_user(uid).await;
    }

    /// Kills all processes of an account on another thread, because that reads all of `/proc`.
    fn start_kill(&self, uid: u32) {
        let reports = self.kills.0.clone();
        let kill = move || UserProcesses::of(uid).and_then(|processes| processes.kill_all(KILL_TIMEOUT));
        let started = std::thread::Builder::new().name("login-end".to_owned()).spawn(move || {
            let _ = reports.send(KillReport { uid, left: kill() });
        });
        if let Err(error) = started {
            let _ = self.kills.0.send(KillReport { uid, left: Err(error) });
        }
    }

    async fn handle_kill(&mut self, report: &KillReport) {
        let KillReport { uid, left } = report;
        let problem = match left {
            Ok(0) => None,
            Ok(count) => {
                Some(format!("{count} processes of user {uid} survived the end of the login; trying again"))
            }
            Err(error) => Some(format!("could not end the processes of user {uid}: {error}; trying again")),
        };
        problem.into_iter().for_each(|detail| self.report(LoginEvent::Problem { detail }));
        if self.stops.killed(*uid, *left.as_ref().unwrap_or(&1), Instant::now()) {
            // The sessions of a login that has ended must not look like those of a new one.
            self.handle_signal(LogindSignal::SessionsChanged).await;
            self.report(LoginEvent::Ended { uid: *uid });
        }
    }
}

async fn next_signal(connection: Option<&mut Box<LogindConnection>>) -> Option<zbus::Result<LogindSignal>> {
    match connection {
        Some(connection) => connection.next_signal().await,
        None => std::future::pending().await,
    }
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use shepherd_core::policy::{LoginEnd, TerminalState};

    use super::*;

    // S19.2
    #[tokio::test]
    async fn a_login_keeps_its_grace_while_logind_cannot_be_asked() {
        const UID: u32 = 4_000_000_000;
        let (_requests, received) = unbounded_channel();
        let (sender, mut events) = unbounded_channel();
        let mut watcher = LogindWatcher::new(LogindBus::System, received, sender);
        let state = TerminalState { active: true, ..TerminalState::default() };
        watcher.reported = vec![LoginTerminal { id: "2".to_owned(), uid: UID, state }];
        watcher.lose_connection("the test says so");
        assert!(matches!(events.try_recv(), Ok(LoginEvent::Unavailable { .. })));
        let grace = Duration::from_secs(60);
        let stop = LoginStopRequest { uid: UID, grace, end: LoginEnd::Terminate };
        watcher.handle_request(LogindRequest::Stop(stop)).await;
        watcher.carry_out_stops().await;
        let due = watcher.stops.next_due().unwrap();
        assert!(due > Instant::now() + grace / 2, "the login is being ended already");
    }
}
