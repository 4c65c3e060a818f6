//! The command line: parses arguments, runs the command, and reports its failure.

mod arguments;
mod confirm;
mod environment;
mod failure;
mod interrupt;
mod output;
mod wiring;

mod agent;
mod allow;
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
mod trash;
mod usage;
mod workspace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use ward_cli::OutputFormat;

use arguments::{CollieclawArgs, CollieclawCommand};
use environment::CliEnvironment;
use failure::CommandFailure;
use output::OutputPrinter;

pub(crate) fn main() -> ExitCode {
    if asks_for_version_only() {
        // Nothing is left to do if standard error is closed.
        let _ = writeln!(io::stdout(), "{} {}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let arguments = CollieclawArgs::try_parse().unwrap_or_else(|error| exit_with_usage_error(&error));
    let screen = OutputPrinter::new(arguments.output.format);
    match run(arguments.command, &screen).and_then(|()| screen.check_written()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.print_failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Returns whether the command line is just `--version`. Scripts call it often, and building the whole argument parser
/// would be the slowest part of the answer.
fn asks_for_version_only() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|word| word == "--version" || word == "-V") && words.next().is_none()
}

/// Reports a command line that can't be parsed, as JSON if `--output json` was given.
fn exit_with_usage_error(error: &clap::Error) -> ! {
    let words: Vec<_> = std::env::args_os().collect();
    let for_programs = words.iter().any(|word| word == "--output=json")
        || words.windows(2).any(|pair| pair == ["--output", "json"]);
    let screen = OutputPrinter::new(if for_programs { OutputFormat::Json } else { OutputFormat::Text });
    let (what, cure) = (describe_parse_error(error), "run `collieclaw --help` to see the commands");
    if error.use_stderr() && screen.logs_json() {
        screen.print_failure(&CommandFailure::InvalidInput { what, cure });
        std::process::exit(2);
    }
    if error.use_stderr() && for_programs {
        let error = json!({ "error": { "code": "command-line", "message": what, "help": cure } });
        screen.print_answer(&error, String::new);
    }
    error.exit()
}

/// Returns the parse error on one line, with clap's suggestion.
fn describe_parse_error(error: &clap::Error) -> String {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command given".to_owned();
    }
    let text = error.render().to_string();
    let parts = text.split("\n\n").take_while(|part| !part.starts_with("Usage:"));
    parts.map(|part| part.trim().trim_start_matches("error: ")).collect::<Vec<_>>().join("; ")
}

fn run(command: CollieclawCommand, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let environment = || CliEnvironment::read();
    match command {
        CollieclawCommand::Init => init::run(&environment()?, screen),
        CollieclawCommand::Onboard(onboard) => onboard::run(&onboard, &environment()?, screen),
        CollieclawCommand::Config(config) => config::run(&config, &environment()?, screen),
        CollieclawCommand::Provider(provider) => provider::run(&provider, &environment()?, screen),
        CollieclawCommand::Tool(tool) => tool::run(&tool, &environment()?, screen),
        CollieclawCommand::Agent(agent) => agent::run(&agent, &environment()?, screen),
        CollieclawCommand::Gateway(gateway) => gateway::run(&gateway, environment()?, screen),
        CollieclawCommand::Memory(memory) => memory::run(&memory, &environment()?, screen),
        CollieclawCommand::Receipt(receipt) => receipt::run(&receipt, &environment()?, screen),
        CollieclawCommand::Approval(approval) => approval::run(&approval, &environment()?, screen),
        CollieclawCommand::Service(service) => service::run(&service, &environment()?, screen),
        CollieclawCommand::Estop(estop) => estop::run(&estop, &environment()?, screen),
        CollieclawCommand::Sop(sop) => sop::run(&sop, &environment()?, screen),
        CollieclawCommand::Workspace(workspace) => workspace::run(&workspace, &environment()?, screen),
        CollieclawCommand::Allow(arguments) => allow::allow(&arguments, &environment()?, screen),
        CollieclawCommand::Disallow(arguments) => allow::disallow(&arguments, &environment()?, screen),
        CollieclawCommand::Policy(policy) => policy::run(&policy, &environment()?, screen),
        CollieclawCommand::Usage(counted) => usage::run(&counted, &environment()?, screen),
        CollieclawCommand::Mcp(mcp) => mcp::run(&mcp, &environment()?, screen),
        CollieclawCommand::Plugin(plugin) => plugin::run(&plugin, &environment()?, screen),
        CollieclawCommand::Trash(trash) => trash::run(&trash, &environment()?, screen),
        CollieclawCommand::Doctor(doctor) => doctor::run(&doctor, &environment()?, screen),
        CollieclawCommand::Completions(completions) => generate::completions(&completions, screen),
        CollieclawCommand::Man(man) => generate::man(&man, screen),
    }
}
