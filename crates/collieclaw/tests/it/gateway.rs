//! The gateway (C5.3) through its real program, with real clients and hostile ones.

mod approvals;
mod chats;
mod crowd;
mod documents;
mod hostile;
mod leaving;
mod life;
mod models;
mod page;
mod rules;
mod strangers;
pub(crate) mod support;
