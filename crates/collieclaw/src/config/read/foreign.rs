//! `[plugins]` and `[mcp]`: what tools of others may do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use collieclaw_gate::Risk;
use ward_diag::{Fault, Invalid, Spanned, Table, Value, code};

use super::Reader;
use super::providers::variable_name;
use super::words::{all, all_filled};
use crate::config::expand::duration;
use crate::config::place::real;
use crate::config::{Mcp, McpConnection, McpServer, PluginSettings, WorkspaceUse};
use crate::net::Link;

const RISKS: [(&str, Risk); 3] = [("low", Risk::Low), ("medium", Risk::Medium), ("high", Risk::High)];

/// The longest name of a server: with that of a tool it must fit into what models take.
const LONGEST_SERVER_NAME: usize = 20;

impl Reader<'_> {
    pub(super) fn plugins(&self, table: Option<Table<'_>>) -> BTreeMap<String, PluginSettings> {
        let Some(mut table) = table else { return BTreeMap::new() };
        let mut plugins = BTreeMap::new();
        for (name, value) in table.entries() {
            let Some(mut table) = value.table() else { continue };
            let network = table.optional("network").unwrap_or(false);
            plugins.insert(name.value.to_owned(), PluginSettings { network, risks: risks(&mut table) });
            table.finish();
        }
        table.finish();
        plugins
    }

    pub(super) fn mcp(&self, table: Option<Table<'_>>, workspace: &Spanned<PathBuf>) -> Mcp {
        let mut mcp = Mcp::default();
        let Some(mut table) = table else { return mcp };
        if let Some(mut servers) = table.table("servers") {
            for (name, value) in servers.entries() {
                if !is_server_name(name.value) {
                    let what = format!("`{}` is no name of a server", name.value);
                    let help = "use up to 20 lower-case letters, digits and `-`, beginning with a letter";
                    servers.faults().push(Fault::new(code::INVALID, name.span, what).help(help));
                }
                let server = value.table().and_then(|table| self.mcp_server(table, workspace));
                mcp.servers.extend(server.map(|server| (name.value.to_owned(), server)));
            }
            servers.finish();
        }
        table.finish();
        mcp
    }

    fn mcp_server(&self, mut table: Table<'_>, workspace: &Spanned<PathBuf>) -> Option<McpServer> {
        let risk = table.optional_with("risk", |value| value.one_of(&RISKS)).unwrap_or(Risk::Medium);
        let risks = risks(&mut table);
        let tools = table.optional_with("tools", all_filled).map(BTreeSet::from_iter);
        let timeout = table.optional_parsed("timeout", duration);
        let connection = match (table.key_span("url"), table.key_span("command")) {
            (Some(url), Some(command)) => {
                table.faults().push(
                    Fault::new(code::INVALID, url, "a server has a `command` or a `url`, not both")
                        .related(command, "the other one")
                        .help("keep one of the two"),
                );
                table.entries();
                None
            }
            (Some(_), None) => http(&mut table),
            (None, _) => {
                let program = self.program(&mut table, workspace);
                table.if_missing("command", "name the program that is the server, or its `url`");
                program
            }
        };
        table.finish();
        Some(McpServer { connection: connection?, risk, risks, tools, timeout })
    }

    fn program(&self, table: &mut Table<'_>, workspace: &Spanned<PathBuf>) -> Option<McpConnection> {
        let apart = |path: PathBuf| {
            if real(&path).starts_with(real(&workspace.value)) {
                return Err(Invalid::new("this lies in the workspace, where the agent could change it")
                    .help("install the server somewhere else"));
            }
            Ok(path)
        };
        let command = table.required_with("command", |value| {
            value.parse(|text| match text {
                "" => Err(Invalid::new("this is no program").help("write it like `npx`, or its whole path")),
                text if text.contains(['/', '~', '$']) => {
                    let path = self.surroundings.path(text, Path::new("/")).and_then(apart)?;
                    Ok(path.to_string_lossy().into_owned())
                }
                text => Ok(text.to_owned()),
            })
        });
        let word = |value: Value<'_>| {
            value.parse(|text| {
                let text = self.surroundings.expand(text)?;
                apart(Path::new("/").join(&text)).map(|_| text)
            })
        };
        let args = table.optional_with("args", |value| all(value, word)).unwrap_or_default();
        let variable = |value: Value<'_>| value.parse(variable_name);
        let env = table.optional_with("env", |value| all(value, variable)).unwrap_or_default();
        let uses =
            [("none", WorkspaceUse::None), ("read", WorkspaceUse::Read), ("write", WorkspaceUse::Write)];
        let workspace = table.optional_with("workspace", |value| value.one_of(&uses)).unwrap_or_default();
        let path = |value: Value<'_>| {
            value.parse(|text| self.surroundings.path(text, Path::new("/")).and_then(apart))
        };
        let programs = table.optional_with("programs", |value| all(value, path)).unwrap_or_default();
        let network = table.optional("network").unwrap_or(false);
        Some(McpConnection::Program { command: command?, args, env, network, workspace, programs })
    }
}

fn http(table: &mut Table<'_>) -> Option<McpConnection> {
    let url = table.required_parsed("url", loopback);
    let token_env = table.optional_with("token_env", |value| value.parse(variable_name)).unwrap_or_default();
    Some(McpConnection::Http { url: url?, token_env })
}

fn risks(table: &mut Table<'_>) -> BTreeMap<String, Risk> {
    let Some(mut named) = table.table("risks") else { return BTreeMap::new() };
    let read =
        |(name, value): (Spanned<&str>, Value<'_>)| Some((name.value.to_owned(), value.one_of(&RISKS)?));
    let risks = named.entries().into_iter().filter_map(read).collect();
    named.finish();
    risks
}

fn is_server_name(name: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    name.len() <= LONGEST_SERVER_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(letters)
}

/// What runs elsewhere runs under nobody's rules here.
fn loopback(url: &str) -> Result<String, Invalid> {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&host) || authority == "[::1]";
    if is_here && Link::read(url).is_ok() && !url.contains(['?', '#']) {
        return Ok(url.to_owned());
    }
    Err(Invalid::new("this is no address of a server on this machine").help(
        "write it like `http://127.0.0.1:8080/mcp`; a server elsewhere can be reached by a program here",
    ))
}
