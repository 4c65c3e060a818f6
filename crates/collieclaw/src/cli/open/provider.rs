//! Providers as the configuration wants them: each is made once, counted where it is asked, and told of when it fails.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use collieclaw::config::{Config, Model, Rule, Server};
use collieclaw::events::{Event, Events};
use collieclaw::providers::{
    Breaking, Concern, Fixture, Member, Mock, OpenAi, OpenAiSettings, Provider, ProviderError, Reliable,
    Router,
};
use collieclaw::secret::Secret;
use collieclaw::usage::{Metered, Price, UsageError};
use ward_diag::Chain;

use crate::cli::environment::Environment;
use crate::cli::failure::Failure;

/// The fixture of a mock that names none, for tests and demonstrations.
const FIXTURE_VARIABLE: &str = "COLLIECLAW_MOCK_FIXTURE";

pub(crate) fn provider(
    name: &str,
    config: &Config,
    environment: &Environment,
    events: &Rc<Events>,
) -> Result<Rc<dyn Provider>, Failure> {
    Maker { config, environment, events, made: BTreeMap::new() }.provider(name)
}

/// The model that a provider is asked for.
pub(crate) fn model_of<'c>(name: &str, config: &'c Config) -> &'c str {
    match config.providers.models.get(name) {
        Some(model) if name != config.default_provider => model.model(),
        _ => &config.default_model,
    }
}

struct Maker<'m> {
    config: &'m Config,
    environment: &'m Environment,
    events: &'m Rc<Events>,
    made: BTreeMap<String, Rc<dyn Provider>>,
}

impl Maker<'_> {
    fn provider(&mut self, name: &str) -> Result<Rc<dyn Provider>, Failure> {
        if let Some(made) = self.made.get(name) {
            return Ok(Rc::clone(made));
        }
        let provider = self.make(name)?;
        self.made.insert(name.to_owned(), Rc::clone(&provider));
        Ok(provider)
    }

    fn make(&mut self, name: &str) -> Result<Rc<dyn Provider>, Failure> {
        let models = &self.config.providers.models;
        let Some(model) = models.get(name) else {
            let known = models.keys().cloned().collect::<Vec<_>>().join(", ");
            let what = format!("there is no provider `{name}`; there are {known}");
            return Err(Failure::Wrong { what, cure: "`collieclaw provider list` shows them" });
        };
        match model {
            Model::Mock { fixture, price, .. } => {
                let named = self.environment.variable(FIXTURE_VARIABLE).map(Path::new);
                let fixture = fixture.as_deref().or(named).map(Fixture::open).transpose()?;
                Ok(self.metered(Box::new(Mock::new(name, fixture)), *price))
            }
            Model::OpenAiCompatible(server) => {
                let settings = self.settings(name, server);
                Ok(self.metered(Box::new(OpenAi::new(settings)), server.price))
            }
            Model::Reliable { providers, failures, cool_down } => {
                let members = providers.iter().map(|name| self.member(name)).collect::<Result<_, _>>()?;
                let breaking = Breaking { failures: *failures, cool_down: *cool_down };
                let circuits = self.environment.circuits.clone();
                let concern = Box::new(Told(Rc::clone(self.events)));
                Ok(Rc::new(Reliable::new(name, members, breaking, circuits, concern)))
            }
            Model::Router { default, rules } => {
                let rule = |rule: &Rule| Ok((rule.when.clone(), self.member(&rule.provider)?));
                let rules = rules.iter().map(rule).collect::<Result<_, Failure>>()?;
                let default = self.member(default)?;
                let (events, router) = (Rc::clone(self.events), name.to_owned());
                let chose = move |provider: &str, rule| {
                    events.tell(Event::ProviderRouted { router: &router, provider, rule });
                };
                Ok(Rc::new(Router::new(name, rules, default, Box::new(chose))))
            }
        }
    }

    fn member(&mut self, name: &str) -> Result<Member, Failure> {
        Ok(Member { provider: self.provider(name)?, model: model_of(name, self.config).to_owned() })
    }

    fn metered(&self, provider: Box<dyn Provider>, price: Price) -> Rc<dyn Provider> {
        let events = Rc::clone(self.events);
        let trouble = move |error: &UsageError| {
            events.tell(Event::Trouble { what: &Chain(error).to_string() });
        };
        let (budget, path) = (self.config.limits.budget, self.environment.home.usage());
        Rc::new(Metered::new(provider, price, budget, path, Box::new(trouble)))
    }

    fn settings(&self, name: &str, server: &Server) -> OpenAiSettings {
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

/// Tells the log.
struct Told(Rc<Events>);

impl Concern for Told {
    fn fell_back(&self, from: &str, to: &str, error: &ProviderError) {
        self.0.tell(Event::ProviderFellBack { from, to, error: &error.to_string() });
    }

    fn left_out(&self, provider: &str, breaking: Breaking) {
        let (failures, seconds) = (breaking.failures, breaking.cool_down.as_secs());
        self.0.tell(Event::ProviderLeftOut { provider, failures, seconds });
    }
}
