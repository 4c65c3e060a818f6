//! The policy language: turns text into a checked [`Policy`](shepherd_core::policy::Policy), or reports *all* its faults.
//!
//! Start at [`load()`]. Loading has three steps, and each step records every fault it finds: `read` turns the text into a
//! `RawPolicy` with the place of each value, `compile` looks up names and fills in defaults, and `expect` runs the
//! policy's own examples on a fresh engine.
//!
//! This crate reads and watches no files, does not know the time, and keeps no state.

mod raw;
mod read;
mod settings;

mod compile;

mod expect;
mod load;

mod schema;
mod show;

pub use load::{LoadedPolicy, STARTER_POLICY, load, load_bytes};
pub use read::{InvalidNight, parse_night};
pub use schema::json_schema;
pub use settings::setting_keys;
/// The result of [`parse_night`].
pub use shepherd_core::policy::NightHours;
pub use show::describe_policy;
