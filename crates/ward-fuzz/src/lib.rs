//! Mutation fuzzing inside ordinary tests: a seed, a corpus, a function that must not panic.
//!
//! Only tests use it, so it knows no product and brings no dependency. It needs no special compiler: instead of
//! coverage it goes by what the function under test returns. An input with an answer that was not seen before joins
//! the corpus, and is mutated in its turn.
//!
//! ```no_run
//! # fn parse(_: &[u8]) -> Result<(), String> { Ok(()) }
//! let corpus = [b"{\"id\":1}".to_vec()];
//! let report = ward_fuzz::run("protocol", &corpus, |bytes| parse(bytes)).unwrap();
//! println!("{report}");
//! ```
//!
//! A target is a test in a module called `fuzz` of `tests/it`. In the normal tests it runs for [`DEFAULT_SECONDS`]
//! with a fixed seed; `cargo xtask fuzz` runs it longer, with another seed each time, through [`SECONDS_VARIABLE`] and
//! [`SEED_VARIABLE`]. An input that fails is made smaller and kept in `tests/it/regressions/<name>/`, from where every
//! later run replays it first.
//!
//! What it can't see: a crash of the whole process, such as a stack overflow, is reported without its input. The
//! seed is the same again, so a debugger finds it.

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
