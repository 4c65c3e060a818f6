//! `provider`: lists and tests model providers.

use std::rc::Rc;

use clap::Subcommand;
use collieclaw_agent::config::{ModelServerSettings, ProviderSettings};
use collieclaw_providers::cancel::CancelFlag;
use serde_json::json;
use ward_terminal::{align_columns, escape_line};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::interrupt::InterruptHandler;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ProviderCommand {
    /// List configured providers.
    #[command(after_help = "Example:\n  collieclaw provider list")]
    List,
    /// Send a short request to a provider, and report why it fails.
    #[command(after_help = "Example:\n  collieclaw provider test local")]
    Test {
        /// Name of the provider in the configuration
        name: String,
    },
}

pub(crate) fn run(
    provider: &ProviderCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    match provider {
        ProviderCommand::List => {
            let models = &config.providers.models;
            let rows = |(name, model): (&String, &ProviderSettings)| {
                let mark = if *name == config.default_provider { "*" } else { " " };
                let server = match model {
                    ProviderSettings::Mock { .. } => "answers from a script, needs no key".to_owned(),
                    ProviderSettings::OpenAiCompatible(ModelServerSettings {
                        base_url, api_key_env, ..
                    }) => {
                        let key = match api_key_env.as_str() {
                            "" => "no key".to_owned(),
                            name if environment.variable(name).is_some() => format!("key from {name}"),
                            name => format!("{name} is not set"),
                        };
                        format!("{base_url} ({key})")
                    }
                    ProviderSettings::Reliable { providers, .. } => {
                        format!("fallback: {}", providers.join(", "))
                    }
                    ProviderSettings::Router { default, rules } => {
                        let others = rules.iter().map(|rule| rule.provider.as_str()).collect::<Vec<_>>();
                        format!("rules: {}; default: {default}", others.join(", "))
                    }
                };
                vec![format!("{mark} {name}"), model.kind().to_owned(), model.model().to_owned(), server]
            };
            let text = || align_columns(&models.iter().map(rows).collect::<Vec<_>>());
            screen.print_answer(&json!({ "default": config.default_provider, "models": models }), text);
        }
        ProviderCommand::Test { name } => {
            let events = Rc::new(wiring::open_event_log(&config, environment)?);
            let provider = wiring::build_provider(name, &config, environment, &events)?;
            let cancel = CancelFlag::new().map_err(CommandFailure::io("set up cancelling"))?;
            let interrupt = InterruptHandler::install().map_err(CommandFailure::io("listen for Ctrl-C"))?;
            interrupt.set_turn(Some(cancel.clone()));
            let checked = provider
                .check(wiring::model_for(name, &config), &cancel)
                .map_err(CommandFailure::Provider)?;
            let milliseconds = u64::try_from(checked.elapsed.as_millis()).unwrap_or(u64::MAX);
            let value = json!({ "provider": name, "model": checked.model, "said": checked.reply, "milliseconds": milliseconds });
            screen.print_answer(&value, || {
                let (model, said) = (escape_line(&checked.model), escape_line(&checked.reply));
                format!("{name} answers: model {model}, {milliseconds} ms: {said}")
            });
        }
    }
    Ok(())
}
