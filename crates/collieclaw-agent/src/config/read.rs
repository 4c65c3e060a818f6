//! Reads and checks a configuration, and reports all faults at once. Each section of the file has its own
//! module.

mod channels;
mod external_tools;
mod files;
mod limits;
mod providers;
mod security;
mod values;
mod web_search;

use std::path::{Path, PathBuf};

use ward_diag::{
    ConfigFault, FaultCollector, FaultReport, InvalidValue, SourceText, Spanned, TomlTable, code,
};

use super::Config;
use super::expand::ConfigContext;
use super::real_path::resolve_real_path;
use crate::workspaces::WorkspaceRules;
use limits::limits;
use values::{nonempty_text, unknown_name};

pub(super) use channels::{DEFAULT_PROJECT_TOOLS, DEFAULT_TOOLS};
pub(super) use providers::{DEFAULT_KEY_VARIABLE, DEFAULT_SERVER, DEFAULT_SERVER_MODEL};

/// Keys whose values may be secrets. Diagnostics never show them.
const SECRET_KEYS: &[&str] =
    &["api_key", "key", "token", "password", "secret", "api_key_env", "env", "token_env"];

/// Reads a configuration. `tools` lists the names of all available tools.
///
/// # Errors
/// Returns all faults, each with its position and a hint how to fix it.
pub fn read(source: SourceText, context: &ConfigContext, tools: &[&str]) -> Result<Config, FaultReport> {
    read_with(source, &ConfigReader { context, tools, path_checks: None, workspace: None })
}

/// Reads a configuration like [`read`], for another workspace than the one in the file. All checks of the workspace
/// are made for the other one.
///
/// # Errors
/// Returns all faults, each with its position and a hint how to fix it.
pub fn read_for_workspace(
    source: SourceText,
    context: &ConfigContext,
    tools: &[&str],
    workspace: &Path,
) -> Result<Config, FaultReport> {
    read_with(source, &ConfigReader { context, tools, path_checks: None, workspace: Some(workspace) })
}

/// Reads a configuration like [`read`], and also reports configured paths that can't be used.
///
/// # Errors
/// Returns all faults, each with its position and a hint how to fix it.
pub fn check(
    source: SourceText,
    context: &ConfigContext,
    tools: &[&str],
    path_checks: &PathChecks<'_>,
) -> Result<Config, FaultReport> {
    read_with(source, &ConfigReader { context, tools, path_checks: Some(path_checks), workspace: None })
}

/// Checks of configured paths. Each check returns one message for each fault.
pub struct PathChecks<'p> {
    /// Checks the workspace folder.
    pub workspace: &'p dyn Fn(&Path) -> Vec<String>,
    /// Checks the script of a mock provider.
    pub fixture: &'p dyn Fn(&Path) -> Vec<String>,
}

fn read_with(source: SourceText, reader: &ConfigReader<'_>) -> Result<Config, FaultReport> {
    ward_diag::read(source.hide_values_of(SECRET_KEYS.iter().copied()), |root| reader.read_config(root))
}

struct ConfigReader<'r> {
    context: &'r ConfigContext,
    tools: &'r [&'r str],
    path_checks: Option<&'r PathChecks<'r>>,
    /// The workspace to use instead of the one in the file.
    workspace: Option<&'r Path>,
}

/// The maximum length of the operator's instructions, which every request to the model contains.
const MAX_SYSTEM_PROMPT_BYTES: usize = 32 * 1024;

fn parse_system_prompt(text: &str) -> Result<String, InvalidValue> {
    if text.len() > MAX_SYSTEM_PROMPT_BYTES {
        let fault = format!("the text is longer than {MAX_SYSTEM_PROMPT_BYTES} bytes");
        return Err(
            InvalidValue::new(fault).help("shorten it, or put details into AGENTS.md in the workspace")
        );
    }
    Ok(text.trim().to_owned())
}

