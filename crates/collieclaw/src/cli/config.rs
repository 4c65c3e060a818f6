//! `config`: is it valid, and what is in force?

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Reports every error at once, each with its line and its cure.
    #[command(
        after_help = "Examples:\n  collieclaw config validate\n  collieclaw config validate ./config.toml"
    )]
    Validate {
        /// Another file than the one in the home.
        file: Option<PathBuf>,
    },
    /// What is in force, defaults included. Secrets are not in it: it names the variables that hold them.
    #[command(after_help = "Examples:\n  collieclaw config show\n  collieclaw config show --output json")]
    Show,
}

pub(crate) fn run(
    config: &ConfigCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    match config {
        ConfigCommand::Validate { file } => {
            let path = file.clone().unwrap_or_else(|| environment.home.config());
            let setup = match file {
                None => wiring::load_checked_setup(environment)?,
                Some(file) => {
                    let bytes = std::fs::read(file)
                        .map_err(CommandFailure::io(format!("read {}", file.display())))?;
                    wiring::parse_checked_setup(file, &bytes, environment)?
                }
            };
            setup.missing_tools(environment).iter().for_each(|absent| screen.print_remark(absent));
            screen.print_answer(&json!({ "valid": true, "file": path }), || {
                format!("{} is valid", path.display())
            });
        }
        ConfigCommand::Show => {
            let config = wiring::load_config(environment)?;
            let text = toml::to_string_pretty(&config).map_err(|error| CommandFailure::InvalidInput {
                what: format!("the configuration can't be shown: {error}"),
                cure: "use `--output json`",
            })?;
            screen.print_answer(&config, || text);
        }
    }
    Ok(())
}
