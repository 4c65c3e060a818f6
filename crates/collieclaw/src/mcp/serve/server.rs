//! What a client is offered, and what becomes of its calls.

use std::collections::BTreeSet;
use std::future::{Future, pending, ready};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use hyper::http::request::Parts;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    JsonObject, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::cancel::{Cancel, Why};
use crate::channels::Caller;
use crate::runtime::Door;

const INSTRUCTIONS: &str = "Every call passes a gate and leaves a receipt. What is denied stays denied: don't try to get \
                            around it.";

/// Where a receipt's id is in the metadata of an answer.
const RECEIPT: &str = "collieclaw/receipt";

/// A call on its way to the door.
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) cancel: Cancel,
    pub(super) reply: oneshot::Sender<Answered>,
}

/// What came of it.
pub(super) struct Answered {
    pub(super) worked: bool,
    pub(super) text: String,
    pub(super) receipt: Option<String>,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) tools: Vec<Tool>,
    pub(super) asked: SyncSender<Asked>,
}

/// The tools of the door that are listed.
pub(super) fn offered(door: &Door, listed: &BTreeSet<String>) -> Vec<Tool> {
    let tools = door.rules.tools.iter().filter(|tool| listed.contains(tool.name()));
    let schema = |schema: Value| match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::new(JsonObject::new()),
    };
    tools
        .map(|tool| {
            Tool::new(tool.name().to_owned(), tool.description().to_owned(), schema(tool.parameters_schema()))
        })
        .collect()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("collieclaw", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        ready(Ok(ListToolsResult::with_all_items(self.tools.clone())))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let broken = |what: &str| ErrorData::internal_error(what.to_owned(), None);
        let cancel = Cancel::new().map_err(|_| broken("out of descriptors"))?;
        // A client that goes away takes its call with it.
        let _ends_with_the_request = Abandoned(cancel.clone());
        let (reply, answered) = oneshot::channel();
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        let asked = Asked { tool: call.name.into_owned(), arguments, cancel: cancel.clone(), reply };
        self.asked.try_send(asked).map_err(|refused| match refused {
            TrySendError::Full(_) => broken("too many calls wait already"),
            TrySendError::Disconnected(_) => broken("no more calls are taken"),
        })?;
        tokio::pin!(answered);
        let answered = tokio::select! {
            answered = &mut answered => answered,
            () = given_up(&context) => {
                cancel.raise(Why::Operator);
                answered.await
            }
        };
        let answered = answered.map_err(|_| broken("its receipt can't be written"))?;
        Ok(CallToolResponse::Complete(result(answered)))
    }
}

/// Returns when the client has cancelled its request; over HTTP also when it has left the connection that bears it.
async fn given_up(context: &RequestContext<RoleServer>) {
    let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    let left = async {
        match caller {
            Some(caller) => caller.gone().await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = left => {}
    }
}

fn result(answered: Answered) -> CallToolResult {
    let content = vec![ContentBlock::text(answered.text)];
    let mut result =
        if answered.worked { CallToolResult::success(content) } else { CallToolResult::error(content) };
    if let Some(receipt) = answered.receipt {
        let mut meta = MetaObject::new();
        meta.insert(RECEIPT.to_owned(), receipt.into());
        result.meta = Some(meta);
    }
    result
}

/// Raised when nobody waits for the answer any more.
struct Abandoned(Cancel);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.raise(Why::Operator);
    }
}
