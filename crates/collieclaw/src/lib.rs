//! CollieClaw: an agent runtime in which every tool call passes a gate and leaves a receipt.
//!
//! A message goes round in [`runtime`]: model, calls, results, answer. A call takes one way only, through the door
//! there: arguments, gate, approval, stop, intent, sandbox, receipt. A tool can't be run without a
//! [`runtime::CallGrant`], and only the door makes one.
//!
//! Nothing here reads configuration from the agent's workspace, starts a shell for a line that the gate has a plan
//! for, or lets what a tool returned change a rule.

pub mod channels;
pub mod service;
