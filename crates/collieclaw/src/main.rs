//! `collieclaw`: the command line of the agent runtime.
//!
//! The composition root: only here are arguments, environment, signals and standard streams touched. Start at
//! `cli/arguments.rs`, what can be said; `cli/open.rs` puts the parts together; each command has a module of its own.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
