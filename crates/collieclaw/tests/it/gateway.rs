//! The gateway (C5.3) through its real program, with real clients and hostile ones.

mod access_control;
mod approvals;
mod chats;
mod client_disconnect;
mod concurrency;
mod config_reload;
mod doc_examples;
mod lifecycle;
mod models;
mod page;
pub(crate) mod support;
mod unauthenticated_clients;
