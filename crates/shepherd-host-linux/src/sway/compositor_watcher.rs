//! The thread that talks to the compositor. It sleeps unless something happens or the compositor is missing.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use shepherd_core::policy::{CompositorConfig, WindowDisplay};
use shepherd_util::SessionId;
use ward_process::TreeMembership;

use super::connection::{SwayConnection, SwayEvent};
use super::layout::{SwayWindow, front_window};
use super::own_sway::OwnSway;
use super::status::{CompositorState, CompositorStatus};
use super::{CompositorMessage, SwayContext, discovery};
use crate::mailbox::{MailboxReceiver, MailboxSender};
use crate::worker;

/// The first delay before another attempt to connect. A compositor takes about twice as long to start.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The longest delay. A compositor that is gone for good costs six wake-ups a minute.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// The time in which sessions of an earlier daemon are reattached: longer than the daemon waits for them.
const REATTACH_TIMEOUT: Duration = Duration::from_secs(15);

/// The least time between two requests for all windows, so that a program that keeps changing its windows costs little.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(50);

struct SessionWindows {
    members: TreeMembership,
    display: WindowDisplay,
    /// True once the session has had a window.
    ready: bool,
    /// The window that was last brought to the front.
    front: Option<i64>,
    /// The number of `front` among all windows that were brought to the front.
    front_number: u64,
}

struct ConnectedSway {
    connection: SwayConnection,
    since: Instant,
    /// True if windows may have changed since the last list.
    stale: bool,
    /// True while an answer to a request for all windows is outstanding.
    refresh_requested: bool,
    not_before: Instant,
}

pub(super) struct CompositorWatcher {
    inbox: MailboxReceiver<CompositorMessage>,
    worker: MailboxSender<worker::WorkerMessage>,
    context: SwayContext,
    status: CompositorStatus,
    sessions: BTreeMap<SessionId, SessionWindows>,
    /// The number of windows that were brought to the front.
    front_count: u64,
    compositor: Option<CompositorConfig>,
    own_sway: Option<OwnSway>,
    /// A Sway that the policy doesn't name any more, or that an earlier daemon left. It is kept while there is a session,
    /// whose windows it may show.
    previous_sway: Option<OwnSway>,
    /// The time after which no session of an earlier daemon is expected any more.
    reattach_deadline: Instant,
    connected: Option<ConnectedSway>,
    /// The time of the next attempt to connect.
    retry_at: Instant,
    /// The delay before the attempt after that.
    retry_after: Duration,
    /// True if the missing compositor has been reported.
    missing_reported: bool,
}

impl CompositorWatcher {
    pub(super) fn start(
        inbox: MailboxReceiver<CompositorMessage>,
        worker: MailboxSender<worker::WorkerMessage>,
        context: SwayContext,
        status: CompositorStatus,
    ) -> io::Result<JoinHandle<()>> {
        let watcher = Self {
            inbox,
            worker,
            context,
            status,
            sessions: BTreeMap::new(),
            front_count: 0,
            compositor: None,
            own_sway: None,
            previous_sway: None,
            reattach_deadline: Instant::now() + REATTACH_TIMEOUT,
            connected: None,
            retry_at: Instant::now(),
            retry_after: MIN_RETRY_DELAY,
            missing_reported: false,
        };
        Builder::new().name("host-windows".into()).spawn(move || watcher.run())
    }

    fn run(mut self) {
        match OwnSway::reattach(&self.context) {
            Ok(None) => self.reattach_deadline = Instant::now(),
            Ok(previous) => self.previous_sway = previous,
            Err(reason) => self.worker.send(worker::WorkerMessage::Problem(reason)),
        }
        loop {
            self.sleep();
            self.inbox.clear_wake();
            while let Some(message) = self.inbox.try_next() {
                if let CompositorMessage::Shutdown = message {
                    return self.shut_down();
                }
                self.handle_message(message);
            }
            self.maintain_compositor();
            self.read_events();
            self.request_windows_if_due();
        }
    }

    /// Keeps Sway running if a session goes on without the daemon, because Sway shows its windows.
    fn shut_down(mut self) {
        if self.context.sway_children.has_sessions() {
            self.own_sway.take().into_iter().chain(self.previous_sway.take()).for_each(OwnSway::detach);
        }
    }

