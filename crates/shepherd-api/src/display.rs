//! The display of a client's desktop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The display of the desktop that a client runs on, as the client's environment names it. The daemon ignores every value
/// that doesn't name a display of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientDisplay {
    /// The socket of the Wayland display: a path in the user's runtime folder `/run/user/UID`, or a name there.
    pub wayland: Option<String>,
    /// The X11 display, such as `:0`.
    pub x11: Option<String>,
    /// The file with the keys of the X11 display (`XAUTHORITY`).
    pub x11_authority: Option<String>,
}
