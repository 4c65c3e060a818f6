//! How people reach the agent.

mod visible;

pub use visible::{visible, visible_lines};
