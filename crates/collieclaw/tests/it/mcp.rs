//! The Model Context Protocol through the real program, as a client and as a server: servers that mean well, servers that
//! don't, and programs of others.

pub(crate) use conformance::NOT_OFFERED;
pub(crate) use house::installed;

mod approving;
mod calling;
mod conformance;
mod hostile;
mod house;
mod http;
mod peers;
mod replaced;
mod revoked;
mod serving;
mod speaker;
