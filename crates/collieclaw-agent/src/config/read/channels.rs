//! Reads the section `[channels]`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ward_diag::{InvalidValue, Spanned, TomlTable, TomlValue, closest};

use super::ConfigReader;
use super::values::{set_if_some, unknown_name};
use crate::config::expand::parse_duration;
use crate::config::{ChannelSettings, CliSettings, GatewaySettings, TOOL_SEPARATOR};

/// The tools that a new installation offers to the model (C3.1).
pub(in crate::config) const DEFAULT_TOOLS: &[&str] =
    &["file_read", "file_list", "time", "memory_search", "shell"];

/// The tools that are offered as well in a trusted project folder: those that a developer's work needs. Calls that
/// change files still ask at the level `supervised`. The tool `http` is offered only if a domain is allowed.
pub(in crate::config) const DEFAULT_PROJECT_TOOLS: &[&str] =
    &["file_search", "file_glob", "file_edit", "file_write", "file_move", "file_delete", "http"];

impl ConfigReader<'_> {
    pub(super) fn channels(&self, table: Option<TomlTable<'_>>) -> ChannelSettings {
        let mut read = ChannelSettings {
            cli: CliSettings {
                enabled: true,
                tools_allow: DEFAULT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
                project_tools: DEFAULT_PROJECT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
            },
            gateway: GatewaySettings::default(),
        };
        let Some(mut channels) = table else { return read };
        if let Some(mut table) = channels.table("cli") {
            set_if_some(&mut read.cli.enabled, table.optional("enabled"));
            set_if_some(&mut read.cli.tools_allow, self.tool_list(&mut table, "tools_allow"));
            set_if_some(&mut read.cli.project_tools, self.tool_list(&mut table, "project_tools"));
            table.finish();
        }
        if let Some(table) = channels.table("gateway") {
            self.gateway(table, &mut read.gateway);
        }
        channels.finish();
        read
    }

    fn gateway(&self, mut table: TomlTable<'_>, gateway: &mut GatewaySettings) {
        set_if_some(&mut gateway.enabled, table.optional("enabled"));
        set_if_some(
            &mut gateway.address,
            table.optional_with("address", |value| value.parse(parse_loopback_address)),
        );
        let port = |value: TomlValue<'_>| value.integer_in(1..=65_535).and_then(|port| port.try_into().ok());
        set_if_some(&mut gateway.port, table.optional_with("port", port));
        set_if_some(&mut gateway.tools_allow, self.tool_list(&mut table, "tools_allow"));
        set_if_some(&mut gateway.approval_timeout, table.optional_parsed("approval_timeout", parse_duration));
        let up_to = |most: i128| {
            move |value: TomlValue<'_>| value.integer_in(1..=most).and_then(|count| count.try_into().ok())
        };
        set_if_some(&mut gateway.max_chats, table.optional_with("max_chats", up_to(64)));
        set_if_some(&mut gateway.chats_per_minute, table.optional_with("chats_per_minute", up_to(6_000)));
        table.finish();
    }

    fn tool_list(&self, table: &mut TomlTable<'_>, key: &str) -> Option<Vec<String>> {
        let listed: Option<Vec<Spanned<String>>> = table.optional(key);
        for tool in listed.iter().flatten() {
            // Tools of MCP servers are known only after an approval, which needs a configuration. Tools of a
            // removed plugin must not stop everything else; `doctor` reports them. So only likely typing
            // errors are faults.
            let is_mcp_tool = tool.value.contains(TOOL_SEPARATOR);
            let known = self.tools.iter().copied();
            let is_typo = closest(&tool.value, known.clone()).is_some();
            if !is_mcp_tool && is_typo && !self.tools.contains(&tool.value.as_str()) {
                table.faults().push(unknown_name("tool", tool, known, "see `collieclaw tool list`"));
            }
        }
        listed.map(|tools| tools.into_iter().map(|tool| tool.value).collect())
    }
}

/// Parses the address of the gateway, which may only listen on this machine.
fn parse_loopback_address(text: &str) -> Result<IpAddr, InvalidValue> {
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let address = text.parse().ok().filter(|address| loopback.contains(address));
    address.ok_or_else(|| {
        InvalidValue::new("the gateway can listen on this machine only")
            .help("write `127.0.0.1` or `::1`; to reach it from elsewhere, forward the port with `ssh -L`")
    })
}
