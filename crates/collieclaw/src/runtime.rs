//! The agent loop, and the one door through which every tool call goes.

mod door;

pub use door::Granted;
