//! The composition root: builds configuration, tools, providers and the runtime, only as much as a command needs.

mod allower;
mod provider;
mod tool_catalog;
mod workspace;

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use collieclaw::channels::SpinnerAwareWriter;
use collieclaw_agent::config::{self, Config, PathChecks};
use collieclaw_agent::events::{AgentEvent, EventSink};
use collieclaw_agent::memory::ConversationMemory;
use collieclaw_agent::receipts::{ReceiptError, ReceiptLog, hash_json};
use collieclaw_agent::runtime::{AgentRuntime, CallRules, RuleUpdates, ToolGateway};
use collieclaw_agent::security::{SystemFacts, WorkspaceHandle, is_securely_owned};
use collieclaw_agent::workspaces::toolchain_access;
use collieclaw_gate::{AutonomyLevel, GatePolicy};
use collieclaw_providers::net::SearchService;
use collieclaw_providers::secret::Secret;
use collieclaw_providers::{FixtureError, MockFixture};
use serde_json::{Value, json};
use ward_diag::{FaultReport, SourceText};
use ward_terminal::escape_line;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;

pub(crate) use allower::{RuleChangeError, WorkspaceAllower, program_search};
pub(crate) use provider::{build_provider, model_for};
pub(crate) use tool_catalog::{ForeignToolSources, ToolCatalog};
pub(crate) use workspace::{
    TrustMode, WorkspaceArgs, WorkspaceChoice, check_folder, choose_workspace, describe_folder,
    refused_folder, remember_trust, toolchain_places,
};

/// The rules in the home, and the plugins and MCP tools that the rules may name.
pub(crate) struct LoadedSetup {
    /// The configuration with the rules of the workspace.
    pub(crate) config: Config,
    /// The configuration without them.
    pub(crate) base: Config,
    pub(crate) external_tools: ForeignToolSources,
}

impl LoadedSetup {
    /// Returns all tools. Nothing is started.
    pub(crate) fn gather_tools(&self, environment: &CliEnvironment) -> ToolCatalog {
        self.external_tools.collect_tools(
            &self.config,
            &environment.config_context.variables,
            &environment.sessions,
        )
    }

    /// Returns a sentence for every tool in a `tools_allow` list that doesn't exist, because a plugin was removed or a
    /// server isn't approved.
    pub(crate) fn missing_tools(&self, environment: &CliEnvironment) -> Vec<String> {
        let tools = self.gather_tools(environment).tools;
        let channels = &self.config.channels;
        let lists = [("cli", &channels.cli.tools_allow), ("gateway", &channels.gateway.tools_allow)];
        let mut absent = Vec::new();
        for (channel, listed) in lists {
            for name in listed.iter().filter(|name| tools.iter().all(|tool| tool.name() != name.as_str())) {
                let name = escape_line(name);
                absent.push(format!(
                    "`channels.{channel}.tools_allow` lists `{name}`, but no such tool exists"
                ));
            }
        }
        absent
    }
}

pub(crate) fn load_config(environment: &CliEnvironment) -> Result<Config, CommandFailure> {
    load_setup(environment).map(|setup| setup.config)
}

pub(crate) fn load_setup(environment: &CliEnvironment) -> Result<LoadedSetup, CommandFailure> {
    load_setup_and_text(environment).map(|(setup, _)| setup)
}

/// Loads the set-up for a workspace that may be another one than that of the configuration.
pub(crate) fn load_setup_in(
    choice: &WorkspaceChoice,
    environment: &CliEnvironment,
) -> Result<LoadedSetup, CommandFailure> {
    let WorkspaceChoice::Trusted(folder) = choice else { return load_setup(environment) };
    let read = |path: &Path, bytes: &[u8], environment: &CliEnvironment| {
        parse_setup_with(path, bytes, environment, |source, names| {
            config::read_for_workspace(source, &environment.config_context, names, folder)
        })
    };
    load_setup_with(choice, environment, read).map(|(setup, _)| setup)
}

/// Loads the set-up like [`load_setup`], and returns the text of the configuration file as well.
pub(crate) fn load_setup_and_text(
    environment: &CliEnvironment,
) -> Result<(LoadedSetup, Vec<u8>), CommandFailure> {
    load_setup_with(&WorkspaceChoice::Configured, environment, parse_setup)
}

/// Loads the set-up for validation: also checks the files and folders that it refers to.
pub(crate) fn load_checked_setup(environment: &CliEnvironment) -> Result<LoadedSetup, CommandFailure> {
    load_setup_with(&WorkspaceChoice::Configured, environment, parse_checked_setup).map(|(setup, _)| setup)
}

