//! The network of a shell line: a proxy to the listed domains, if the policy allows one (C19.4).

use std::sync::Arc;
use std::time::Duration;

use collieclaw_providers::net::{CommandProxy, ProxySettings, SystemResolver};
use serde_json::Value;
use ward_process::ProcessTree;

use super::ToolContext;
use super::tool_sandbox::ToolSandbox;

/// The proxy of a line; `None` if its commands reach no network.
pub(crate) struct LineProxy(Option<CommandProxy>);

impl LineProxy {
    /// Starts a proxy if the sandbox has a socket for it. It ends with the line.
    pub(crate) fn start(
        context: &ToolContext<'_>,
        sandbox: &ToolSandbox,
        timeout: Duration,
    ) -> Result<Self, String> {
        if !sandbox.has_proxy_socket() {
            return Ok(Self(None));
        }
        let settings = ProxySettings {
            policy: context.policy.clone(),
            resolver: Arc::new(SystemResolver),
            lifetime: timeout,
        };
        let proxy = CommandProxy::start(settings, context.cancel)
            .map_err(|error| format!("could not start the proxy for commands: {error}"))?;
        Ok(Self(Some(proxy)))
    }

    /// Serves the socket in the sandbox of a tree until the tree ends.
    pub(crate) fn serve(&self, tree: &mut ProcessTree) -> std::io::Result<()> {
        let (Some(proxy), Some(listener)) = (&self.0, tree.take_loopback_listener()) else { return Ok(()) };
        let ended = tree.root_exit_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        proxy.serve(listener, ended)
    }

    /// Ends all connections and returns their record, for the receipt; `None` without a proxy.
    pub(crate) fn finish(self) -> Option<Value> {
        let report = self.0?.finish();
        // A report has only texts and numbers, so it can always be written as JSON.
        serde_json::to_value(report).ok()
    }
}
