//! All automation of the workspace: `cargo xtask test` and other commands, listed by `cargo xtask help`.
//!
//! Start at [`mod@test`], which developers and CI run. Nothing here is part of a product,
//! and no product crate may depend on it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its results")]

mod background;
mod bench;
mod bypass;
mod dependencies;
mod fuzz;
mod located_error;
mod model;
mod mutants;
mod package;
mod quick;
mod readme_commands;
mod setup;
mod terminal;
mod test;
mod tidy;
mod units;
mod unprivileged;
mod vm;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::CargoWorkspace;

/// All automation of the workspace.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct XtaskArguments {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Install the programs that the tests need and this machine lacks.
    Setup,
    /// Run every check; exit code 0 means that all of them passed.
    Test(test::TestSelection),
    /// Check the crates that you changed: format, structure, lints and pure tests, within a minute.
    Quick,
    /// Check what the compiler can't: dependencies between crates, orphaned files, links, requirements.
    Tidy,
    /// Run the benchmarks and compare each figure with its bar.
    Bench {
        /// Run only benchmarks whose `package/name` contains this text.
        filter: Option<String>,
    },
    /// Try every known way around Shepherd's limits on the real daemon, and print the results.
    Bypass,
    /// Run the fuzz targets for longer than the tests do.
    Fuzz(fuzz::FuzzOptions),
    /// Change the deciding crates one expression at a time, and list the changes that no test notices.
    Mutants(mutants::MutantsOptions),
    /// Make the Debian packages of both products.
    Package(package::PackageOptions),
    /// Install the packages on Debian in a virtual machine, by the guide's own words, and play a family's day.
    Vm(vm::VmOptions),
    /// Run CollieClaw with a real, small model; installs the server and the model first.
    Model,
}

fn main() -> ExitCode {
    match run(&XtaskArguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{} {error:#}", terminal::failure("error:"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &XtaskArguments) -> Result<()> {
    let workspace = CargoWorkspace::load()?;
    match &arguments.task {
        XtaskCommand::Setup => setup::run(&workspace),
        XtaskCommand::Test(selection) => test::run(&workspace, selection),
        XtaskCommand::Quick => quick::run(&workspace),
        XtaskCommand::Tidy => tidy::run(&workspace),
        XtaskCommand::Bench { filter } => bench::run(&workspace, filter.as_deref()),
        XtaskCommand::Bypass => bypass::run(&workspace),
        XtaskCommand::Fuzz(choice) => fuzz::run(&workspace, choice),
        XtaskCommand::Mutants(options) => mutants::run(&workspace, options),
        XtaskCommand::Package(options) => package::build(&workspace, options).map(drop),
        XtaskCommand::Vm(options) => vm::run(&workspace, options),
        XtaskCommand::Model => model::run(&workspace),
    }
}
