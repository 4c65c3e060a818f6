//! Connections that are taken: so many and no more, each with a client that may leave.

mod peer;
mod places;

pub use peer::{Caller, Peer};
pub use places::{AtWork, Places};
