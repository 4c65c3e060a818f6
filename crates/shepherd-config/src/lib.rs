//! The policy language: text in, a checked [`Policy`](shepherd_core::policy::Policy) or *every* fault out.
//!
//! Start at [`load`]. A policy is read in three steps, each of which records all that it finds wrong:
//! the text becomes a `RawPolicy` (what the file says, with places), `compile` looks up names and fills in
//! defaults, and at the end the file's own examples (`expect`) are asked of a fresh engine.
//!
//! What this crate never does: read or watch a file, know what time it is, or keep anything.

mod raw;
mod read;
mod settings;

mod compile;

mod expect;
mod load;

mod schema;
mod show;

pub use load::{LoadedPolicy, STARTER_POLICY, load, load_bytes};
pub use schema::json_schema;
pub use settings::setting_keys;
pub use show::describe_policy;