fn load_setup_with(
    choice: &WorkspaceChoice,
    environment: &CliEnvironment,
    read: impl Fn(&Path, &[u8], &CliEnvironment) -> Result<LoadedSetup, CommandFailure>,
) -> Result<(LoadedSetup, Vec<u8>), CommandFailure> {
    let path = environment.home.config();
    let bytes = read_trusted_file(environment.home.folder(), &path)?;
    let mut setup = read(&path, &bytes, environment)?;
    // A symlink could lead anywhere, also to a folder that the agent can write.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(&path).starts_with(real(&setup.config.workspace_dir)) {
        return Err(CommandFailure::Untrusted { path });
    }
    setup.config.apply_workspace_rules(workspace::load_rules(choice, &setup.base, environment)?);
    Ok((setup, bytes))
}

pub(crate) fn parse_setup(
    path: &Path,
    bytes: &[u8],
    environment: &CliEnvironment,
) -> Result<LoadedSetup, CommandFailure> {
    parse_setup_with(path, bytes, environment, |source, names| {
        config::read(source, &environment.config_context, names)
    })
}

/// Parses a configuration and checks workspace and fixtures.
pub(crate) fn parse_checked_setup(
    path: &Path,
    bytes: &[u8],
    environment: &CliEnvironment,
) -> Result<LoadedSetup, CommandFailure> {
    let places = PathChecks {
        workspace: &|path| match WorkspaceHandle::open(path) {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!("the workspace {} can't be used: {error}", path.display())],
        },
        fixture: &|path| match MockFixture::open(path) {
            Ok(_) => Vec::new(),
            Err(FixtureError::Faults(report)) => report.lines(),
            Err(error) => vec![error.to_string()],
        },
    };
    parse_setup_with(path, bytes, environment, |source, names| {
        config::check(source, &environment.config_context, names, &places)
    })
}

fn parse_setup_with(
    path: &Path,
    bytes: &[u8],
    environment: &CliEnvironment,
    read: impl FnOnce(SourceText, &[&str]) -> Result<Config, FaultReport>,
) -> Result<LoadedSetup, CommandFailure> {
    let foreign = ForeignToolSources::load(&environment.home);
    let names = foreign.tool_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let source = SourceText::from_bytes(path.display().to_string(), bytes);
    let config =
        read(source, &names).map_err(|report| CommandFailure::Config { report: Box::new(report) })?;
    Ok(LoadedSetup { base: config.clone(), config, external_tools: foreign })
}