fn report_path_faults(
    path: &Spanned<PathBuf>,
    check: &dyn Fn(&Path) -> Vec<String>,
    help: &str,
    faults: &FaultCollector,
) {
    for message in check(&path.value) {
        faults.push(ConfigFault::new(code::INVALID, path.span, message).help(help));
    }
}

impl ConfigReader<'_> {
    fn read_config(&self, root: &mut TomlTable<'_>) -> Option<Config> {
        let user_home = self.context.user_home.clone();
        let workspace_dir = self.read_path(root, "workspace_dir", &user_home);
        let is_path_valid = workspace_dir.is_some() || root.key_span("workspace_dir").is_none();
        let workspace_dir =
            workspace_dir.unwrap_or_else(|| Spanned::without_span(user_home.join("collieclaw-workspace")));
        let workspace_dir = match self.workspace {
            Some(other) => Spanned::without_span(other.to_owned()),
            None => workspace_dir,
        };
        let security = self.security(root.table("security"));
        let providers = self.providers(root.table("providers"));
        let default_provider = root
            .optional_with("default_provider", nonempty_text)
            .unwrap_or_else(|| Spanned::without_span("local".to_owned()));
        let default_model = root.optional_with("default_model", nonempty_text).map(|model| model.value);
        let system_prompt = root.optional_with("system_prompt", |value| value.parse(parse_system_prompt));
        let web_search = self.web_search(root.table("web_search"));
        let channels = self.channels(root.table("channels"));
        let memory = self.memory(root.table("memory"), &workspace_dir);
        let receipts = self.receipts(root.table("receipts"), &workspace_dir);
        let limits = limits(root.table("limits"));
        let plugins = self.plugins(root.table("plugins"));
        let mcp = self.mcp(root.table("mcp"), &workspace_dir);
        let faults = root.faults();
        self.check_home_outside_workspace(&workspace_dir, faults);
        if let Some(checks) = self.path_checks.filter(|_| is_path_valid) {
            let help = "run `collieclaw init`, or set `workspace_dir` to a folder of yours";
            report_path_faults(&workspace_dir, checks.workspace, help, faults);
        }

        let provider = providers.models.get(&default_provider.value);
        if provider.is_none() && !root.is_incomplete() {
            let names = providers.models.keys().map(String::as_str);
            faults.push(unknown_name(
                "provider",
                &default_provider,
                names,
                "add it as `[providers.models.NAME]`",
            ));
        }
        let default_model = default_model.or_else(|| provider.map(|provider| provider.model().to_owned()));
        Some(Config {
            workspace_dir: workspace_dir.value,
            default_provider: default_provider.value,
            default_model: default_model.unwrap_or_default(),
            system_prompt: system_prompt.filter(|text| !text.is_empty()),
            security,
            providers,
            web_search,
            channels,
            memory,
            receipts,
            limits,
            plugins,
            mcp,
            workspace: WorkspaceRules::default(),
        })
    }

    /// Rejects a workspace that contains CollieClaw's home or lies in it. A tool could move such a workspace
    /// away together with the home.
    fn check_home_outside_workspace(&self, workspace: &Spanned<PathBuf>, faults: &FaultCollector) {
        let (home, workspace_folder) =
            (resolve_real_path(&self.context.home), resolve_real_path(&workspace.value));
        let fault = if workspace_folder.starts_with(&home) {
            "the workspace is inside CollieClaw's own folder, which no tool may touch"
        } else if home.starts_with(&workspace_folder) {
            "the workspace contains CollieClaw's own folder with its rules"
        } else {
            return;
        };
        let help = "choose another folder, such as `~/collieclaw-workspace`";
        faults.push(ConfigFault::new(code::INVALID, workspace.span, fault).help(help));
    }

    fn read_path(&self, table: &mut TomlTable<'_>, key: &str, base: &Path) -> Option<Spanned<PathBuf>> {
        table.optional_with(key, |value| {
            let span = value.span();
            value.parse(|text| self.context.expand_path(text, base)).map(|path| Spanned::new(path, span))
        })
    }
}