    fn sleep(&self) {
        let due = match (&self.compositor, &self.connected) {
            (None, _) => None,
            (Some(_), None) => Some(self.retry_at),
            (Some(_), Some(connected)) => connected.refresh_due(),
        };
        // While there is a session, its end wakes this thread.
        let expiring = self.previous_sway.as_ref().filter(|_| !self.context.sway_children.has_sessions());
        let due = due.into_iter().chain(expiring.map(|_| self.reattach_deadline)).min();
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let connection = self.connected.as_ref().map(|connected| connected.connection.as_fd());
        let own_sways = self.own_sway.iter().chain(&self.previous_sway).map(OwnSway::readiness);
        let all = [self.inbox.wake_fd()].into_iter().chain(connection).chain(own_sways);
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // `EINTR` is harmless: every wake-up re-checks everything.
        let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    }

    fn handle_message(&mut self, message: CompositorMessage) {
        match message {
            CompositorMessage::UseCompositor(compositor) => {
                self.connected = None;
                self.previous_sway = self.own_sway.take().or_else(|| self.previous_sway.take());
                if let Some(CompositorConfig::Start { argv, user }) = &compositor {
                    let is_same = |previous: &mut OwnSway| previous.was_started_with(argv, user.as_deref());
                    self.own_sway = self.previous_sway.take_if(is_same);
                }
                self.compositor = compositor;
                (self.retry_at, self.retry_after) = (Instant::now(), MIN_RETRY_DELAY);
                self.missing_reported = false;
            }
            CompositorMessage::SessionRunning(session_id, members) => {
                let shown = SessionWindows {
                    members,
                    display: WindowDisplay::Unchanged,
                    ready: false,
                    front: None,
                    front_number: 0,
                };
                self.sessions.insert(session_id, shown);
                self.mark_stale();
            }
            CompositorMessage::ShowWindow(session_id, display) => {
                if let Some(shown) = self.sessions.get_mut(&session_id) {
                    shown.display = display;
                    shown.front = None;
                    self.mark_stale();
                }
            }
            CompositorMessage::SessionEnded(session_id) => {
                self.sessions.remove(&session_id);
                self.context.display_access.close(&session_id);
            }
            // `run` handles it.
            CompositorMessage::Shutdown => {}
        }
    }

    fn maintain_compositor(&mut self) {
        let is_over = |previous: &mut OwnSway| {
            let is_needed =
                self.context.sway_children.has_sessions() || Instant::now() < self.reattach_deadline;
            previous.has_ended() || !is_needed
        };
        drop(self.previous_sway.take_if(is_over));
        if self.own_sway.as_ref().is_some_and(|own| own.has_ended() || own.is_unresponsive()) {
            self.own_sway = None;
            self.set_disconnected("Sway has exited; its log shows why");
        }
        if self.connected.is_none() && Instant::now() >= self.retry_at {
            match self.try_connect() {
                Ok(Some(connection)) => self.set_connected(connection),
                Ok(None) => self.retry_at = Instant::now() + self.retry_interval(),
                Err(reason) => self.set_disconnected(&reason),
            }
        }
    }

    /// Tries to connect to the compositor, and starts it if necessary. Returns `None` if it needs more time.
    fn try_connect(&mut self) -> Result<Option<SwayConnection>, String> {
        match &self.compositor {
            None => Ok(None),
            Some(CompositorConfig::Connect { socket }) => {
                discovery::connect(socket.as_deref(), &self.context.options.environment).map(Some)
            }
            Some(CompositorConfig::Start { argv, user }) => match &mut self.own_sway {
                Some(own) => Ok(own.connect().ok()),
                // Two compositors can't share the screen.
                None if self.previous_sway.is_some() => Ok(None),
                None => {
                    // A Sway that could not be reattached before, or survived its kill, may still run.
                    self.own_sway = match OwnSway::reattach(&self.context)? {
                        None => Some(OwnSway::start(argv, user.as_deref(), &self.context)?),
                        earlier => earlier,
                    };
                    Ok(None)
                }
            },
        }
    }

    fn set_connected(&mut self, connection: SwayConnection) {
        let now = Instant::now();
        self.connected = Some(ConnectedSway {
            connection,
            since: now,
            stale: true,
            refresh_requested: false,
            not_before: now,
        });
    }