/// Rejects a file that others can change, or that lies in a folder where others can replace it.
pub(crate) fn read_trusted_file(home: &Path, path: &Path) -> Result<Vec<u8>, CommandFailure> {
    let failed = |source| CommandFailure::Unreadable { path: path.to_owned(), source };
    let file = match File::options().read(true).custom_flags(NONBLOCK).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CommandFailure::NotSetUp { config: path.to_owned() });
        }
        file => file.map_err(failed)?,
    };
    let known = file.metadata().map_err(failed)?;
    let folder = fs::metadata(home).map_err(failed)?;
    if !is_securely_owned(&folder) {
        return Err(CommandFailure::Untrusted { path: home.to_owned() });
    }
    if !known.is_file() {
        return Err(CommandFailure::NotRegularFile { path: path.to_owned() });
    }
    if !is_securely_owned(&known) {
        return Err(CommandFailure::Untrusted { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let most = ward_diag::MAX_SOURCE_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The flag with which opening a pipe in place of the file doesn't block.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

pub(crate) fn open_workspace(config: &Config) -> Result<WorkspaceHandle, CommandFailure> {
    let path = &config.workspace_dir;
    WorkspaceHandle::open(path).map_err(|source| CommandFailure::Workspace { path: path.clone(), source })
}

pub(crate) fn build_rules(
    setup: &LoadedSetup,
    workspace: &WorkspaceHandle,
    environment: &CliEnvironment,
) -> Result<CallRules, CommandFailure> {
    build_rules_from(setup.gather_tools(environment), &setup.config, workspace, environment)
}

fn build_rules_from(
    gathered: ToolCatalog,
    config: &Config,
    workspace: &WorkspaceHandle,
    environment: &CliEnvironment,
) -> Result<CallRules, CommandFailure> {
    let policy = config.gate_policy(workspace.path().to_owned(), &environment.config_context);
    let policy_hash = hash_policy(config, &policy, &gathered.fingerprints)?;
    Ok(CallRules { tools: gathered.tools, policy, policy_hash, facts: Box::new(SystemFacts) })
}

/// Returns the hash of everything that a verdict depends on, for receipts and approvals.
fn hash_policy(config: &Config, policy: &GatePolicy, fingerprints: &[Value]) -> Result<String, ReceiptError> {
    let rules = &config.workspace;
    let mut hashed = json!({
        "security": config.security,
        "workspace": policy.workspace,
        "tools_allow": config.channels.cli.tools_allow,
        "limits": config.limits,
        "plugins": config.plugins,
        "mcp": config.mcp,
        "foreign": fingerprints,
        "pinned_programs": policy.pinned_programs,
        "allowed_scripts": policy.allowed_scripts,
        "network": rules.network,
        "toolchain_folders": rules.toolchain_folders,
    });
    // Left out otherwise, so that approvals of earlier versions stay valid.
    if let Some(fields) = hashed.as_object_mut().filter(|_| rules.project_programs) {
        fields.insert("project_programs".to_owned(), Value::Bool(true));
    }
    hash_json(&hashed)
}

fn search_service(config: &Config, environment: &CliEnvironment) -> Option<SearchService> {
    let settings = config.web_search.clone()?;
    let key = environment.variable(&settings.api_key_env).map(|key| Secret::new(key.to_owned()));
    Some(SearchService { settings, key })
}

pub(crate) fn open_memory(config: &Config) -> Result<ConversationMemory, CommandFailure> {
    Ok(ConversationMemory::open_scoped(&config.memory.path, config.memory_scope())?)
}

/// Logs the version, the configuration file and the workspace at the start of a command.
pub(crate) fn emit_startup_events(
    config: &Config,
    environment: &CliEnvironment,
) -> Result<(), CommandFailure> {
    let events = open_event_log(config, environment)?;
    events.emit(AgentEvent::Startup { version: env!("CARGO_PKG_VERSION") });
    events.emit(AgentEvent::ConfigPath { path: &environment.home.config() });
    events.emit(AgentEvent::WorkspacePath { path: &config.workspace_dir });
    Ok(())
}

pub(crate) fn open_tool_gateway(
    setup: &LoadedSetup,
    environment: &CliEnvironment,
) -> Result<ToolGateway, CommandFailure> {
    let config = &setup.config;
    let events = Rc::new(open_event_log(config, environment)?);
    let workspace = open_workspace(config)?;
    let receipts = if config.receipts.enabled {
        let signing = config.receipts.signing(&environment.home);
        let (receipts, recovered) =
            ReceiptLog::open(&config.receipts.path, &signing, environment.home.intents())?;
        for what in &recovered {
            events.emit(AgentEvent::ReceiptsRecovered { what });
        }
        receipts
    } else {
        events.emit(AgentEvent::Trouble { what: "receipts are switched off in the configuration" });
        ReceiptLog::disabled()
    };
    let gathered = setup.gather_tools(environment);
    for what in &gathered.warnings {
        events.emit(AgentEvent::Trouble { what });
    }
    let servers = gathered.servers.clone();
    let rules = build_rules_from(gathered, config, &workspace, environment)?;
    environment.sessions.end_revoked(&servers, &rules.policy);
    Ok(ToolGateway {
        rules,
        memory: open_memory(config)?,
        search: search_service(config, environment),
        bounds: config.tool_bounds(),
        toolchain: toolchain_access(&config.workspace, &toolchain_places(environment))
            .map_err(CommandFailure::io("create the cache of the workspace"))?,
        rule_updates: RuleUpdates::default(),
        home: environment.home.clone(),
        receipts: RefCell::new(receipts),
        workspace,
        events,
    })
}

/// Ends MCP servers that are no longer approved, as every new tool gateway does.
pub(crate) fn end_revoked_servers(environment: &CliEnvironment) -> Result<(), CommandFailure> {
    let setup = load_setup(environment)?;
    let workspace = open_workspace(&setup.config)?;
    let policy = setup.config.gate_policy(workspace.path().to_owned(), &environment.config_context);
    environment.sessions.end_revoked(&setup.gather_tools(environment).servers, &policy);
    Ok(())
}

/// Builds an agent with the default provider and its model.
pub(crate) fn open_runtime(
    setup: &LoadedSetup,
    environment: &CliEnvironment,
) -> Result<AgentRuntime, CommandFailure> {
    let tool_gateway = open_tool_gateway(setup, environment)?;
    let config = &setup.config;
    let name = &config.default_provider;
    let provider = build_provider(name, config, environment, &tool_gateway.events)?;
    Ok(AgentRuntime::new(tool_gateway, provider, model_for(name, config).to_owned(), config))
}

pub(crate) fn open_event_log(
    config: &Config,
    environment: &CliEnvironment,
) -> Result<EventSink, CommandFailure> {
    let (form, least) = environment.log_settings()?;
    let events = EventSink::new(form, least, stderr());
    Ok(if config.security.audit_log { events.with_audit(environment.home.audit_log()) } else { events })
}

/// Returns a writer to standard error, without colours if it isn't a terminal.
pub(crate) fn stderr() -> Box<dyn Write> {
    Box::new(SpinnerAwareWriter::new(anstream::stderr()))
}

/// Parses an autonomy level. Commands that run tools take their level from the configuration only.
pub(crate) fn parse_autonomy(word: &str) -> Option<AutonomyLevel> {
    [AutonomyLevel::ReadOnly, AutonomyLevel::Supervised, AutonomyLevel::Full]
        .into_iter()
        .find(|level| level.to_string() == word)
}
