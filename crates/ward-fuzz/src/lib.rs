//! Mutation fuzzing inside ordinary tests, from a seed and a corpus, for functions that must not panic.
//!
//! Only tests use this crate, so it has no dependencies and knows nothing about the products. It works with an
//! ordinary compiler: instead of measuring coverage it compares the values that the function under test returns. An
//! input with a return value that was not seen before joins the corpus and is mutated further.
//!
//! ```no_run
//! # fn parse(_: &[u8]) -> Result<(), String> { Ok(()) }
//! let corpus = [b"{\"id\":1}".to_vec()];
//! let report = ward_fuzz::run("protocol", &corpus, |bytes| parse(bytes)).unwrap();
//! println!("{report}");
//! ```
//!
//! A fuzz target is a test in a module called `fuzz` of `tests/it`. In the normal tests each target runs for
//! [`DEFAULT_SECONDS`] with a fixed seed. `cargo xtask fuzz` runs the targets longer and with another seed each time, by
//! setting [`SECONDS_VARIABLE`] and [`SEED_VARIABLE`]. A failing input is minimised and saved in
//! `tests/it/regressions/<name>/`; every later run replays the saved inputs first.
//!
//! Limitation: a crash of the whole process, such as a stack overflow, is reported without its input. A second run with
//! the same seed makes the same inputs, so a debugger finds the crash.

#![warn(missing_docs)]

mod failure;
mod mutate;
mod random;
mod regressions;
mod run;
mod settings;

pub use failure::{FuzzFailure, FuzzFailureKind};
pub use mutate::InputMutator;
pub use random::SeededRandom;
pub use run::{FuzzReport, FuzzRun, run};
pub use settings::{DEFAULT_SECONDS, SECONDS_VARIABLE, SEED_VARIABLE};
