//! CollieClaw's agent core: every tool call passes a gate and leaves a receipt.
//!
//! The [`runtime`] asks the model, runs the tools it calls, and repeats until the model answers. Every tool
//! call goes through [`runtime::ToolGateway`], which checks the arguments, asks the gate, gets approval,
//! looks for the emergency stop, writes the intent, runs the tool in its sandbox and writes the receipt.
//! Running a tool needs a [`runtime::CallGrant`], and only the gateway creates one.
//!
//! This crate never reads configuration from the agent's workspace, never starts a shell for a line that the
//! gate has planned, and never lets a tool's result change a rule. Channels reach the agent through the trait
//! [`channel::Channel`]; the crate knows nothing else about channels, and doesn't speak MCP.

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
pub mod trash;
pub mod usage;
pub mod workspaces;

pub mod plugins;

pub mod channel;
pub mod runtime;
pub mod sop;
