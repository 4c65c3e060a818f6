//! CollieClaw's agent core: every tool call passes a gate and leaves a receipt.
//!
//! A message goes round in [`runtime`]: model, calls, results, answer. Every call takes one way, through
//! [`runtime::ToolGateway`]: arguments, gate, approval, emergency stop, intent, sandbox, receipt. A tool can't be run
//! without a [`runtime::CallGrant`], and only the gateway makes one.
//!
//! Nothing here reads configuration from the agent's workspace, starts a shell for a line that the gate has a plan
//! for, or lets the result of a tool change a rule. Nothing here knows how people reach the agent, beyond the trait
//! [`channel::Channel`], or speaks MCP.

pub mod home;
pub mod ids;
mod sqlite;

pub mod config;
pub mod estop;
pub mod events;

pub mod memory;
pub mod receipts;
pub mod security;
pub mod tools;
pub mod usage;

pub mod plugins;

pub mod channel;
pub mod runtime;
pub mod sop;
