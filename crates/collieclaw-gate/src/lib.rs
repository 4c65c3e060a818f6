//! The gate: a tool call, a policy and facts in; a verdict with its reasons out.
//!
//! It judges what a call *does*, not how it is spelled. It reads no file, no clock, no environment and no network, and
//! runs nothing: what it must know about the machine it asks of [`Facts`]. Start with [`judge`] and [`Reason`].

pub mod plan;
pub mod shell;

mod address;
mod facts;
mod opened;
mod path;
mod policy;
mod programs;
mod reason;
mod verdict;

mod call;
mod hearing;

pub use address::{Address, Host, Method, Scheme, is_public};
pub use call::{Approved, Call, Permit, Question, Ruling, judge, judge_unlisted};
pub use facts::{Facts, Seen};
pub use hearing::{ShellVerdict, judge_shell};
pub use opened::{absolute, judge_opened};
pub use path::{Use, plain};
pub use policy::{
    Bounds, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS, GatePolicy,
};
pub use reason::Reason;
pub use verdict::{Autonomy, Decision, Findings, Risk, Verdict, Weight};
