//! Puts the parts together, as few as a command needs.

mod provider;

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use collieclaw::channels::{BesideSpinner, visible};
use collieclaw::config::{self, Config, Places};
use collieclaw::events::{Event, Events};
use collieclaw::memory::Memory;
use collieclaw::net::SearchService;
use collieclaw::providers::{Fixture, FixtureError};
use collieclaw::receipts::{Receipts, hash_of};
use collieclaw::runtime::{Door, Rules, Runtime};
use collieclaw::secret::Secret;
use collieclaw::security::{SystemFacts, Workspace, is_ours};
use collieclaw::tools::{Foreign, Gathered};
use collieclaw_gate::Autonomy;
use serde_json::json;
use ward_diag::{Report, Source};

use super::environment::Environment;
use super::failure::Failure;

pub(crate) use provider::{model_of, provider};

/// What the files of the home say: the rules, and the tools of others that they may name.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) foreign: Foreign,
}

impl Setup {
    /// All tools there are. Nothing is started.
    pub(crate) fn gather(&self, environment: &Environment) -> Gathered {
        self.foreign.gather(&self.config, &environment.surroundings.variables, &environment.sessions)
    }

    /// What `tools_allow` lists and nobody has, in sentences: of a plugin that was removed, of a server that nobody approved.
    pub(crate) fn absent_tools(&self, environment: &Environment) -> Vec<String> {
        let tools = self.gather(environment).tools;
        let channels = &self.config.channels;
        let lists = [("cli", &channels.cli.tools_allow), ("gateway", &channels.gateway.tools_allow)];
        let mut absent = Vec::new();
        for (channel, listed) in lists {
            for name in listed.iter().filter(|name| tools.iter().all(|tool| tool.name() != name.as_str())) {
                let name = visible(name);
                absent.push(format!(
                    "`channels.{channel}.tools_allow` lists `{name}`, and there is no such tool"
                ));
            }
        }
        absent
    }
}

pub(crate) fn config(environment: &Environment) -> Result<Config, Failure> {
    setup(environment).map(|setup| setup.config)
}

pub(crate) fn setup(environment: &Environment) -> Result<Setup, Failure> {
    setup_and_text(environment).map(|(setup, _)| setup)
}

/// The same, with what the file of the configuration holds.
pub(crate) fn setup_and_text(environment: &Environment) -> Result<(Setup, Vec<u8>), Failure> {
    setup_by(environment, read)
}

/// The same for a person who asks whether all of it is right: also what lies where it leads.
pub(crate) fn checked_setup(environment: &Environment) -> Result<Setup, Failure> {
    setup_by(environment, check).map(|(setup, _)| setup)
}

fn setup_by(
    environment: &Environment,
    read: impl Fn(&Path, &[u8], &Environment) -> Result<Setup, Failure>,
) -> Result<(Setup, Vec<u8>), Failure> {
    let path = environment.home.config();
    let bytes = trusted(environment.home.folder(), &path)?;
    let setup = read(&path, &bytes, environment)?;
    // A link may lead anywhere, also to where the agent writes.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(&path).starts_with(real(&setup.config.workspace_dir)) {
        return Err(Failure::Untrusted { path });
    }
    Ok((setup, bytes))
}

pub(crate) fn read(path: &Path, bytes: &[u8], environment: &Environment) -> Result<Setup, Failure> {
    read_by(path, bytes, environment, |source, names| config::read(source, &environment.surroundings, names))
}

/// The same, with a look at workspace and fixtures.
pub(crate) fn check(path: &Path, bytes: &[u8], environment: &Environment) -> Result<Setup, Failure> {
    let places = Places {
        workspace: &|path| match Workspace::open(path) {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!("the workspace {} can't be used: {error}", path.display())],
        },
        fixture: &|path| match Fixture::open(path) {
            Ok(_) => Vec::new(),
            Err(FixtureError::Faults(report)) => report.lines(),
            Err(error) => vec![error.to_string()],
        },
    };
    read_by(path, bytes, environment, |source, names| {
        config::check(source, &environment.surroundings, names, &places)
    })
}

fn read_by(
    path: &Path,
    bytes: &[u8],
    environment: &Environment,
    read: impl FnOnce(Source, &[&str]) -> Result<Config, Report>,
) -> Result<Setup, Failure> {
    let foreign = Foreign::load(&environment.home);
    let names = foreign.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let source = Source::from_bytes(path.display().to_string(), bytes);
    let config = read(source, &names).map_err(|report| Failure::Config { report: Box::new(report) })?;
    Ok(Setup { config, foreign })
}

