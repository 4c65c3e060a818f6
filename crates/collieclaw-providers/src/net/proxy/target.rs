//! Judges the target of a connection, and resolves it to addresses that were checked.

use std::net::{IpAddr, SocketAddr};

use collieclaw_gate::{
    GateOutcome, GatePolicy, GateRequest, HttpMethod, RiskLevel, UrlHost, is_public, judge,
};

use super::super::deadline::CancellableDeadline;
use super::super::fetch::{NoFiles, first_reason};
use super::super::resolver::NameResolver;
use super::super::url::RequestUrl;

/// A target that the policy allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JudgedTarget {
    url: RequestUrl,
    pub(super) listed_by: ListedBy,
}

/// The entry of `allowed_domains` that allows a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedBy {
    /// The domain is listed, for the default ports of the web.
    Domain,
    /// Exactly this host and port are listed. The host may be on the local network, and the protocol may be
    /// any.
    HostAndPort,
}

impl JudgedTarget {
    /// Judges the target of a tunnel.
    pub(super) fn of_tunnel(authority: &str, policy: &GatePolicy) -> Result<Self, String> {
        let url = RequestUrl::parse(&format!("https://{authority}/")).map_err(str::to_owned)?;
        Self::judge(url, policy)
    }

    /// Judges a target. Only listed targets pass: nobody can be asked while a command runs.
    pub(super) fn judge(url: RequestUrl, policy: &GatePolicy) -> Result<Self, String> {
        let outcome = judge(GateRequest::Http(HttpMethod::Get, &url.to_string()), policy, &NoFiles);
        match outcome {
            GateOutcome::Allowed(permit) if permit.verdict().risk == RiskLevel::Low => {
                let is_exact = policy.allowed_domains.contains(&url.address.host_and_port());
                let listed_by = if is_exact { ListedBy::HostAndPort } else { ListedBy::Domain };
                Ok(Self { url, listed_by })
            }
            outcome => Err(first_reason(outcome.verdict())),
        }
    }

    pub(super) fn host(&self) -> String {
        self.url.address.host.to_string()
    }

    pub(super) fn port(&self) -> u16 {
        self.url.address.port
    }

    /// Returns the name that a TLS handshake must show; `None` for an IP address.
    pub(super) fn server_name(&self) -> Option<&str> {
        match &self.url.address.host {
            UrlHost::Name(name) => Some(name),
            UrlHost::Ip(_) => None,
        }
    }

    /// Resolves the host and checks all its addresses.
    pub(super) fn resolve(
        &self,
        resolver: &dyn NameResolver,
        deadline: &CancellableDeadline,
    ) -> Result<Vec<SocketAddr>, ResolveFailure> {
        let addresses = self
            .url
            .resolve_addresses(resolver, deadline)
            .map_err(|error| ResolveFailure::Unreachable(error.to_string()))?;
        let is_refused = |ip: &&IpAddr| self.listed_by == ListedBy::Domain && !is_public(**ip);
        if let Some(ip) = addresses.iter().find(is_refused) {
            return Err(ResolveFailure::Refused(format!(
                "`{}` resolves to {ip}, an address of this machine or of its network",
                self.host()
            )));
        }
        Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, self.port())).collect())
    }
}

/// The reason why a target has no address to connect to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResolveFailure {
    /// The rules forbid an address of the host.
    Refused(String),
    Unreachable(String),
}
