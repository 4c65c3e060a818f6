//! Reads the sections `[plugins]` and `[mcp]`: permissions of external tools.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use collieclaw_gate::RiskLevel;
use collieclaw_providers::net::RequestUrl;
use ward_diag::{ConfigFault, InvalidValue, Spanned, TomlTable, TomlValue, code};

use super::ConfigReader;
use super::providers::parse_variable_name;
use super::values::{nonempty_texts, read_all};
use crate::config::expand::parse_duration;
use crate::config::real_path::resolve_real_path;
use crate::config::{McpConnection, McpServerSettings, McpSettings, PluginSettings, WorkspaceUse};

const RISKS: [(&str, RiskLevel); 3] =
    [("low", RiskLevel::Low), ("medium", RiskLevel::Medium), ("high", RiskLevel::High)];

/// The longest name of a server. Models limit the length of tool names, which include the server's name.
const MAX_SERVER_NAME_BYTES: usize = 20;

impl ConfigReader<'_> {
    pub(super) fn plugins(&self, table: Option<TomlTable<'_>>) -> BTreeMap<String, PluginSettings> {
        let Some(mut table) = table else { return BTreeMap::new() };
        let mut plugins = BTreeMap::new();
        for (name, value) in table.entries() {
            let Some(mut table) = value.table() else { continue };
            let network = table.optional("network").unwrap_or(false);
            plugins.insert(name.value.to_owned(), PluginSettings { network, risks: read_risks(&mut table) });
            table.finish();
        }
        table.finish();
        plugins
    }

    pub(super) fn mcp(&self, table: Option<TomlTable<'_>>, workspace: &Spanned<PathBuf>) -> McpSettings {
        let mut mcp = McpSettings::default();
        let Some(mut table) = table else { return mcp };
        if let Some(mut servers) = table.table("servers") {
            for (name, value) in servers.entries() {
                if !is_server_name(name.value) {
                    let what = format!("`{}` is not a valid server name", name.value);
                    let help = "use up to 20 lower-case letters, digits and `-`, starting with a letter";
                    servers.faults().push(ConfigFault::new(code::INVALID, name.span, what).help(help));
                }
                let server = value.table().and_then(|table| self.mcp_server(table, workspace));
                mcp.servers.extend(server.map(|server| (name.value.to_owned(), server)));
            }
            servers.finish();
        }
        table.finish();
        mcp
    }

    fn mcp_server(
        &self,
        mut table: TomlTable<'_>,
        workspace: &Spanned<PathBuf>,
    ) -> Option<McpServerSettings> {
        let risk = table.optional_with("risk", |value| value.one_of(&RISKS)).unwrap_or(RiskLevel::Medium);
        let risks = read_risks(&mut table);
        let tools = table.optional_with("tools", nonempty_texts).map(BTreeSet::from_iter);
        let timeout = table.optional_parsed("timeout", parse_duration);
        let connection = match (table.key_span("url"), table.key_span("command")) {
            (Some(url), Some(command)) => {
                table.faults().push(
                    ConfigFault::new(code::INVALID, url, "a server has a `command` or a `url`, not both")
                        .related(command, "also set here")
                        .help("keep one of the two"),
                );
                table.entries();
                None
            }
            (Some(_), None) => read_http(&mut table),
            (None, _) => {
                let program = self.read_program(&mut table, workspace);
                table.help_if_missing("command", "name the server's program, or set `url`");
                program
            }
        };
        table.finish();
        Some(McpServerSettings { connection: connection?, risk, risks, tools, timeout })
    }

    fn read_program(&self, table: &mut TomlTable<'_>, workspace: &Spanned<PathBuf>) -> Option<McpConnection> {
        let outside_workspace = |path: PathBuf| {
            if resolve_real_path(&path).starts_with(resolve_real_path(&workspace.value)) {
                return Err(InvalidValue::new(
                    "this path is in the workspace, where the agent could change it",
                )
                .help("install the server somewhere else"));
            }
            Ok(path)
        };
        let command = table.required_with("command", |value| {
            value.parse(|text| match text {
                "" => Err(InvalidValue::new("the name of the program is empty")
                    .help("write a name like `npx`, or a full path")),
                text if text.contains(['/', '~', '$']) => {
                    let path = self.context.expand_path(text, Path::new("/")).and_then(outside_workspace)?;
                    Ok(path.to_string_lossy().into_owned())
                }
                text => Ok(text.to_owned()),
            })
        });
        // A server may be told the workspace, but an interpreter runs its first argument that is no option.
        let names_program = Cell::new(!command.as_deref().is_some_and(is_interpreter));
        let argument = |value: TomlValue<'_>| {
            value.parse(|text| {
                let text = self.context.expand(text)?;
                let path = Path::new("/").join(&text);
                let is_workspace = resolve_real_path(&path) == resolve_real_path(&workspace.value);
                let is_told = is_workspace && names_program.get();
                names_program.set(names_program.get() || !text.starts_with('-'));
                if is_told { Ok(text) } else { outside_workspace(path).map(|_| text) }
            })
        };
        let args = table.optional_with("args", |value| read_all(value, argument)).unwrap_or_default();
        let variable = |value: TomlValue<'_>| value.parse(parse_variable_name);
        let env = table.optional_with("env", |value| read_all(value, variable)).unwrap_or_default();
        let uses =
            [("none", WorkspaceUse::None), ("read", WorkspaceUse::Read), ("write", WorkspaceUse::Write)];
        let workspace = table.optional_with("workspace", |value| value.one_of(&uses)).unwrap_or_default();
        let path = |value: TomlValue<'_>| {
            value.parse(|text| self.context.expand_path(text, Path::new("/")).and_then(outside_workspace))
        };
        let programs = table.optional_with("programs", |value| read_all(value, path)).unwrap_or_default();
        let network = table.optional("network").unwrap_or(false);
        Some(McpConnection::Program { command: command?, args, env, network, workspace, programs })
    }
}

