//! What is written down of a session, so that it can be found and ended by a later daemon.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shepherd_host_api::HostSessionHandle;
use ward_process::TreeRecord;

use crate::stop_method::StopMethod;

/// All that a later daemon needs: which tree it is, and how it likes to be ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinuxSessionHandle {
    pub(crate) tree: TreeRecord,
    pub(crate) asks: Vec<StopMethod>,
    /// The folder of its control socket, to be removed with it.
    pub(crate) sockets: Option<PathBuf>,
}

impl LinuxSessionHandle {
    pub(crate) fn encode(&self) -> Result<HostSessionHandle, serde_json::Error> {
        serde_json::to_string(self).map(HostSessionHandle::new)
    }

    pub(crate) fn parse(text: &HostSessionHandle) -> Option<Self> {
        serde_json::from_str(text.as_str()).ok()
    }
}
