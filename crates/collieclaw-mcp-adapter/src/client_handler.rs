//! Refuses every request that a server may send to its client. A server gets no access to the model, to
//! folders, or to the operator.

#![expect(deprecated, reason = "deprecated in the protocol, but current servers still ask for it")]

use std::future::{Future, ready};

use collieclaw_mcp_ipc::McpServerReply;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, ErrorData,
    Implementation, ListRootsResult, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use crate::parent_line::ParentLineSender;

/// An MCP client handler that offers nothing to servers.
pub(crate) struct RefusingHandler {
    /// Reports to `collieclaw` that the server's tools have changed.
    pub(crate) sender: ParentLineSender,
}

fn refused<T>() -> Result<T, ErrorData> {
    Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client offers nothing to servers", None))
}

impl ClientHandler for RefusingHandler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("collieclaw", env!("CARGO_PKG_VERSION")),
        )
        // The latest version that starts with this handshake.
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ListRootsResult, ErrorData>> + Send + '_ {
        ready(refused())
    }

    fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ElicitResult, ErrorData>> + Send + '_ {
        ready(refused())
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.sender.send(&McpServerReply::Changed);
        ready(())
    }
}