fn read_http(table: &mut TomlTable<'_>) -> Option<McpConnection> {
    let url = table.required_parsed("url", parse_loopback_url);
    let token_env =
        table.optional_with("token_env", |value| value.parse(parse_variable_name)).unwrap_or_default();
    Some(McpConnection::Http { url: url?, token_env })
}

fn read_risks(table: &mut TomlTable<'_>) -> BTreeMap<String, RiskLevel> {
    let Some(mut named) = table.table("risks") else { return BTreeMap::new() };
    let read =
        |(name, value): (Spanned<&str>, TomlValue<'_>)| Some((name.value.to_owned(), value.one_of(&RISKS)?));
    let risks = named.entries().into_iter().filter_map(read).collect();
    named.finish();
    risks
}

/// Returns true for programs that run the file or the folder which their first argument names.
fn is_interpreter(command: &str) -> bool {
    const NAMES: &[&str] = &[
        "bash", "bun", "dash", "deno", "env", "java", "ksh", "lua", "node", "npx", "perl", "php", "pypy",
        "python", "ruby", "sh", "tsx", "uvx", "zsh",
    ];
    let name = command.rsplit('/').next().unwrap_or_default();
    let without_version = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    NAMES.contains(&without_version)
}

fn is_server_name(name: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    name.len() <= MAX_SERVER_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(letters)
}

/// Parses the URL of a server on this machine. Servers elsewhere are rejected, because no sandbox or rule
/// here applies to them.
fn parse_loopback_url(url: &str) -> Result<String, InvalidValue> {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let is_local = ["127.0.0.1", "localhost", "[::1]"].contains(&host) || authority == "[::1]";
    if is_local && RequestUrl::parse(url).is_ok() && !url.contains(['?', '#']) {
        return Ok(url.to_owned());
    }
    Err(InvalidValue::new("this is not the URL of a server on this machine").help(
        "write it like `http://127.0.0.1:8080/mcp`; to use a remote server, configure a local program that connects to it",
    ))
}
