//! `[channels.gateway]`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::Serialize;

use super::in_words;
use super::read::DEFAULT_TOOLS;

/// HTTP, on this machine (C5.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GatewaySettings {
    /// Whether `gateway` may be used.
    pub enabled: bool,
    /// `127.0.0.1` or `::1`; there is no other.
    pub address: IpAddr,
    /// Where it listens.
    pub port: u16,
    /// The tools that the model is told of.
    pub tools_allow: Vec<String>,
    /// How long a call waits for a yes.
    #[serde(serialize_with = "in_words")]
    pub approval_timeout: Duration,
    /// How many turns may go on at once.
    pub max_chats: u32,
    /// How many messages are taken in a minute.
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