/// A file whose rules others can change has no rules of ours; nor has one in a folder where they can replace it.
pub(crate) fn trusted(home: &Path, path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let file = match File::options().read(true).custom_flags(NONBLOCK).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::NotSetUp { config: path.to_owned() });
        }
        file => file.map_err(failed)?,
    };
    let known = file.metadata().map_err(failed)?;
    let folder = fs::metadata(home).map_err(failed)?;
    if !is_ours(&folder) {
        return Err(Failure::Untrusted { path: home.to_owned() });
    }
    if !known.is_file() {
        return Err(Failure::NotPlain { path: path.to_owned() });
    }
    if !is_ours(&known) {
        return Err(Failure::Untrusted { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let most = ward_diag::MAX_SOURCE_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// What a pipe in the place of a file would make us wait for.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

pub(crate) fn workspace(config: &Config) -> Result<Workspace, Failure> {
    let path = &config.workspace_dir;
    Workspace::open(path).map_err(|source| Failure::Workspace { path: path.clone(), source })
}

pub(crate) fn rules(
    setup: &Setup,
    workspace: &Workspace,
    environment: &Environment,
) -> Result<Rules, Failure> {
    rules_of(setup.gather(environment), &setup.config, workspace, environment)
}

fn rules_of(
    gathered: Gathered,
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
        "plugins": config.plugins,
        "mcp": config.mcp,
        "foreign": gathered.marks,
    }))?;
    Ok(Rules { tools: gathered.tools, policy, policy_hash, facts: Box::new(SystemFacts) })
}

fn search(config: &Config, environment: &Environment) -> Option<SearchService> {
    let settings = config.web_search.clone()?;
    let key = environment.variable(&settings.api_key_env).map(|key| Secret::new(key.to_owned()));
    Some(SearchService { settings, key })
}

pub(crate) fn memory(config: &Config) -> Result<Memory, Failure> {
    Ok(Memory::open(&config.memory.path)?)
}

/// What starts, and with what.
pub(crate) fn announce(config: &Config, environment: &Environment) -> Result<(), Failure> {
    let events = events(config, environment)?;
    events.tell(Event::Startup { version: env!("CARGO_PKG_VERSION") });
    events.tell(Event::ConfigPath { path: &environment.home.config() });
    events.tell(Event::WorkspacePath { path: &config.workspace_dir });
    Ok(())
}

pub(crate) fn door(setup: &Setup, environment: &Environment) -> Result<Door, Failure> {
    let config = &setup.config;
    let events = Rc::new(events(config, environment)?);
    let workspace = workspace(config)?;
    let receipts = if config.receipts.enabled {
        let signing = config.receipts.signing(&environment.home);
        let (receipts, recovered) =
            Receipts::open(&config.receipts.path, &signing, environment.home.intents())?;
        for what in &recovered {
            events.tell(Event::ReceiptsRecovered { what });
        }
        receipts
    } else {
        events.tell(Event::Trouble { what: "receipts are switched off in the configuration" });
        Receipts::off()
    };
    let gathered = setup.gather(environment);
    for what in &gathered.troubles {
        events.tell(Event::Trouble { what });
    }
    let servers = gathered.servers.clone();
    let rules = rules_of(gathered, config, &workspace, environment)?;
    environment.sessions.end_others(&servers, &rules.policy);
    Ok(Door {
        rules,
        memory: memory(config)?,
        search: search(config, environment),
        bounds: config.tool_bounds(),
        home: environment.home.clone(),
        receipts: RefCell::new(receipts),
        workspace,
        events,
    })
}

/// Ends MCP servers that are not in force any more, as whoever opens a door does.
pub(crate) fn end_what_was_taken_back(environment: &Environment) -> Result<(), Failure> {
    let setup = setup(environment)?;
    let workspace = workspace(&setup.config)?;
    let policy = setup.config.gate_policy(workspace.path().to_owned(), &environment.surroundings);
    environment.sessions.end_others(&setup.gather(environment).servers, &policy);
    Ok(())
}

/// An agent with the usual provider and its model.
pub(crate) fn runtime(setup: &Setup, environment: &Environment) -> Result<Runtime, Failure> {
    let door = door(setup, environment)?;
    let config = &setup.config;
    let name = &config.default_provider;
    let provider = provider(name, config, environment, &door.events)?;
    Ok(Runtime::new(door, provider, model_of(name, config).to_owned(), config))
}

pub(crate) fn events(config: &Config, environment: &Environment) -> Result<Events, Failure> {
    let (form, least) = environment.log()?;
    let events = Events::new(form, least, stderr());
    Ok(if config.security.audit_log { events.with_audit(environment.home.audit_log()) } else { events })
}

/// Standard error, without colours where nobody would see them.
pub(crate) fn stderr() -> Box<dyn Write> {
    Box::new(BesideSpinner::new(anstream::stderr()))
}

/// Another level for one command; it can only be asked about, not used.
pub(crate) fn autonomy(word: &str) -> Option<Autonomy> {
    [Autonomy::ReadOnly, Autonomy::Supervised, Autonomy::Full]
        .into_iter()
        .find(|level| level.to_string() == word)
}
