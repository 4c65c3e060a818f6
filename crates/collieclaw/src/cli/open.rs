//! Puts the parts together, as few as a command needs.

use std::cell::RefCell;
use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use collieclaw::config::{self, Config, Model};
use collieclaw::events::{Event, Events};
use collieclaw::memory::Memory;
use collieclaw::providers::{Fixture, Mock, OpenAi, OpenAiSettings, Provider};
use collieclaw::receipts::{Receipts, hash_of};
use collieclaw::runtime::{Door, Rules};
use collieclaw::secret::Secret;
use collieclaw::security::{SystemFacts, Workspace};
use collieclaw::tools;
use collieclaw_gate::Autonomy;
use serde_json::json;
use ward_diag::Source;

use super::environment::Environment;
use super::failure::Failure;

/// Overrides the fixture of the mock, for tests and demonstrations.
const FIXTURE_VARIABLE: &str = "COLLIECLAW_MOCK_FIXTURE";

pub(crate) fn config(environment: &Environment) -> Result<Config, Failure> {
    let path = environment.home.config();
    let bytes = trusted(&path)?;
    read(&path, &bytes, environment)
}

pub(crate) fn read(path: &Path, bytes: &[u8], environment: &Environment) -> Result<Config, Failure> {
    let tools = tools::built_in();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let source = Source::from_bytes(path.display().to_string(), bytes);
    config::read(source, &environment.surroundings, &names)
        .map_err(|report| Failure::Config { report: Box::new(report) })
}

/// A file whose rules others can change has no rules of ours.
fn trusted(path: &Path) -> Result<Vec<u8>, Failure> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::NotSetUp { config: path.to_owned() });
        }
        metadata => metadata.map_err(Failure::io(format!("look at {}", path.display())))?,
    };
    let ours = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    if !metadata.is_file() || !ours || metadata.mode() & 0o022 != 0 {
        return Err(Failure::Untrusted { path: path.to_owned() });
    }
    fs::read(path).map_err(Failure::io(format!("read {}", path.display())))
}

pub(crate) fn workspace(config: &Config) -> Result<Workspace, Failure> {
    let path = &config.workspace_dir;
    Workspace::open(path).map_err(|source| Failure::Workspace { path: path.clone(), source })
}

pub(crate) fn rules(
    config: &Config,
    workspace: &Workspace,
    environment: &Environment,
) -> Result<Rules, Failure> {
    let policy = config.gate_policy(workspace.path().to_owned(), &environment.surroundings);
    let policy_hash = hash_of(&json!({
        "security": config.security,
        "workspace": policy.workspace,
        "tools_allow": config.channels.cli.tools_allow,
        "limits": config.limits,
    }))?;
    Ok(Rules { tools: tools::built_in(), policy, policy_hash, facts: Box::new(SystemFacts) })
}

pub(crate) fn memory(config: &Config) -> Result<Memory, Failure> {
    Ok(Memory::open(&config.memory.path)?)
}

pub(crate) fn door(config: &Config, environment: &Environment) -> Result<Door, Failure> {
    let events = events(config, environment);
    events.tell(Event::Startup { version: env!("CARGO_PKG_VERSION") });
    events.tell(Event::ConfigPath { path: &environment.home.config() });
    let workspace = workspace(config)?;
    events.tell(Event::WorkspacePath { path: workspace.path() });
    let receipts = if config.receipts.enabled {
        let (receipts, recovered) = Receipts::open(&config.receipts.path, environment.home.intents())?;
        for what in &recovered {
            events.tell(Event::ReceiptsRecovered { what });
        }
        receipts
    } else {
        events.tell(Event::Trouble { what: "receipts are switched off in the configuration" });
        Receipts::off()
    };
    Ok(Door {
        rules: rules(config, &workspace, environment)?,
        memory: memory(config)?,
        bounds: config.tool_bounds(),
        home: environment.home.clone(),
        receipts: RefCell::new(receipts),
        workspace,
        events,
    })
}

fn events(config: &Config, environment: &Environment) -> Events {
    let (form, least) = environment.log(std::io::stderr().is_terminal());
    let events = Events::new(form, least, stderr());
    if config.security.audit_log { events.with_audit(environment.home.audit_log()) } else { events }
}

/// Standard error, without colours where nobody would see them.
pub(crate) fn stderr() -> Box<dyn Write> {
    Box::new(anstream::stderr())
}

pub(crate) fn provider(
    name: &str,
    config: &Config,
    environment: &Environment,
) -> Result<Box<dyn Provider>, Failure> {
    let Some(model) = config.providers.models.get(name) else {
        let known = config.providers.models.keys().cloned().collect::<Vec<_>>().join(", ");
        let what = format!("there is no provider `{name}`; there are {known}");
        return Err(Failure::Wrong { what, cure: "`collieclaw provider list` shows them" });
    };
    match model {
        Model::Mock { fixture, .. } => {
            let named = environment.variable(FIXTURE_VARIABLE).map(Path::new);
            let fixture = named.or(fixture.as_deref()).map(Fixture::open).transpose()?;
            Ok(Box::new(Mock::new(name, fixture)))
        }
        Model::OpenAiCompatible { base_url, api_key_env, .. } => {
            let key = api_key_env.as_deref().and_then(|variable| environment.variable(variable));
            Ok(Box::new(OpenAi::new(OpenAiSettings {
                name: name.to_owned(),
                base_url: base_url.clone(),
                api_key: key.map(|key| Secret::new(key.to_owned())),
                api_key_env: api_key_env.clone(),
                timeout: config.limits.provider_timeout,
                max_response_bytes: config.limits.max_response_bytes as usize,
            })))
        }
    }
}

/// Another level for one command; it can only be asked about, not used.
pub(crate) fn autonomy(word: &str) -> Option<Autonomy> {
    [Autonomy::ReadOnly, Autonomy::Supervised, Autonomy::Full]
        .into_iter()
        .find(|level| level.to_string() == word)
}
