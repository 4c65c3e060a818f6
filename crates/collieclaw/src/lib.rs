//! The parts of the program `collieclaw` that are its own: how people at a terminal reach the agent, and the service.
//!
//! The program puts these together with the agent core (`collieclaw-agent`), the gateway (`collieclaw-gateway`) and
//! MCP (`collieclaw-mcp`); start at `cli/wiring.rs`.

pub mod channels;
pub mod service;
