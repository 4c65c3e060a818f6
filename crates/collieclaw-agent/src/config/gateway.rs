//! Settings of the section `[channels.gateway]`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::Serialize;

use super::read::DEFAULT_TOOLS;
use super::serialize_duration;

/// Settings of the HTTP gateway, which listens on this machine only (C5.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GatewaySettings {
    /// True if `collieclaw gateway` may be used.
    pub enabled: bool,
    /// Either `127.0.0.1` or `::1`. Other addresses are rejected.
    pub address: IpAddr,
    pub port: u16,
    /// The tools that are offered to the model.
    pub tools_allow: Vec<String>,
    /// The time after which a call that waits for an approval is denied.
    #[serde(serialize_with = "serialize_duration")]
    pub approval_timeout: Duration,
    /// The number of turns that may run at the same time.
    pub max_chats: u32,
    /// The number of messages that are accepted in a minute.
    pub chats_per_minute: u32,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            address: Ipv4Addr::LOCALHOST.into(),
            port: 8477,
            tools_allow: DEFAULT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
            approval_timeout: Duration::from_secs(120),
            max_chats: 4,
            chats_per_minute: 60,
        }
    }
}
