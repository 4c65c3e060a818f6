//! `provider`: who can answer.

use std::rc::Rc;

use clap::Subcommand;
use collieclaw::cancel::Cancel;
use collieclaw::channels::visible;
use collieclaw::config::{Model, Server};
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::open;
use super::screen::{Screen, table};

#[derive(Subcommand)]
pub(crate) enum Provider {
    /// The providers of the configuration.
    #[command(after_help = "Example:\n  collieclaw provider list")]
    List,
    /// Asks one for a word, and says what is wrong if none comes.
    #[command(after_help = "Example:\n  collieclaw provider test local")]
    Test {
        /// Its name in the configuration.
        name: String,
    },
}

pub(crate) fn run(provider: &Provider, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let config = open::config(environment)?;
    match provider {
        Provider::List => {
            let models = &config.providers.models;
            let rows = |(name, model): (&String, &Model)| {
                let mark = if *name == config.default_provider { "*" } else { " " };
                let server = match model {
                    Model::Mock { .. } => "answers from a script, needs no key".to_owned(),
                    Model::OpenAiCompatible(Server { base_url, api_key_env, .. }) => {
                        let key = match api_key_env.as_str() {
                            "" => "no key".to_owned(),
                            name if environment.variable(name).is_some() => format!("key from {name}"),
                            name => format!("{name} is not set"),
                        };
                        format!("{base_url} ({key})")
                    }
                    Model::Reliable { providers, .. } => {
                        format!("the first that answers of {}", providers.join(", "))
                    }
                    Model::Router { default, rules } => {
                        let others = rules.iter().map(|rule| rule.provider.as_str()).collect::<Vec<_>>();
                        format!("by rules {}, else {default}", others.join(", "))
                    }
                };
                vec![format!("{mark} {name}"), model.kind().to_owned(), model.model().to_owned(), server]
            };
            let text = || table(&models.iter().map(rows).collect::<Vec<_>>());
            screen.answer(&json!({ "default": config.default_provider, "models": models }), text);
        }
        Provider::Test { name } => {
            let events = Rc::new(open::events(&config, environment)?);
            let provider = open::provider(name, &config, environment, &events)?;
            let cancel = Cancel::new().map_err(Failure::io("set up cancelling"))?;
            let interrupt = Interrupt::listen().map_err(Failure::io("listen for Ctrl-C"))?;
            interrupt.set(Some(cancel.clone()));
            let checked =
                provider.check(open::model_of(name, &config), &cancel).map_err(Failure::Provider)?;
            let milliseconds = u64::try_from(checked.took.as_millis()).unwrap_or(u64::MAX);
            let value = json!({ "provider": name, "model": checked.model, "said": checked.said, "milliseconds": milliseconds });
            screen.answer(&value, || {
                let (model, said) = (visible(&checked.model), visible(&checked.said));
                format!("{name} answers: model {model}, {milliseconds} ms: {said}")
            });
        }
    }
    Ok(())
}
