//! The library part of the program `collieclaw`: the terminal channel, and the service files.
//!
//! The binary combines it with the agent core (`collieclaw-agent`), the gateway (`collieclaw-gateway`) and MCP
//! (`collieclaw-mcp`); start at `cli/wiring.rs`.

pub mod channels;
pub mod service;
