//! `config`: validates the configuration, and shows the settings in force.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring::{self, TrustMode, WorkspaceArgs};
use super::workspace::{escape_path, format_details, rules_to_json};

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
    Show {
        #[command(flatten)]
        workspace: WorkspaceArgs,
    },
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
        ConfigCommand::Show { workspace } => {
            let choice = wiring::choose_workspace(workspace, TrustMode::Never, environment, screen)?;
            let config = wiring::load_setup_in(&choice, environment)?.config;
            let failed = |error: &dyn std::fmt::Display| CommandFailure::InvalidInput {
                what: format!("could not show the configuration: {error}"),
                cure: "use `--output json`",
            };
            let text = toml::to_string_pretty(&config).map_err(|error| failed(&error))?;
            let mut value = serde_json::to_value(&config).map_err(|error| failed(&error))?;
            let rules = &config.workspace;
            if let Some(keys) = value.as_object_mut() {
                keys.insert("workspace".to_owned(), rules_to_json(rules, &choice));
            }
            screen.print_answer(&value, || {
                // Comments, so that the text can be read back as a configuration.
                let details = format_details(rules).into_iter();
                let details: Vec<String> =
                    details.map(|(name, value)| format!("# {name:<12} {value}")).collect();
                format!(
                    "{text}\n# Rules of the workspace {}\n{}",
                    escape_path(&rules.path),
                    details.join("\n")
                )
            });
        }
    }
    Ok(())
}
