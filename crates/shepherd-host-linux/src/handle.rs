//! The record of a session, by which a later daemon can find and stop it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shepherd_host_api::HostSessionHandle;
use ward_process::TreeRecord;

use crate::stop_method::StopMethod;

/// The decoded form of a [`HostSessionHandle`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinuxSessionHandle {
    pub(crate) tree: TreeRecord,
    pub(crate) asks: Vec<StopMethod>,
    /// The folder of the control socket, which is removed with the session.
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
