//! `config`: validates the configuration, and shows the settings in force.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration and report every error at once, with its line and how to fix it.
    #[command(
        after_help = "Examples:\n  collieclaw config validate\n  collieclaw config validate ./config.toml"
    )]
    Validate {
        /// File to check instead of the configuration in the home
        file: Option<PathBuf>,
    },
    /// Show the settings in force, defaults included. Secrets are not shown, only the variables that hold them.
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
                what: format!("could not show the configuration: {error}"),
                cure: "use `--output json`",
            })?;
            screen.print_answer(&config, || text);
        }
    }
    Ok(())
}
