//! `shepherd`: the command line for parents, administrators and scripts.
//!
//! It decides and enforces nothing; it asks and shows. Exit codes: 0 done, 1 the answer is no (a log
//! that was tampered with, a policy that is not valid, a tour that did not go as told), 2 the command line is wrong, 3 something
//! outside failed (a file, the kernel).

mod audit;
mod doctor;
mod failure;
mod policy;
mod screen;
mod tour;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use failure::Failure;
use screen::Screen;

#[derive(Parser)]
#[command(
    name = "shepherd",
    version,
    about = "One authority over what runs on this machine, when and for how long",
    after_help = "Examples:\n  shepherd                     a tour of what this machine can enforce\n  \
                  shepherd doctor              what is in force here, and how to get more\n  \
                  shepherd policy check FILE   is the policy valid, and if not, what would be right?\n  \
                  shepherd policy show FILE    what the policy says, in plain sentences\n  \
                  shepherd audit verify LOG    has the log been tampered with?"
)]
struct Arguments {
    /// How to answer.
    #[arg(long, value_enum, default_value_t, global = true)]
    output: OutputFormat,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Shows both products' shared ground at work, in a few seconds. The default.
    Tour,
    /// Says what this machine can enforce, what it can't, and what would help.
    Doctor,
    /// Reads a policy file.
    #[command(subcommand)]
    Policy(policy::Command),
    /// Looks after the tamper-evident log.
    #[command(subcommand)]
    Audit(audit::Command),
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For scripts: one JSON value.
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.output == OutputFormat::Json && matches!(arguments.command, None | Some(Command::Tour)) {
        let fault = "the tour is for people; scripts ask `shepherd doctor --output json`";
        Arguments::command().error(ErrorKind::ArgumentConflict, fault).exit();
    }
    let mut screen = Screen::new(arguments.output);
    match run(&arguments, &mut screen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.failure(&failure);
            failure.exit_code()
        }
    }
}

fn run(arguments: &Arguments, screen: &mut Screen) -> Result<(), Failure> {
    match arguments.command.as_ref().unwrap_or(&Command::Tour) {
        Command::Tour => tour::run(screen),
        Command::Doctor => doctor::run(screen),
        Command::Policy(command) => policy::run(command, screen),
        Command::Audit(command) => audit::run(command, screen),
    }
}
