//! Windows, with Sway (S6.7): when a session shows its first one, and which of them is in front.
//!
//! A thread of its own talks to the compositor, so that one that hangs delays nobody. It tells whose a window is by the
//! process that made it, which must be of the session's tree; names and titles are not looked at. Nothing is granted
//! or ended because of what a compositor says.
//!
//! A Sway of our own goes on while a session runs, whatever becomes of the daemon, and the next one takes both back
//! (`own`). It starts programs for whoever asks; they end with the session (`guests`).
//!
//! For windows of Xwayland, Sway only knows the number that the program itself claims.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use shepherd_core::policy::{Compositor, Display};
use shepherd_util::SessionId;
use ward_process::{Containment, Membership, Tree};

use crate::folder::StateFolder;
use crate::line::{Line, line};
use crate::options::LinuxHostOptions;
use crate::worker;

mod display;
mod find;
mod guests;
mod layout;
mod link;
mod own;
mod sight;
mod watcher;

use guests::Guests;
use sight::{Sight, View};
use watcher::Watcher;

/// What the thread is told.
enum Message {
    /// Work with this compositor.
    Follow(Option<Compositor>),
    /// A session runs, and these are its processes.
    Runs(SessionId, Membership),
    /// Show it so, now and when it opens other windows.
    Show(SessionId, Display),
    /// It is over.
    Ended(SessionId),
    /// The host is no more.
    Leave,
}

/// What it takes to start one.
struct Means {
    options: Arc<LinuxHostOptions>,
    /// What holds the sessions.
    containment: Containment,
    /// Where its output goes, and what a later daemon needs to take it back.
    folder: StateFolder,
    guests: Guests,
}

/// The windows of all sessions.
pub(crate) struct Windows {
    follows: Option<Compositor>,
    sight: Sight,
    guests: Guests,
    line: Line<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Windows {
    /// Starts the thread, which sleeps until the policy names a compositor.
    pub(crate) fn start(
        options: &Arc<LinuxHostOptions>,
        containment: Containment,
        folder: StateFolder,
        worker: Line<worker::Message>,
    ) -> io::Result<Self> {
        let (line, inbox) = line()?;
        let (sight, guests) = (Sight::new(), Guests::default());
        let means = Means { options: Arc::clone(options), containment, folder, guests: guests.clone() };
        let thread = Watcher::start(inbox, worker, means, sight.clone())?;
        Ok(Self { follows: None, sight, guests, line, thread: Some(thread) })
    }

    /// For the thread that knows when sessions run.
    pub(crate) fn line(&self) -> WindowsLine {
        WindowsLine { line: self.line.clone(), guests: self.guests.clone() }
    }

    /// Works with this compositor from now on. Looks for nothing itself: that is for the thread, which a compositor or a
    /// folder that hangs holds up.
    pub(crate) fn follow(&mut self, compositor: Option<&Compositor>) {
        if self.follows.as_ref() == compositor {
            return;
        }
        self.follows = compositor.cloned();
        self.sight.set(if compositor.is_some() { View::Coming } else { View::Unwanted });
        self.line.send(Message::Follow(self.follows.clone()));
    }

    pub(crate) fn show(&self, session_id: &SessionId, display: Display) {
        self.line.send(Message::Show(session_id.clone(), display));
    }

    /// Whether windows are noticed, and can be brought to the front and made to fill the screen.
    pub(crate) fn are_seen(&self) -> bool {
        self.sight.is_clear()
    }

    /// For whoever starts programs.
    pub(crate) fn entrance(&self) -> Entrance {
        Entrance { sight: self.sight.clone(), guests: self.guests.clone() }
    }

    /// What is missing, if something is.
    pub(crate) fn limitation(&self) -> Option<String> {
        self.sight.limitation()
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

/// The way of a program to its compositor.
pub(crate) struct Entrance {
    sight: Sight,
    guests: Guests,
}

impl Entrance {
    /// A session is about to start: says where it finds the compositor. One that is coming is waited for. What a Sway of
    /// ours starts from now on ends with the session.
    pub(crate) fn enter(&self, session_id: &SessionId) -> Option<PathBuf> {
        let display = self.sight.display();
        self.guests.expect(session_id);
        display
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The daemon's loop must not wait for a disk or a compositor, and so does not look for one (S13.3b).
    #[test]
    fn whoever_applies_a_policy_does_not_look_for_the_compositor() {
        let (line, inbox) = line().unwrap();
        let sight = Sight::new();
        let mut windows = Windows { follows: None, sight, guests: Guests::default(), line, thread: None };
        let nowhere = Compositor::Connect { socket: Some("/nonexistent/sway".into()) };
        windows.follow(Some(&nowhere));
        // Nobody has looked yet, or it would be missing.
        assert_eq!(windows.limitation(), None);
        assert!(!windows.are_seen());
        assert!(matches!(inbox.next(), Some(Message::Follow(Some(follows))) if follows == nowhere));
    }
}
