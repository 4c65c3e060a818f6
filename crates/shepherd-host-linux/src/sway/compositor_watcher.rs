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

/// A compositor that is being started takes about two of these.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);

/// One that is gone for good costs six wake-ups a minute.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// How long an earlier daemon's session may take to be taken back: longer than the daemon waits for it.
const REATTACH_TIMEOUT: Duration = Duration::from_secs(15);

/// The least time between two looks at all windows, so that a program that plays with its own costs next to nothing.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(50);

/// A session, as far as windows go.
struct SessionWindows {
    members: TreeMembership,
    display: WindowDisplay,
    /// It has had a window.
    ready: bool,
    /// The window that was last brought to the front.
    front: Option<i64>,
}

/// A compositor that answers.
struct ConnectedSway {
    link: SwayConnection,
    since: Instant,
    /// What is known of its windows is old.
    stale: bool,
    /// It has been asked for them.
    refresh_requested: bool,
    not_before: Instant,
}

pub(super) struct CompositorWatcher {
    inbox: MailboxReceiver<CompositorMessage>,
    worker: MailboxSender<worker::WorkerMessage>,
    context: SwayContext,
    status: CompositorStatus,
    sessions: BTreeMap<SessionId, SessionWindows>,
    compositor: Option<CompositorConfig>,
    own_sway: Option<OwnSway>,
    /// One that the policy does not name any more, or that an earlier daemon left. It goes on while there is a session,
    /// whose windows it may show.
    previous_sway: Option<OwnSway>,
    /// From when on there is no session if none has been taken back.
    reattach_deadline: Instant,
    connected: Option<ConnectedSway>,
    /// When it is tried again.
    retry_at: Instant,
    /// How long after it was lost.
    retry_after: Duration,
    /// That it is missing has been said.
    missing_reported: bool,
}

