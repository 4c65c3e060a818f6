//! Windows of sessions, with the compositor Sway (S6.7): reports the first window of a session, and brings its windows
//! to the front.
//!
//! A separate thread talks to the compositor, so that a compositor that hangs delays nothing else. A window belongs to a
//! session if its process is in the session's tree; names and titles don't count. The compositor's answers never grant
//! or end anything.
//!
//! A Sway that the daemon started goes on as long as a session runs, even if the daemon ends. The next daemon reattaches
//! both (`own_sway`). Sway starts programs for any client that asks; they end with the session (`sway_children`).
//!
//! A Sway with a user of its own has folders of its own (`sway_folders`), and lets in only the users of running sessions
//! (`display_access`). Their programs can show windows, but can't send commands to Sway.
//!
//! For Xwayland windows, Sway only knows the process id that the program itself claims.

use std::ffi::OsString;
use std::io;
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
mod display_access;
mod layout;
mod own_sway;
mod status;
mod sway_children;
mod sway_folders;
mod x11_access;

use compositor_watcher::CompositorWatcher;
use display_access::DisplayAccess;
use status::{CompositorState, CompositorStatus};
use sway_children::SwayChildren;

enum CompositorMessage {
    UseCompositor(Option<CompositorConfig>),
    SessionRunning(SessionId, TreeMembership),
    /// Shows the session's windows in this way, now and when it opens others.
    ShowWindow(SessionId, WindowDisplay),
    SessionEnded(SessionId),
    Shutdown,
}

/// Everything that is needed to start or reattach a Sway.
struct SwayContext {
    options: Arc<LinuxHostOptions>,
    /// The containment of the sessions.
    containment: Containment,
    /// The folder for Sway's log and its record for a later daemon.
    folder: StateFolder,
    sway_children: SwayChildren,
    display_access: DisplayAccess,
}

/// The host's handle to the thread that controls the windows of all sessions.
pub(crate) struct WindowControl {
    compositor: Option<CompositorConfig>,
    status: CompositorStatus,
    sway_children: SwayChildren,
    display_access: DisplayAccess,
    mailbox: MailboxSender<CompositorMessage>,
    thread: Option<JoinHandle<()>>,
}

impl WindowControl {
    /// Starts the thread. It sleeps until the policy names a compositor.
    pub(crate) fn start(
        options: &Arc<LinuxHostOptions>,
        containment: Containment,
        folder: StateFolder,
        worker: MailboxSender<worker::WorkerMessage>,
    ) -> io::Result<Self> {
        let (mailbox, inbox) = mailbox()?;
        let (status, sway_children) = (CompositorStatus::new(), SwayChildren::default());
        let display_access = DisplayAccess::default();
        let context = SwayContext {
            options: Arc::clone(options),
            containment,
            folder,
            sway_children: sway_children.clone(),
            display_access: display_access.clone(),
        };
        let thread = CompositorWatcher::start(inbox, worker, context, status.clone())?;
        Ok(Self { compositor: None, status, sway_children, display_access, mailbox, thread: Some(thread) })
    }

    /// Returns the notifier for the worker, which knows when sessions run.
    pub(crate) fn notifier(&self) -> WindowNotifier {
        WindowNotifier { mailbox: self.mailbox.clone(), sway_children: self.sway_children.clone() }
    }

    /// Uses this compositor from now on. Only the thread looks for it, because a compositor or a file system that hangs
    /// must not block the caller.
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

    /// Returns whether windows can be detected, brought to the front and made fullscreen.
    pub(crate) fn is_connected(&self) -> bool {
        self.status.is_connected()
    }

    /// Returns the compositor access for threads that start programs.
    pub(crate) fn compositor_access(&self) -> CompositorAccess {
        CompositorAccess {
            status: self.status.clone(),
            sway_children: self.sway_children.clone(),
            display_access: self.display_access.clone(),
        }
    }

    /// Returns a sentence about missing window control, if it is missing.
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

/// The connection of a starting program to the compositor.
pub(crate) struct CompositorAccess {
    status: CompositorStatus,
    sway_children: SwayChildren,
    display_access: DisplayAccess,
}

/// The displays of a session.
#[derive(Default)]
pub(crate) struct SessionDisplay {
    /// The variables that name the displays.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Sentences about windows that can't be shown.
    pub(crate) shortcomings: Vec<String>,
}

impl CompositorAccess {
    /// Opens the displays of the compositor to a session of this user that is about to start, and waits for a compositor
    /// that is starting. Programs that the daemon's Sway starts from now on end with the session.
    pub(crate) fn prepare_session(&self, session_id: &SessionId, user: u32) -> SessionDisplay {
        let displays = self.status.wait_for_displays();
        self.sway_children.session_starting(session_id);
        let Some(displays) = displays else { return SessionDisplay::default() };
        let shortcomings = self.display_access.open(session_id, user, &displays);
        let wayland = displays.wayland.map(|path| ("WAYLAND_DISPLAY".into(), path.into()));
        let x11 = displays.x11.map(|number| ("DISPLAY".into(), format!(":{number}").into()));
        SessionDisplay { variables: wayland.into_iter().chain(x11).collect(), shortcomings }
    }
}

/// The worker's handle, by which it reports when sessions start and end.
pub(crate) struct WindowNotifier {
    mailbox: MailboxSender<CompositorMessage>,
    sway_children: SwayChildren,
}

impl WindowNotifier {
    pub(crate) fn session_running(&self, session_id: &SessionId, tree: &ProcessTree) {
        self.sway_children.session_running(session_id);
        self.mailbox.send(CompositorMessage::SessionRunning(session_id.clone(), tree.membership()));
    }

    pub(crate) fn session_failed(&self, session_id: &SessionId) {
        self.sway_children.session_failed(session_id);
        self.session_ended(session_id);
    }

    /// Kills the programs that the daemon's Sway has started during a session that is over. Returns whether none is left;
    /// until then, the worker calls again. Never waits.
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

    /// The daemon's loop must not wait for a disk or a compositor (S13.3b).
    #[test]
    fn applying_a_policy_does_not_wait_for_the_compositor() {
        let (mailbox, inbox) = mailbox().unwrap();
        let mut windows = WindowControl {
            compositor: None,
            status: CompositorStatus::new(),
            sway_children: SwayChildren::default(),
            display_access: DisplayAccess::default(),
            mailbox,
            thread: None,
        };
        let nowhere = CompositorConfig::Connect { socket: Some("/nonexistent/sway".into()) };
        windows.use_compositor(Some(&nowhere));
        // If something had looked for the compositor, it would be reported as missing.
        assert_eq!(windows.limitation(), None);
        assert!(!windows.is_connected());
        assert!(
            matches!(inbox.try_next(), Some(CompositorMessage::UseCompositor(Some(used))) if used == nowhere)
        );
    }
}