    fn set_disconnected(&mut self, reason: &str) {
        if let Some(connected) = self.connected.take()
            // A compositor that keeps crashing doesn't get the short delay again.
            && connected.since.elapsed() > MAX_RETRY_DELAY
        {
            self.retry_after = MIN_RETRY_DELAY;
        }
        self.status.set(CompositorState::Unavailable(reason.to_owned()));
        if !std::mem::replace(&mut self.missing_reported, true) {
            let detail = format!("windows can't be detected or brought to the front: {reason}");
            self.worker.send(worker::WorkerMessage::Problem(detail));
        }
        self.retry_at = Instant::now() + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(MAX_RETRY_DELAY);
    }

    /// Returns the delay before another attempt. It grows with the time that Sway takes to start.
    fn retry_interval(&self) -> Duration {
        self.own_sway
            .as_ref()
            .map_or(MAX_RETRY_DELAY, |own| own.age().clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY))
    }

    fn mark_stale(&mut self) {
        if let Some(connected) = &mut self.connected {
            connected.stale = true;
        }
    }

    fn read_events(&mut self) {
        let Some(connected) = &mut self.connected else { return };
        match connected.connection.read_events() {
            Ok(events) => events.into_iter().for_each(|event| self.handle_event(event)),
            Err(error) => self.set_disconnected(&connection_lost_reason(&error)),
        }
    }

    fn handle_event(&mut self, event: SwayEvent) {
        let Some(connected) = &mut self.connected else { return };
        match event {
            SwayEvent::Ready => {
                let displays =
                    connected.connection.displays(self.own_sway.as_ref().and_then(OwnSway::folders));
                self.status.set(CompositorState::Connected(Box::new(displays)));
                self.missing_reported = false;
            }
            SwayEvent::WindowsChanged => connected.stale = true,
            SwayEvent::WindowList(windows) => {
                connected.refresh_requested = false;
                if let Err(error) = self.arrange_windows(&windows) {
                    self.set_disconnected(&connection_lost_reason(&error));
                }
            }
        }
    }

    /// Requests a list of all windows if they may have changed.
    fn request_windows_if_due(&mut self) {
        let now = Instant::now();
        let Some(connected) = &mut self.connected else { return };
        if connected.refresh_due().is_none_or(|due| due > now) {
            return;
        }
        (connected.stale, connected.refresh_requested, connected.not_before) =
            (false, true, now + MIN_REFRESH_INTERVAL);
        if let Err(error) = connected.connection.request_windows() {
            self.set_disconnected(&connection_lost_reason(&error));
        }
    }

    /// Reports the first windows of sessions, and brings the right windows to the front.
    fn arrange_windows(&mut self, windows: &[SwayWindow]) -> io::Result<()> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        let mut latest = 0;
        let mut fronts = Vec::new();
        for (session_id, shown) in &mut self.sessions {
            let own = windows.iter().copied().filter(|window| shown.members.contains(window.pid));
            let Some(front) = front_window(own) else { continue };
            if !std::mem::replace(&mut shown.ready, true) {
                self.worker.send(worker::WorkerMessage::WindowReady(session_id.clone()));
            }
            if shown.display == WindowDisplay::Unchanged {
                continue;
            }
            let is_new = shown.front.replace(front.id) != Some(front.id);
            if is_new {
                self.front_count += 1;
                shown.front_number = self.front_count;
            }
            latest = latest.max(shown.front_number);
            fronts.push((shown.front_number, shown.display, is_new, front));
        }
        fronts.sort_unstable_by_key(|(number, ..)| *number);
        for (number, display, is_new, front) in fronts {
            let focus = format!("[con_id={}] focus", front.id);
            match display {
                WindowDisplay::Foreground if is_new => connected.connection.run_command(&focus)?,
                // If each of several sessions took the screen back, it would flicker for ever. The latest one has it.
                WindowDisplay::Fullscreen if is_new || number == latest && !front.is_fullscreen => {
                    connected.connection.run_command(&format!("{focus}, fullscreen enable"))?;
                }
                WindowDisplay::Unchanged | WindowDisplay::Foreground | WindowDisplay::Fullscreen => {}
            }
        }
        Ok(())
    }
}

impl ConnectedSway {
    fn refresh_due(&self) -> Option<Instant> {
        (self.stale && !self.refresh_requested).then_some(self.not_before)
    }
}

fn connection_lost_reason(error: &io::Error) -> String {
    format!("lost the connection to Sway: {error}; running programs still end on time")
}
