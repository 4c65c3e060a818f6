//! Builds providers from the configuration. Each is built once, its requests are counted, and its failures are logged.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use collieclaw_agent::config::{
    Config, ModelServerSettings, ModelTemperature, ProviderSettings, RoutingRule,
};
use collieclaw_agent::events::{AgentEvent, EventSink};
use collieclaw_agent::usage::{MeteredProvider, TokenPrice, UsageError};
use collieclaw_providers::secret::Secret;
use collieclaw_providers::{
    CircuitBreakerSettings, FallbackObserver, MockFixture, MockProvider, OpenAiProvider, OpenAiSettings,
    Provider, ProviderError, ProviderTarget, ReliableProvider, RouterProvider,
};
use ward_diag::ErrorChain;

use crate::cli::environment::CliEnvironment;
use crate::cli::failure::CommandFailure;

/// The fixture of a mock without one in the configuration, for tests and demonstrations.
const FIXTURE_VARIABLE: &str = "COLLIECLAW_MOCK_FIXTURE";

pub(crate) fn build_provider(
    name: &str,
    config: &Config,
    environment: &CliEnvironment,
    events: &Rc<EventSink>,
) -> Result<Rc<dyn Provider>, CommandFailure> {
    ProviderBuilder { config, environment, events, built: BTreeMap::new() }.get_or_build(name)
}

/// Returns the model that a provider is asked for.
pub(crate) fn model_for<'c>(name: &str, config: &'c Config) -> &'c str {
    match config.providers.models.get(name) {
        Some(model) if name != config.default_provider => model.model(),
        _ => &config.default_model,
    }
}

struct ProviderBuilder<'m> {
    config: &'m Config,
    environment: &'m CliEnvironment,
    events: &'m Rc<EventSink>,
    built: BTreeMap<String, Rc<dyn Provider>>,
}

impl ProviderBuilder<'_> {
    fn get_or_build(&mut self, name: &str) -> Result<Rc<dyn Provider>, CommandFailure> {
        if let Some(made) = self.built.get(name) {
            return Ok(Rc::clone(made));
        }
        let provider = self.build(name)?;
        self.built.insert(name.to_owned(), Rc::clone(&provider));
        Ok(provider)
    }

    fn build(&mut self, name: &str) -> Result<Rc<dyn Provider>, CommandFailure> {
        let models = &self.config.providers.models;
        let Some(model) = models.get(name) else {
            let known = models.keys().cloned().collect::<Vec<_>>().join(", ");
            let what = format!("no such provider `{name}`; the configuration has {known}");
            return Err(CommandFailure::InvalidInput {
                what,
                cure: "run `collieclaw provider list` to see the providers",
            });
        };
        match model {
            ProviderSettings::Mock { fixture, price, .. } => {
                let named = self.environment.variable(FIXTURE_VARIABLE).map(Path::new);
                let fixture = fixture.as_deref().or(named).map(MockFixture::open).transpose()?;
                Ok(self.metered(Box::new(MockProvider::new(name, fixture)), *price))
            }
            ProviderSettings::OpenAiCompatible(server) => {
                let settings = self.server_settings(name, server);
                let temperature = server.temperature.map(ModelTemperature::value);
                let provider = OpenAiProvider::new(settings).with_temperature(temperature);
                Ok(self.metered(Box::new(provider), server.price))
            }
            ProviderSettings::Reliable { providers, failures, cool_down } => {
                let members =
                    providers.iter().map(|name| self.build_member(name)).collect::<Result<_, _>>()?;
                let breaking = CircuitBreakerSettings { failures: *failures, cool_down: *cool_down };
                let circuits = self.environment.circuits.clone();
                let concern = Box::new(ProviderEventLogger(Rc::clone(self.events)));
                Ok(Rc::new(ReliableProvider::new(name, members, breaking, circuits, concern)))
            }
            ProviderSettings::Router { default, rules } => {
                let rule = |rule: &RoutingRule| Ok((rule.when.clone(), self.build_member(&rule.provider)?));
                let rules = rules.iter().map(rule).collect::<Result<_, CommandFailure>>()?;
                let default = self.build_member(default)?;
                let (events, router) = (Rc::clone(self.events), name.to_owned());
                let chose = move |provider: &str, rule| {
                    events.emit(AgentEvent::ProviderRouted { router: &router, provider, rule });
                };
                Ok(Rc::new(RouterProvider::new(name, rules, default, Box::new(chose))))
            }
        }
    }

    fn build_member(&mut self, name: &str) -> Result<ProviderTarget, CommandFailure> {
        Ok(ProviderTarget {
            provider: self.get_or_build(name)?,
            model: model_for(name, self.config).to_owned(),
        })
    }

    fn metered(&self, provider: Box<dyn Provider>, price: TokenPrice) -> Rc<dyn Provider> {
        let events = Rc::clone(self.events);
        let trouble = move |error: &UsageError| {
            events.emit(AgentEvent::Trouble { what: &ErrorChain(error).to_string() });
        };
        let (budget, path) = (self.config.limits.budget, self.environment.home.usage());
        Rc::new(MeteredProvider::new(provider, price, budget, path, Box::new(trouble)))
    }

    fn server_settings(&self, name: &str, server: &ModelServerSettings) -> OpenAiSettings {
        let limits = &self.config.limits;
        let variable = (!server.api_key_env.is_empty()).then_some(&server.api_key_env);
        let key = variable.and_then(|variable| self.environment.variable(variable));
        OpenAiSettings {
            name: name.to_owned(),
            base_url: server.base_url.clone(),
            api_key: key.map(|key| Secret::new(key.to_owned())),
            api_key_env: variable.cloned(),
            timeout: server.timeout.unwrap_or(limits.provider_timeout),
            stall_timeout: server.stall_timeout.unwrap_or(limits.stall_timeout),
            stream: server.stream,
            max_response_bytes: limits.max_response_bytes as usize,
        }
    }
}

/// An observer that writes provider failures to the log.
struct ProviderEventLogger(Rc<EventSink>);

impl FallbackObserver for ProviderEventLogger {
    fn on_fallback(&self, from: &str, to: &str, error: &ProviderError) {
        self.0.emit(AgentEvent::ProviderFellBack { from, to, error: &error.to_string() });
    }

    fn on_circuit_open(&self, provider: &str, breaking: CircuitBreakerSettings) {
        let (failures, seconds) = (breaking.failures, breaking.cool_down.as_secs());
        self.0.emit(AgentEvent::ProviderSuspended { provider, failures, seconds });
    }
}
