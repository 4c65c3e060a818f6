//! `config`: is it valid, and what is in force?

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::Screen;

#[derive(Subcommand)]
pub(crate) enum Config {
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

pub(crate) fn run(config: &Config, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    match config {
        Config::Validate { file } => {
            let path = file.clone().unwrap_or_else(|| environment.home.config());
            let setup = match file {
                None => open::checked_setup(environment)?,
                Some(file) => {
                    let bytes =
                        std::fs::read(file).map_err(Failure::io(format!("read {}", file.display())))?;
                    open::check(file, &bytes, environment)?
                }
            };
            setup.absent_tools(environment).iter().for_each(|absent| screen.remark(absent));
            screen.answer(&json!({ "valid": true, "file": path }), || format!("{} is valid", path.display()));
        }
        Config::Show => {
            let config = open::config(environment)?;
            let text = toml::to_string_pretty(&config).map_err(|error| Failure::Wrong {
                what: format!("the configuration can't be shown: {error}"),
                cure: "use `--output json`",
            })?;
            screen.answer(&config, || text);
        }
    }
    Ok(())
}
