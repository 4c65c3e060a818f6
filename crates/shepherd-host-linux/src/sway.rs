//! Windows, with Sway (S6.7): when a session shows its first one, and which of them is in front.
//!
//! A thread of its own talks to the compositor, so that one that hangs delays nobody. It tells whose a window is by the
//! process that made it, which must be of the session's tree; names and titles are not looked at. Nothing is granted
//! or ended because of what a compositor says.
//!
//! A Sway of our own starts programs for whoever asks; they end with the session (`guests`).
//!
//! For windows of Xwayland, Sway only knows the number that the program itself claims.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use shepherd_core::policy::{Compositor, Display};
use shepherd_util::SessionId;
use ward_process::{Containment, Membership, Tree};

use crate::line::{Line, line};
use crate::options::LinuxHostOptions;
use crate::worker;

mod display;
mod find;
mod guests;
mod layout;
mod link;
mod own;
mod watcher;

use guests::Guests;
use link::Link;
use watcher::Watcher;

/// What the thread is told.
enum Message {
    /// Work with this compositor, to which there may be a connection already.
    Follow(Option<Compositor>, Option<Box<Link>>),
    /// A session runs, and these are its processes.
    Runs(SessionId, Membership),
    /// Show it so, now and when it opens other windows.
    Show(SessionId, Display),
    /// It is over.
    Ended(SessionId),
    /// The host is no more.
    Leave,
}

/// How it is with the compositor.
enum View {
    /// The policy names none.
    Unwanted,
    /// It is being started.
    Coming,
    /// There is none, because of this.
    Missing(String),
    /// There is one.
    Connected {
        /// Where its clients connect to.
        display: Option<PathBuf>,
    },
}

impl View {
    fn of(link: &Link) -> Self {
        Self::Connected { display: link.display().map(Into::into) }
    }
}

/// What it takes to start one.
struct Means {
    options: Arc<LinuxHostOptions>,
    /// What holds the sessions.
    containment: Containment,
    /// Where its output goes.
    log: PathBuf,
    guests: Guests,
}

/// The windows of all sessions.
pub(crate) struct Windows {
    options: Arc<LinuxHostOptions>,
    follows: Option<Compositor>,
    view: Arc<Mutex<View>>,
    guests: Guests,
    line: Line<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Windows {
    /// Starts the thread, which sleeps until the policy names a compositor.
    pub(crate) fn start(
        options: &Arc<LinuxHostOptions>,
        containment: Containment,
        log: PathBuf,
        worker: Line<worker::Message>,
    ) -> io::Result<Self> {
        let (line, inbox) = line()?;
        let view = Arc::new(Mutex::new(View::Unwanted));
        let guests = Guests::default();
        let means = Means { options: Arc::clone(options), containment, log, guests: guests.clone() };
        let thread = Watcher::start(inbox, worker, means, Arc::clone(&view))?;
        Ok(Self { options: Arc::clone(options), follows: None, view, guests, line, thread: Some(thread) })
    }

    /// For the thread that knows when sessions run.
    pub(crate) fn line(&self) -> WindowsLine {
        WindowsLine { line: self.line.clone(), guests: self.guests.clone() }
    }

    /// Works with this compositor from now on. One that runs already is connected to before this returns, which does
    /// not wait for it, so that what is said of capabilities at the start is true.
    pub(crate) fn follow(&mut self, compositor: Option<&Compositor>) {
        if self.follows.as_ref() == compositor {
            return;
        }
        self.follows = compositor.cloned();
        let (view, link) = match compositor {
            None => (View::Unwanted, None),
            Some(Compositor::Start { .. }) => (View::Coming, None),
            Some(Compositor::Connect { socket }) => {
                match find::connect(socket.as_deref(), &self.options.environment) {
                    Ok(link) => (View::of(&link), Some(Box::new(link))),
                    Err(reason) => (View::Missing(reason), None),
                }
            }
        };
        *see(&self.view) = view;
        self.line.send(Message::Follow(self.follows.clone(), link));
    }

    /// A session is about to start. What a Sway of ours starts from now on ends with it.
    pub(crate) fn expect(&self, session_id: &SessionId) {
        self.guests.expect(session_id);
    }

    pub(crate) fn show(&self, session_id: &SessionId, display: Display) {
        self.line.send(Message::Show(session_id.clone(), display));
    }

    /// Whether windows are noticed, and can be brought to the front and made to fill the screen.
    pub(crate) fn are_seen(&self) -> bool {
        matches!(*see(&self.view), View::Connected { .. })
    }

    /// Where programs find the compositor.
    pub(crate) fn display(&self) -> Option<PathBuf> {
        match &*see(&self.view) {
            View::Connected { display } => display.clone(),
            View::Unwanted | View::Coming | View::Missing(_) => None,
        }
    }

    /// What is missing, if something is.
    pub(crate) fn limitation(&self) -> Option<String> {
        let view = see(&self.view);
        let reason = match &*view {
            View::Coming | View::Connected { .. } => return None,
            View::Unwanted => "the policy names no `[compositor]`",
            View::Missing(reason) => reason.as_str(),
        };
        Some(format!("Windows are neither noticed nor brought to the front: {reason}."))
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.line.send(Message::Leave);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Says which sessions there are.
pub(crate) struct WindowsLine {
    line: Line<Message>,
    guests: Guests,
}

impl WindowsLine {
    pub(crate) fn runs(&self, session_id: &SessionId, tree: &Tree) {
        self.guests.runs(session_id);
        self.line.send(Message::Runs(session_id.clone(), tree.membership()));
    }

    /// It did not start.
    pub(crate) fn forget(&self, session_id: &SessionId) {
        self.guests.forget(session_id);
    }

    /// It is over: ends what a Sway of ours has started meanwhile. Whether nothing of it is left; until then it is to be
    /// called again. Never waits.
    pub(crate) fn clear_away(&self, session_id: &SessionId) -> bool {
        self.guests.clear_away(session_id)
    }

    pub(crate) fn ended(&self, session_id: &SessionId) {
        self.line.send(Message::Ended(session_id.clone()));
    }
}

/// Each change of it is whole, so that one who panicked has not spoilt it.
fn see(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}
