//! The file that `init` writes: every key with its default, to be edited.

use std::fmt::Write;

use collieclaw_gate::{DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS};

use super::read::{DEFAULT_KEY_VARIABLE, DEFAULT_SERVER, DEFAULT_SERVER_MODEL, DEFAULT_TOOLS};

/// A new installation's configuration. Read back, it is the default one.
#[must_use]
pub fn template() -> String {
    format!(
        r#"# CollieClaw's configuration. Every key may be left out; these are the defaults.
# `collieclaw config validate` checks this file, `collieclaw config show` prints what is in force.

workspace_dir = "~/collieclaw-workspace"
default_provider = "local"
default_model = "mock"

[security]
# readonly: it may only look. supervised: it asks before it changes anything. full: it does what no rule forbids.
autonomy = "supervised"
workspace_only = true
forbidden_paths = [{forbidden_paths}]
forbidden_commands = [{forbidden_commands}]
# The shell runs these when you say yes, and nothing else. They run in a sandbox anyway.
allowed_commands = [
{allowed_commands}]
# `example.org`, `*.example.org`; `localhost:8080` opens one port of this machine.
allowed_domains = []
audit_log = true

[providers.models.local]
kind = "mock"
model = "mock"

[providers.models.openai_compatible]
kind = "openai-compatible"
base_url = "{DEFAULT_SERVER}"
model = "{DEFAULT_SERVER_MODEL}"
# The name of the variable that holds the key, never the key itself.
api_key_env = "{DEFAULT_KEY_VARIABLE}"

[channels.cli]
enabled = true
# What the model is told of. There are also file_write and http.
tools_allow = [{tools}]

[memory]
backend = "sqlite"
path = "memory.db"
recent_turns = 40

[receipts]
enabled = true
path = "tool_receipts.log"

[limits]
max_tool_rounds = 5
max_response_bytes = 1048576
tool_timeout = "30s"
shell_timeout = "15s"
http_timeout = "20s"
provider_timeout = "120s"
"#,
        forbidden_paths = quoted(DEFAULT_FORBIDDEN_PATHS),
        forbidden_commands = quoted(DEFAULT_FORBIDDEN_COMMANDS),
        allowed_commands = in_rows(DEFAULT_ALLOWED_COMMANDS),
        tools = quoted(DEFAULT_TOOLS),
    )
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// A screen's width holds so many names of commands.
const NAMES_IN_A_ROW: usize = 10;

fn in_rows(names: &[&str]) -> String {
    names.chunks(NAMES_IN_A_ROW).fold(String::new(), |mut rows, row| {
        let _ = writeln!(rows, "    {},", quoted(row));
        rows
    })
}
