//! The interface of `sway` for builds without the feature `sway`. It does nothing.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use shepherd_core::policy::{CompositorConfig, WindowDisplay};
use shepherd_util::SessionId;
use ward_process::{Containment, ProcessTree};

use crate::mailbox::MailboxSender;
use crate::options::LinuxHostOptions;
use crate::state_folder::StateFolder;
use crate::worker;

pub(crate) struct WindowControl;

pub(crate) struct WindowNotifier;

pub(crate) struct CompositorAccess;

#[derive(Default)]
pub(crate) struct SessionDisplay {
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) shortcomings: Vec<String>,
}

impl CompositorAccess {
    pub(crate) fn prepare_session(&self, _session_id: &SessionId, _user: u32) -> SessionDisplay {
        SessionDisplay::default()
    }
}

impl WindowControl {
    #[expect(clippy::unnecessary_wraps, reason = "the version with Sway starts a thread, which can fail")]
    pub(crate) fn start(
        _options: &Arc<LinuxHostOptions>,
        _containment: Containment,
        _folder: StateFolder,
        _worker: MailboxSender<worker::WorkerMessage>,
    ) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn notifier(&self) -> WindowNotifier {
        WindowNotifier
    }

    pub(crate) fn use_compositor(&mut self, _compositor: Option<&CompositorConfig>) {}

    pub(crate) fn show_window(&self, _session_id: &SessionId, _display: WindowDisplay) {}

    pub(crate) fn is_connected(&self) -> bool {
        false
    }

    pub(crate) fn compositor_access(&self) -> CompositorAccess {
        CompositorAccess
    }

    pub(crate) fn limitation(&self) -> Option<String> {
        let reason = "Shepherd was built without the feature `sway`";
        Some(format!("Windows can't be detected or brought to the front: {reason}."))
    }
}

impl WindowNotifier {
    pub(crate) fn session_running(&self, _session_id: &SessionId, _tree: &ProcessTree) {}

    pub(crate) fn session_failed(&self, _session_id: &SessionId) {}

    pub(crate) fn kill_sway_children(&self, _session_id: &SessionId) -> bool {
        true
    }

    pub(crate) fn session_ended(&self, _session_id: &SessionId) {}
}
