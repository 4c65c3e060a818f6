//! What stands between a tool and the machine: the handle on the workspace, and what the gate is told of the world.

mod workspace;

pub use workspace::Workspace;
