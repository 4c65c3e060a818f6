//! The configuration file that `init` writes: every key with its default, ready to be edited.

use std::fmt::Write;

use collieclaw_gate::{
    AutonomyLevel, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS,
};

use super::read::{
    DEFAULT_KEY_VARIABLE, DEFAULT_PROJECT_TOOLS, DEFAULT_SERVER, DEFAULT_SERVER_MODEL, DEFAULT_TOOLS,
};

/// The settings that `onboard` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupChoices {
    pub workspace_dir: String,
    pub autonomy: AutonomyLevel,
    /// Either `local` or `openai_compatible`.
    pub provider: String,
    /// The URL of the model server.
    pub base_url: String,
    /// The server's name for the model.
    pub model: String,
    /// The environment variable that holds the server's key.
    pub api_key_env: String,
    /// The tools that are offered to the model.
    pub tools: Vec<String>,
}

impl Default for SetupChoices {
    fn default() -> Self {
        Self {
            workspace_dir: "~/collieclaw-workspace".to_owned(),
            autonomy: AutonomyLevel::Supervised,
            provider: "local".to_owned(),
            base_url: DEFAULT_SERVER.to_owned(),
            model: DEFAULT_SERVER_MODEL.to_owned(),
            api_key_env: DEFAULT_KEY_VARIABLE.to_owned(),
            tools: DEFAULT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
        }
    }
}

/// Returns the configuration of a new installation. With the default choices, it reads back as the default
/// configuration.
#[must_use]
pub fn config_template(choices: &SetupChoices) -> String {
    let default_model = if choices.provider == "local" { "mock" } else { &choices.model };
    format!(
        r#"# CollieClaw's configuration. Every key is optional; the values below are the defaults.
# `collieclaw config validate` checks this file, `collieclaw config show` prints the settings in use.

workspace_dir = {workspace_dir}
default_provider = {provider}
default_model = {default_model}
# Your instructions for the model. They are added to CollieClaw's own and can't change a rule.
system_prompt = ""

[security]
# readonly: the agent may only read. supervised: it asks before it changes anything. full: it may do anything
# that no rule forbids.
autonomy = "{autonomy}"
workspace_only = true
forbidden_paths = [{forbidden_paths}]
forbidden_commands = [{forbidden_commands}]
# The shell runs only these programs, after you approve the call. All of them run in a sandbox.
allowed_commands = [
{allowed_commands}]
# Hosts for the tool `http`: `example.org`, `*.example.org`, or `localhost:8080` for one port of this machine.
allowed_domains = []
audit_log = true

[providers.models.local]
kind = "mock"
model = "mock"

[providers.models.openai_compatible]
kind = "openai-compatible"
base_url = {base_url}
model = {model}
# The name of the variable that holds the key, never the key itself.
api_key_env = {api_key_env}
# Show answers while they are being written.
stream = true

[channels.cli]
enabled = true
# Tools that the model may call. Others are file_write, file_edit, file_search, file_glob, file_move, file_delete,
# http, ask_user, web_search and pdf_extract.
tools_allow = [{tools}]
# Tools that it may call as well in a project folder that you trust. Those that change files ask you first, and http
# is offered only if a domain is allowed.
project_tools = [{project_tools}]

[channels.gateway]
# `collieclaw gateway`: an HTTP server and a web page, on this machine only.
enabled = true
address = "127.0.0.1"
port = 8477
tools_allow = [{tools}]
# A call that is not approved within this time is denied.
approval_timeout = "120s"
max_chats = 4
chats_per_minute = 60

[memory]
backend = "sqlite"
path = "memory.sqlite"
recent_turns = 40

[receipts]
enabled = true
path = "tool_receipts.log"
# Receipts are signed with the key in receipts.key, which is created for you.
signed = true

[limits]
max_tool_rounds = 5
# The same limit in a project folder that you trust.
project_tool_rounds = 50
max_response_bytes = 1048576
# The size of one tool result that the model gets. It can ask for the rest.
max_tool_output_bytes = 32768
tool_timeout = "30s"
shell_timeout = "15s"
# The same limit in a project folder that you trust, where commands build and test.
project_shell_timeout = "10m"
http_timeout = "20s"
provider_timeout = "120s"
stall_timeout = "60s"
"#,
        forbidden_paths = quote_list(DEFAULT_FORBIDDEN_PATHS),
        forbidden_commands = quote_list(DEFAULT_FORBIDDEN_COMMANDS),
        allowed_commands = quote_rows(DEFAULT_ALLOWED_COMMANDS),
        tools = quote_list(&choices.tools),
        project_tools = quote_list(DEFAULT_PROJECT_TOOLS),
        workspace_dir = quote_toml(&choices.workspace_dir),
        provider = quote_toml(&choices.provider),
        default_model = quote_toml(default_model),
        autonomy = choices.autonomy,
        base_url = quote_toml(&choices.base_url),
        model = quote_toml(&choices.model),
        api_key_env = quote_toml(&choices.api_key_env),
    )
}

/// Quotes a text as a TOML string.
fn quote_toml(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn quote_list(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| quote_toml(name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// The number of command names that fit into the width of a screen.
const NAMES_PER_ROW: usize = 10;

fn quote_rows(names: &[&str]) -> String {
    names.chunks(NAMES_PER_ROW).fold(String::new(), |mut rows, row| {
        let _ = writeln!(rows, "    {},", quote_list(row));
        rows
    })
}