impl CompositorWatcher {
    pub(super) fn start(
        inbox: MailboxReceiver<CompositorMessage>,
        worker: MailboxSender<worker::WorkerMessage>,
        means: SwayContext,
        sight: CompositorStatus,
    ) -> io::Result<JoinHandle<()>> {
        let watcher = Self {
            inbox,
            worker,
            context: means,
            status: sight,
            sessions: BTreeMap::new(),
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
            Ok(former) => self.previous_sway = former,
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

    /// A session goes on without us, and so does what shows its windows.
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
        // The end of a session wakes us anyway.
        let settles = self.previous_sway.as_ref().filter(|_| !self.context.sway_children.has_sessions());
        let due = due.into_iter().chain(settles.map(|_| self.reattach_deadline)).min();
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let link = self.connected.as_ref().map(|connected| connected.link.as_fd());
        let own = self.own_sway.iter().chain(&self.previous_sway).map(OwnSway::readiness);
        let all = [self.inbox.wake_fd()].into_iter().chain(link).chain(own);
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // Interrupted is woken, too: whoever is woken looks at everything.
        let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    }

    fn handle_message(&mut self, message: CompositorMessage) {
        match message {
            CompositorMessage::UseCompositor(compositor) => {
                self.connected = None;
                self.previous_sway = self.own_sway.take().or_else(|| self.previous_sway.take());
                if let Some(CompositorConfig::Start { argv }) = &compositor {
                    self.own_sway = self.previous_sway.take_if(|former| former.argv() == argv);
                }
                self.compositor = compositor;
                (self.retry_at, self.retry_after) = (Instant::now(), MIN_RETRY_DELAY);
                self.missing_reported = false;
            }
            CompositorMessage::SessionRunning(session_id, members) => {
                let shown =
                    SessionWindows { members, display: WindowDisplay::Unchanged, ready: false, front: None };
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
            CompositorMessage::SessionEnded(session_id) => _ = self.sessions.remove(&session_id),
            // Heard by `run`.
            CompositorMessage::Shutdown => {}
        }
    }

    fn maintain_compositor(&mut self) {
        let is_over = |former: &mut OwnSway| {
            let is_needed =
                self.context.sway_children.has_sessions() || Instant::now() < self.reattach_deadline;
            former.has_ended() || !is_needed
        };
        drop(self.previous_sway.take_if(is_over));
        if self.own_sway.as_ref().is_some_and(|own| own.has_ended() || own.is_unresponsive()) {
            self.own_sway = None;
            self.set_disconnected("the Sway that was started has ended; its log says why");
        }
        if self.connected.is_none() && Instant::now() >= self.retry_at {
            match self.try_connect() {
                Ok(Some(link)) => self.set_connected(link),
                Ok(None) => self.retry_at = Instant::now() + self.retry_interval(),
                Err(reason) => self.set_disconnected(&reason),
            }
        }
    }

    /// `None` if it only needs more time.
    fn try_connect(&mut self) -> Result<Option<SwayConnection>, String> {
        match &self.compositor {
            None => Ok(None),
            Some(CompositorConfig::Connect { socket }) => {
                discovery::connect(socket.as_deref(), &self.context.options.environment).map(Some)
            }
            Some(CompositorConfig::Start { argv }) => match &mut self.own_sway {
                Some(own) => Ok(own.connect().ok()),
                // There is one screen.
                None if self.previous_sway.is_some() => Ok(None),
                None => {
                    // One that could not be held, or outlived its end, may still be there.
                    self.own_sway = match OwnSway::reattach(&self.context)? {
                        None => Some(OwnSway::start(argv, &self.context)?),
                        earlier => earlier,
                    };
                    Ok(None)
                }
            },
        }
    }

    fn set_connected(&mut self, link: SwayConnection) {
        self.status.set(CompositorState::connected_to(&link));
        self.missing_reported = false;
        let now = Instant::now();
        self.connected =
            Some(ConnectedSway { link, since: now, stale: true, refresh_requested: false, not_before: now });
    }

    fn set_disconnected(&mut self, reason: &str) {
        if let Some(connected) = self.connected.take()
            // One that comes and goes is not one that works.
            && connected.since.elapsed() > MAX_RETRY_DELAY
        {
            self.retry_after = MIN_RETRY_DELAY;
        }
        self.status.set(CompositorState::Unavailable(reason.to_owned()));
        if !std::mem::replace(&mut self.missing_reported, true) {
            let detail = format!("windows are neither noticed nor brought to the front: {reason}");
            self.worker.send(worker::WorkerMessage::Problem(detail));
        }
        self.retry_at = Instant::now() + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(MAX_RETRY_DELAY);
    }

    /// The longer one of our own has not listened, the longer it takes until it is tried again.
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
        match connected.link.read_events() {
            Ok(said) => said.into_iter().for_each(|said| self.handle_event(said)),
            Err(error) => self.set_disconnected(&connection_lost_reason(&error)),
        }
    }

    fn handle_event(&mut self, said: SwayEvent) {
        let Some(connected) = &mut self.connected else { return };
        match said {
            SwayEvent::WindowsChanged => connected.stale = true,
            SwayEvent::WindowList(windows) => {
                connected.refresh_requested = false;
                if let Err(error) = self.arrange_windows(&windows) {
                    self.set_disconnected(&connection_lost_reason(&error));
                }
            }
        }
    }

    /// Asks for all windows, if there is a reason to.
    fn request_windows_if_due(&mut self) {
        let now = Instant::now();
        let Some(connected) = &mut self.connected else { return };
        if connected.refresh_due().is_none_or(|due| due > now) {
            return;
        }
        (connected.stale, connected.refresh_requested, connected.not_before) =
            (false, true, now + MIN_REFRESH_INTERVAL);
        if let Err(error) = connected.link.request_windows() {
            self.set_disconnected(&connection_lost_reason(&error));
        }
    }

    /// Reports first windows, and brings to the front what is to be there.
    fn arrange_windows(&mut self, windows: &[SwayWindow]) -> io::Result<()> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        for (session_id, shown) in &mut self.sessions {
            let own = windows.iter().copied().filter(|window| shown.members.contains(window.pid));
            let Some(front) = front_window(own) else { continue };
            if !std::mem::replace(&mut shown.ready, true) {
                self.worker.send(worker::WorkerMessage::WindowReady(session_id.clone()));
            }
            let is_new = shown.front.replace(front.id) != Some(front.id);
            match shown.display {
                WindowDisplay::Foreground if is_new => {
                    connected.link.run_command(&format!("[con_id={}] focus", front.id))?;
                }
                WindowDisplay::Fullscreen if is_new || !front.is_fullscreen => {
                    connected.link.run_command(&format!("[con_id={}] focus, fullscreen enable", front.id))?;
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
    format!("Sway has gone away ({error}); programs that run are ended on time as ever")
}
