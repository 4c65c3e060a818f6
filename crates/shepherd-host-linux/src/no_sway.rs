//! Windows, where this was built without the feature `sway`: the same face, and nothing behind it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use shepherd_core::policy::{Compositor, Display};
use shepherd_util::SessionId;
use ward_process::{Containment, Tree};

use crate::folder::StateFolder;
use crate::line::Line;
use crate::options::LinuxHostOptions;
use crate::worker;

pub(crate) struct Windows;

pub(crate) struct WindowsLine;

pub(crate) struct Entrance;

impl Entrance {
    pub(crate) fn enter(&self, _session_id: &SessionId) -> Option<PathBuf> {
        None
    }
}

impl Windows {
    #[expect(clippy::unnecessary_wraps, reason = "with Sway a thread may be refused")]
    pub(crate) fn start(
        _options: &Arc<LinuxHostOptions>,
        _containment: Containment,
        _folder: StateFolder,
        _worker: Line<worker::Message>,
    ) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn line(&self) -> WindowsLine {
        WindowsLine
    }

    pub(crate) fn follow(&mut self, _compositor: Option<&Compositor>) {}

    pub(crate) fn show(&self, _session_id: &SessionId, _display: Display) {}

    pub(crate) fn are_seen(&self) -> bool {
        false
    }

    pub(crate) fn entrance(&self) -> Entrance {
        Entrance
    }

    pub(crate) fn limitation(&self) -> Option<String> {
        let reason = "this was built without the feature `sway`";
        Some(format!("Windows are neither noticed nor brought to the front: {reason}."))
    }
}

impl WindowsLine {
    pub(crate) fn runs(&self, _session_id: &SessionId, _tree: &Tree) {}

    pub(crate) fn forget(&self, _session_id: &SessionId) {}

    pub(crate) fn clear_away(&self, _session_id: &SessionId) -> bool {
        true
    }

    pub(crate) fn ended(&self, _session_id: &SessionId) {}
}
