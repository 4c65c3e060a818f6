//! The Model Context Protocol through the real program, as a client and as a server: with honest servers, hostile servers
//! and third-party programs.

pub(crate) use conformance::NOT_OFFERED;
pub(crate) use server_fixture::installed_peers;

mod adapter;
mod approval;
mod calls;
mod conformance;
mod hostile_servers;
mod http_servers;
mod replaced_server;
mod revoked_approval;
mod server_fixture;
mod serving;
mod third_party;
