//! The thread that talks to the compositor. It sleeps unless something happens or the compositor is missing.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use shepherd_core::policy::{Compositor, Display};
use shepherd_util::SessionId;
use ward_process::Membership;

use super::layout::{Window, foremost};
use super::link::{Link, Said};
use super::own::OwnSway;
use super::sight::{Sight, View};
use super::{Means, Message, find};
use crate::line::{Inbox, Line};
use crate::worker;

/// A compositor that is being started takes about two of these.
const FIRST_RETRY: Duration = Duration::from_millis(50);

/// One that is gone for good costs six wake-ups a minute.
const LAST_RETRY: Duration = Duration::from_secs(10);

/// How long an earlier daemon's session may take to be taken back: longer than the daemon waits for it.
const SETTLES_WITHIN: Duration = Duration::from_secs(15);

/// The least time between two looks at all windows, so that a program that plays with its own costs next to nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// A session, as far as windows go.
struct Shown {
    members: Membership,
    display: Display,
    /// It has had a window.
    ready: bool,
    /// The window that was last brought to the front.
    front: Option<i64>,
}

/// A compositor that answers.
struct Connected {
    link: Link,
    since: Instant,
    /// What is known of its windows is old.
    stale: bool,
    /// It has been asked for them.
    asked: bool,
    not_before: Instant,
}

pub(super) struct Watcher {
    inbox: Inbox<Message>,
    worker: Line<worker::Message>,
    means: Means,
    sight: Sight,
    sessions: BTreeMap<SessionId, Shown>,
    compositor: Option<Compositor>,
    own: Option<OwnSway>,
    /// One that the policy does not name any more, or that an earlier daemon left. It goes on while there is a session,
    /// whose windows it may show.
    former: Option<OwnSway>,
    /// From when on there is no session if none has been taken back.
    settled: Instant,
    connected: Option<Connected>,
    /// When it is tried again.
    retry_at: Instant,
    /// How long after it was lost.
    retry_after: Duration,
    /// That it is missing has been said.
    said_missing: bool,
}

impl Watcher {
    pub(super) fn start(
        inbox: Inbox<Message>,
        worker: Line<worker::Message>,
        means: Means,
        sight: Sight,
    ) -> io::Result<JoinHandle<()>> {
        let watcher = Self {
            inbox,
            worker,
            means,
            sight,
            sessions: BTreeMap::new(),
            compositor: None,
            own: None,
            former: None,
            settled: Instant::now() + SETTLES_WITHIN,
            connected: None,
            retry_at: Instant::now(),
            retry_after: FIRST_RETRY,
            said_missing: false,
        };
        Builder::new().name("host-windows".into()).spawn(move || watcher.run())
    }

    fn run(mut self) {
        match OwnSway::take_back(&self.means) {
            Ok(None) => self.settled = Instant::now(),
            Ok(former) => self.former = former,
            Err(reason) => self.worker.send(worker::Message::Trouble(reason)),
        }
        loop {
            self.sleep();
            self.inbox.silence();
            while let Some(message) = self.inbox.next() {
                if let Message::Leave = message {
                    return self.leave();
                }
                self.hear(message);
            }
            self.see_to_compositor();
            self.listen();
            self.look();
        }
    }

    /// A session goes on without us, and so does what shows its windows.
    fn leave(mut self) {
        if self.means.guests.are_in_session() {
            self.own.take().into_iter().chain(self.former.take()).for_each(OwnSway::leave);
        }
    }

