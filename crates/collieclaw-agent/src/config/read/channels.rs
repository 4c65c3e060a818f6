//! `[channels]`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ward_diag::{InvalidValue, Spanned, TomlTable, TomlValue, closest};

use super::ConfigReader;
use super::values::{set_if_some, unknown_name};
use crate::config::expand::parse_duration;
use crate::config::{ChannelSettings, CliSettings, GatewaySettings, TOOL_SEPARATOR};

/// What a new installation offers to the model (C3.1).
pub(in crate::config) const DEFAULT_TOOLS: &[&str] =
    &["file_read", "file_list", "time", "memory_search", "shell"];

impl ConfigReader<'_> {
    pub(super) fn channels(&self, table: Option<TomlTable<'_>>) -> ChannelSettings {
        let mut read = ChannelSettings {
            cli: CliSettings {
                enabled: true,
                tools_allow: DEFAULT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
            },
            gateway: GatewaySettings::default(),
        };
        let Some(mut channels) = table else { return read };
        if let Some(mut table) = channels.table("cli") {
            set_if_some(&mut read.cli.enabled, table.optional("enabled"));
            set_if_some(&mut read.cli.tools_allow, self.tools_allow(&mut table));
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
        set_if_some(&mut gateway.tools_allow, self.tools_allow(&mut table));
        set_if_some(&mut gateway.approval_timeout, table.optional_parsed("approval_timeout", parse_duration));
        let up_to = |most: i128| {
            move |value: TomlValue<'_>| value.integer_in(1..=most).and_then(|count| count.try_into().ok())
        };
        set_if_some(&mut gateway.max_chats, table.optional_with("max_chats", up_to(64)));
        set_if_some(&mut gateway.chats_per_minute, table.optional_with("chats_per_minute", up_to(6_000)));
        table.finish();
    }

    fn tools_allow(&self, table: &mut TomlTable<'_>) -> Option<Vec<String>> {
        let listed: Option<Vec<Spanned<String>>> = table.optional("tools_allow");
        for tool in listed.iter().flatten() {
            // What a server offers is known once somebody has approved it, which needs a configuration. And what a
            // plugin had is gone with it, which is no reason to stop everything else: `doctor` tells of it.
            let is_a_servers = tool.value.contains(TOOL_SEPARATOR);
            let known = self.tools.iter().copied();
            let is_a_slip = closest(&tool.value, known.clone()).is_some();
            if !is_a_servers && is_a_slip && !self.tools.contains(&tool.value.as_str()) {
                table.faults().push(unknown_name("tool", tool, known, "see `collieclaw tool list`"));
            }
        }
        listed.map(|tools| tools.into_iter().map(|tool| tool.value).collect())
    }
}

/// The gateway is for this machine, whatever the configuration would like.
fn parse_loopback_address(text: &str) -> Result<IpAddr, InvalidValue> {
    let ours: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let address = text.parse().ok().filter(|address| ours.contains(address));
    address.ok_or_else(|| {
        InvalidValue::new("the gateway listens to this machine alone")
            .help("write `127.0.0.1` or `::1`; to reach it from elsewhere, forward the port with `ssh -L`")
    })
}
