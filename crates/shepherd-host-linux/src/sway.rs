//! Windows, with Sway (S6.7): when a session shows its first one, and which of them is in front.
//!
//! A thread of its own talks to the compositor, so that one that hangs delays nobody. It tells whose a window is by the
//! process that made it, which must be of the session's tree; names and titles are not looked at. Nothing is granted
//! or ended because of what a compositor says.
//!
//! A Sway of our own goes on while a session runs, whatever becomes of the daemon, and the next one takes both back
//! (`own_sway`). It starts programs for whoever asks; they end with the session (`sway_children`).
//!
//! For windows of Xwayland, Sway only knows the number that the program itself claims.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use shepherd_core::policy::{CompositorConfig, WindowDisplay};
use shepherd_util::SessionId;
use ward_process::{Containment, ProcessTree, TreeMembership};

use crate::mailbox::{MailboxSender, mailbox};
use crate::options::LinuxHostOptions;
use crate::state_folder::StateFolder;
use crate::worker;

mod compositor_watcher;
mod connection;
mod discovery;
mod display;
mod layout;
mod own_sway;
mod status;
mod sway_children;

use compositor_watcher::CompositorWatcher;
use status::{CompositorState, CompositorStatus};
use sway_children::SwayChildren;

/// What the thread is told.
enum CompositorMessage {
    /// Work with this compositor.
    UseCompositor(Option<CompositorConfig>),
    /// A session runs, and these are its processes.
    SessionRunning(SessionId, TreeMembership),
    /// Show it so, now and when it opens other windows.
    ShowWindow(SessionId, WindowDisplay),
    /// It is over.
    SessionEnded(SessionId),
    /// The host is no more.
    Shutdown,
}

/// What it takes to start one.
struct SwayContext {
    options: Arc<LinuxHostOptions>,
    /// What holds the sessions.
    containment: Containment,
    /// Where its output goes, and what a later daemon needs to take it back.
    folder: StateFolder,
    sway_children: SwayChildren,
}

/// The windows of all sessions.
pub(crate) struct WindowControl {
    compositor: Option<CompositorConfig>,
    status: CompositorStatus,
    sway_children: SwayChildren,
    mailbox: MailboxSender<CompositorMessage>,
    thread: Option<JoinHandle<()>>,
}

impl WindowControl {
    /// Starts the thread, which sleeps until the policy names a compositor.
    pub(crate) fn start(
        options: &Arc<LinuxHostOptions>,
        containment: Containment,
        folder: StateFolder,
        worker: MailboxSender<worker::WorkerMessage>,
    ) -> io::Result<Self> {
        let (line, inbox) = mailbox()?;
        let (sight, guests) = (CompositorStatus::new(), SwayChildren::default());
        let means =
            SwayContext { options: Arc::clone(options), containment, folder, sway_children: guests.clone() };
        let thread = CompositorWatcher::start(inbox, worker, means, sight.clone())?;
        Ok(Self {
            compositor: None,
            status: sight,
            sway_children: guests,
            mailbox: line,
            thread: Some(thread),
        })
    }

    /// For the thread that knows when sessions run.
    pub(crate) fn notifier(&self) -> WindowNotifier {
        WindowNotifier { mailbox: self.mailbox.clone(), sway_children: self.sway_children.clone() }
    }

    /// Works with this compositor from now on. Looks for nothing itself: that is for the thread, which a compositor or a
    /// folder that hangs holds up.
    pub(crate) fn use_compositor(&mut self, compositor: Option<&CompositorConfig>) {
        if self.compositor.as_ref() == compositor {
            return;
        }
        self.compositor = compositor.cloned();
        self.status.set(if compositor.is_some() {
            CompositorState::Starting
        } else {
            CompositorState::NotConfigured
        });
        self.mailbox.send(CompositorMessage::UseCompositor(self.compositor.clone()));
    }

    pub(crate) fn show_window(&self, session_id: &SessionId, display: WindowDisplay) {
        self.mailbox.send(CompositorMessage::ShowWindow(session_id.clone(), display));
    }

    /// Whether windows are noticed, and can be brought to the front and made to fill the screen.
    pub(crate) fn is_connected(&self) -> bool {
        self.status.is_connected()
    }

    /// For whoever starts programs.
    pub(crate) fn compositor_access(&self) -> CompositorAccess {
        CompositorAccess { status: self.status.clone(), sway_children: self.sway_children.clone() }
    }

    /// What is missing, if something is.
    pub(crate) fn limitation(&self) -> Option<String> {
        self.status.limitation()
    }
}

impl Drop for WindowControl {
    fn drop(&mut self) {
        self.mailbox.send(CompositorMessage::Shutdown);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The way of a program to its compositor.
pub(crate) struct CompositorAccess {
    status: CompositorStatus,
    sway_children: SwayChildren,
}

impl CompositorAccess {
    /// A session is about to start: says where it finds the compositor. One that is coming is waited for. What a Sway of
    /// ours starts from now on ends with the session.
    pub(crate) fn prepare_session(&self, session_id: &SessionId) -> Option<PathBuf> {
        let display = self.status.wait_for_display();
        self.sway_children.session_starting(session_id);
        display
    }
}

/// Says which sessions there are.
pub(crate) struct WindowNotifier {
    mailbox: MailboxSender<CompositorMessage>,
    sway_children: SwayChildren,
}

impl WindowNotifier {
    pub(crate) fn session_running(&self, session_id: &SessionId, tree: &ProcessTree) {
        self.sway_children.session_running(session_id);
        self.mailbox.send(CompositorMessage::SessionRunning(session_id.clone(), tree.membership()));
    }

    /// It did not start.
    pub(crate) fn session_failed(&self, session_id: &SessionId) {
        self.sway_children.session_failed(session_id);
    }

    /// It is over: ends what a Sway of ours has started meanwhile. Whether nothing of it is left; until then it is to be
    /// called again. Never waits.
    pub(crate) fn kill_sway_children(&self, session_id: &SessionId) -> bool {
        self.sway_children.kill_started_since(session_id)
    }

    pub(crate) fn session_ended(&self, session_id: &SessionId) {
        self.mailbox.send(CompositorMessage::SessionEnded(session_id.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The daemon's loop must not wait for a disk or a compositor, and so does not look for one (S13.3b).
    #[test]
    fn applying_a_policy_does_not_wait_for_the_compositor() {
        let (line, inbox) = mailbox().unwrap();
        let sight = CompositorStatus::new();
        let mut windows = WindowControl {
            compositor: None,
            status: sight,
            sway_children: SwayChildren::default(),
            mailbox: line,
            thread: None,
        };
        let nowhere = CompositorConfig::Connect { socket: Some("/nonexistent/sway".into()) };
        windows.use_compositor(Some(&nowhere));
        // Nobody has looked yet, or it would be missing.
        assert_eq!(windows.limitation(), None);
        assert!(!windows.is_connected());
        assert!(
            matches!(inbox.try_next(), Some(CompositorMessage::UseCompositor(Some(follows))) if follows == nowhere)
        );
    }
}