    fn sleep(&self) {
        let due = match (&self.compositor, &self.connected) {
            (None, _) => None,
            (Some(_), None) => Some(self.retry_at),
            (Some(_), Some(connected)) => connected.look_due(),
        };
        // The end of a session wakes us anyway.
        let settles = self.former.as_ref().filter(|_| !self.means.guests.are_in_session());
        let due = due.into_iter().chain(settles.map(|_| self.settled)).min();
        let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let link = self.connected.as_ref().map(|connected| connected.link.as_fd());
        let own = self.own.iter().chain(&self.former).map(OwnSway::readiness);
        let all = [self.inbox.bell()].into_iter().chain(link).chain(own);
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // Interrupted is woken, too: whoever is woken looks at everything.
        let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Follow(compositor) => {
                self.connected = None;
                self.former = self.own.take().or_else(|| self.former.take());
                if let Some(Compositor::Start { argv }) = &compositor {
                    self.own = self.former.take_if(|former| former.argv() == argv);
                }
                self.compositor = compositor;
                (self.retry_at, self.retry_after) = (Instant::now(), FIRST_RETRY);
                self.said_missing = false;
            }
            Message::Runs(session_id, members) => {
                let shown = Shown { members, display: Display::AsItIs, ready: false, front: None };
                self.sessions.insert(session_id, shown);
                self.look_again();
            }
            Message::Show(session_id, display) => {
                if let Some(shown) = self.sessions.get_mut(&session_id) {
                    shown.display = display;
                    shown.front = None;
                    self.look_again();
                }
            }
            Message::Ended(session_id) => _ = self.sessions.remove(&session_id),
            // Heard by `run`.
            Message::Leave => {}
        }
    }

    fn see_to_compositor(&mut self) {
        let is_over = |former: &mut OwnSway| {
            let is_needed = self.means.guests.are_in_session() || Instant::now() < self.settled;
            former.has_ended() || !is_needed
        };
        drop(self.former.take_if(is_over));
        if self.own.as_ref().is_some_and(|own| own.has_ended() || own.keeps_silent()) {
            self.own = None;
            self.lose("the Sway that was started has ended; its log says why");
        }
        if self.connected.is_none() && Instant::now() >= self.retry_at {
            match self.try_out() {
                Ok(Some(link)) => self.connect(link),
                Ok(None) => self.retry_at = Instant::now() + self.patience(),
                Err(reason) => self.lose(&reason),
            }
        }
    }

    /// `None` if it only needs more time.
    fn try_out(&mut self) -> Result<Option<Link>, String> {
        match &self.compositor {
            None => Ok(None),
            Some(Compositor::Connect { socket }) => {
                find::connect(socket.as_deref(), &self.means.options.environment).map(Some)
            }
            Some(Compositor::Start { argv }) => match &mut self.own {
                Some(own) => Ok(own.connect().ok()),
                // There is one screen.
                None if self.former.is_some() => Ok(None),
                None => {
                    // One that could not be held, or outlived its end, may still be there.
                    self.own = match OwnSway::take_back(&self.means)? {
                        None => Some(OwnSway::start(argv, &self.means)?),
                        earlier => earlier,
                    };
                    Ok(None)
                }
            },
        }
    }

    fn connect(&mut self, link: Link) {
        self.sight.set(View::of(&link));
        self.said_missing = false;
        let now = Instant::now();
        self.connected = Some(Connected { link, since: now, stale: true, asked: false, not_before: now });
    }

    fn lose(&mut self, reason: &str) {
        if let Some(connected) = self.connected.take()
            // One that comes and goes is not one that works.
            && connected.since.elapsed() > LAST_RETRY
        {
            self.retry_after = FIRST_RETRY;
        }
        self.sight.set(View::Missing(reason.to_owned()));
        if !std::mem::replace(&mut self.said_missing, true) {
            let detail = format!("windows are neither noticed nor brought to the front: {reason}");
            self.worker.send(worker::Message::Trouble(detail));
        }
        self.retry_at = Instant::now() + self.retry_after;
        self.retry_after = (self.retry_after * 2).min(LAST_RETRY);
    }

    /// The longer one of our own has not listened, the longer it takes until it is tried again.
    fn patience(&self) -> Duration {
        self.own.as_ref().map_or(LAST_RETRY, |own| own.age().clamp(FIRST_RETRY, LAST_RETRY))
    }

    fn look_again(&mut self) {
        if let Some(connected) = &mut self.connected {
            connected.stale = true;
        }
    }

    fn listen(&mut self) {
        let Some(connected) = &mut self.connected else { return };
        match connected.link.hear() {
            Ok(said) => said.into_iter().for_each(|said| self.heard(said)),
            Err(error) => self.lose(&went_away(&error)),
        }
    }

    fn heard(&mut self, said: Said) {
        let Some(connected) = &mut self.connected else { return };
        match said {
            Said::Changed => connected.stale = true,
            Said::Windows(windows) => {
                connected.asked = false;
                if let Err(error) = self.arrange(&windows) {
                    self.lose(&went_away(&error));
                }
            }
        }
    }

    /// Asks for all windows, if there is a reason to.
    fn look(&mut self) {
        let now = Instant::now();
        let Some(connected) = &mut self.connected else { return };
        if connected.look_due().is_none_or(|due| due > now) {
            return;
        }
        (connected.stale, connected.asked, connected.not_before) = (false, true, now + PAUSE);
        if let Err(error) = connected.link.ask_for_windows() {
            self.lose(&went_away(&error));
        }
    }

    /// Reports first windows, and brings to the front what is to be there.
    fn arrange(&mut self, windows: &[Window]) -> io::Result<()> {
        let Some(connected) = &mut self.connected else { return Ok(()) };
        for (session_id, shown) in &mut self.sessions {
            let own = windows.iter().copied().filter(|window| shown.members.contains(window.pid));
            let Some(front) = foremost(own) else { continue };
            if !std::mem::replace(&mut shown.ready, true) {
                self.worker.send(worker::Message::WindowReady(session_id.clone()));
            }
            let is_new = shown.front.replace(front.id) != Some(front.id);
            match shown.display {
                Display::Foreground if is_new => {
                    connected.link.command(&format!("[con_id={}] focus", front.id))?;
                }
                Display::Fullscreen if is_new || !front.is_fullscreen => {
                    connected.link.command(&format!("[con_id={}] focus, fullscreen enable", front.id))?;
                }
                Display::AsItIs | Display::Foreground | Display::Fullscreen => {}
            }
        }
        Ok(())
    }
}

impl Connected {
    fn look_due(&self) -> Option<Instant> {
        (self.stale && !self.asked).then_some(self.not_before)
    }
}

fn went_away(error: &io::Error) -> String {
    format!("Sway has gone away ({error}); programs that run are ended on time as ever")
}
