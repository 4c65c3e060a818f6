//! `collieclaw`: the command line of the agent runtime.
//!
//! The composition root: only this crate touches arguments, environment, signals and standard streams. Start at
//! `cli/arguments.rs` for the grammar and `cli/wiring.rs` for the construction; each command has its own module.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
