//! What can be said on the command line, and what comes of it.

mod arguments;
mod confirm;
mod environment;
mod failure;
mod interrupt;
mod open;
mod screen;

mod agent;
mod approval;
mod config;
mod doctor;
mod estop;
mod gateway;
mod generate;
mod init;
mod mcp;
mod memory;
mod onboard;
mod plugin;
mod policy;
mod provider;
mod receipt;
mod service;
mod sop;
mod tool;
mod usage;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use arguments::{Arguments, Command, OutputFormat};
use environment::Environment;
use failure::Failure;
use screen::Screen;

pub(crate) fn main() -> ExitCode {
    if asks_for_version_only() {
        // Nothing is left to do when nobody reads it.
        let _ = writeln!(io::stdout(), "{} {}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::try_parse().unwrap_or_else(|error| refused(&error));
    let screen = Screen::new(arguments.output);
    match run(arguments.command, &screen).and_then(|()| screen.arrived()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// That is how others look whether we are there, often. The whole grammar takes longer than all else that it needs.
fn asks_for_version_only() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|word| word == "--version" || word == "-V") && words.next().is_none()
}

/// A command line that can't be read. Whoever asked for JSON on it gets JSON as well.
fn refused(error: &clap::Error) -> ! {
    let words: Vec<_> = std::env::args_os().collect();
    let for_programs = words.iter().any(|word| word == "--output=json")
        || words.windows(2).any(|pair| pair == ["--output", "json"]);
    let screen = Screen::new(if for_programs { OutputFormat::Json } else { OutputFormat::Text });
    let (what, cure) = (fault_in(error), "`collieclaw --help` shows what can be said");
    if error.use_stderr() && screen.logs_for_programs() {
        screen.failure(&Failure::Wrong { what, cure });
        std::process::exit(2);
    }
    if error.use_stderr() && for_programs {
        let told = json!({ "error": { "code": "command-line", "message": what, "help": cure } });
        screen.answer(&told, String::new);
    }
    error.exit()
}

/// The fault on one line, with what may have been meant.
fn fault_in(error: &clap::Error) -> String {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing".to_owned();
    }
    let text = error.render().to_string();
    let told = text.split("\n\n").take_while(|part| !part.starts_with("Usage:"));
    told.map(|part| part.trim().trim_start_matches("error: ")).collect::<Vec<_>>().join("; ")
}

fn run(command: Command, screen: &Screen) -> Result<(), Failure> {
    let environment = || Environment::read();
    match command {
        Command::Init => init::run(&environment()?, screen),
        Command::Onboard(onboard) => onboard::run(&onboard, &environment()?, screen),
        Command::Config(config) => config::run(&config, &environment()?, screen),
        Command::Provider(provider) => provider::run(&provider, &environment()?, screen),
        Command::Tool(tool) => tool::run(&tool, &environment()?, screen),
        Command::Agent(agent) => agent::run(&agent, &environment()?, screen),
        Command::Gateway(gateway) => gateway::run(&gateway, environment()?, screen),
        Command::Memory(memory) => memory::run(&memory, &environment()?, screen),
        Command::Receipt(receipt) => receipt::run(&receipt, &environment()?, screen),
        Command::Approval(approval) => approval::run(&approval, &environment()?, screen),
        Command::Service(service) => service::run(&service, &environment()?, screen),
        Command::Estop(estop) => estop::run(&estop, &environment()?, screen),
        Command::Sop(sop) => sop::run(&sop, &environment()?, screen),
        Command::Policy(policy) => policy::run(&policy, &environment()?, screen),
        Command::Usage(counted) => usage::run(&counted, &environment()?, screen),
        Command::Mcp(mcp) => mcp::run(&mcp, &environment()?, screen),
        Command::Plugin(plugin) => plugin::run(&plugin, &environment()?, screen),
        Command::Doctor => doctor::run(&environment()?, screen),
        Command::Completions(completions) => generate::completions(&completions, screen),
        Command::Man(man) => generate::man(&man, screen),
    }
}
