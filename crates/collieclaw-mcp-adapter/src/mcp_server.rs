//! Offers tools to MCP clients and forwards their calls to `collieclaw`.

use std::collections::HashMap;
use std::future::{Future, pending, ready};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collieclaw_listen::AccessToken;
use collieclaw_listen::WeakTcpPeer;
use collieclaw_mcp_ipc::{
    AdapterToken, McpCallOutcome, McpCallReply, McpClientRequest, PinnedTool, ServingEnd,
};
use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    JsonObject, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, serve_server};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use crate::http_server;
use crate::parent_line::{ParentLineReader, ParentLineSender};

/// The longest message of a client.
pub(crate) const LONGEST_MESSAGE: usize = 4 << 20;

/// The most unanswered calls of all clients that `collieclaw` has got. It queues fewer, and rejects the rest with a
/// receipt. Further calls wait here until an earlier one is answered.
const MOST_WAITING: usize = 256;

/// The most calls that wait here. Calls beyond it are not taken in at all.
const MOST_HELD_BACK: usize = 4096;

/// Time for clients to receive answers that were sent just before `collieclaw` closed the connection.
const FINAL_ANSWERS_TIMEOUT: Duration = Duration::from_millis(200);

const INSTRUCTIONS: &str = "Every call passes a gate and leaves a receipt. A denied call stays denied: don't try to \
                            work around it.";

/// The key of the receipt id in a result's metadata.
const RECEIPT: &str = "collieclaw/receipt";

/// The clients that tools are offered to.
pub(crate) enum OfferTarget {
    /// The client on standard input and output.
    Stdio,
    /// Clients that connect to the listening socket on standard input and send the token.
    Http { token: AdapterToken },
}

/// Forwards calls and their outcomes until either side ends. If `to` is an error, the versions differ.
pub(crate) async fn offer_tools(
    tools: Vec<PinnedTool>,
    to: Result<OfferTarget, String>,
    mut reader: ParentLineReader,
    sender: &ParentLineSender,
) {
    let tools: Arc<[Tool]> = tools.into_iter().map(to_mcp_tool).collect();
    let server = ToolServer { tools, calls: Arc::new(UnansweredCalls::new(sender.clone())) };
    let calls = Arc::clone(&server.calls);
    let read_replies = async {
        while let Some(McpCallReply { number, outcome }) = reader.receive().await {
            if let Some(reply) = calls.waiting().remove(&number) {
                let _ = reply.send(outcome);
            }
        }
        calls.waiting().clear();
        tokio::time::sleep(FINAL_ANSWERS_TIMEOUT).await;
    };
    let serve = async {
        match to {
            Ok(OfferTarget::Stdio) => {
                serve_stdio(server).await.map_or_else(ServingEnd::NoProtocol, |()| ServingEnd::Left)
            }
            Ok(OfferTarget::Http { token }) => {
                let served = http_server::serve(server, AccessToken::new(token.0)).await;
                served.map_or_else(
                    |error| ServingEnd::Fault(format!("could not listen: {error}")),
                    |()| ServingEnd::Left,
                )
            }
            Err(why) => ServingEnd::WrongVersion(why),
        }
    };
    tokio::select! {
        end = serve => drop(sender.send(&McpClientRequest::Over(end))),
        () = read_replies => {}
    }
}

async fn serve_stdio(server: ToolServer) -> Result<(), String> {
    let streams =
        AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout()).with_max_line_length(LONGEST_MESSAGE);
    let running = serve_server(server, streams).await.map_err(|error| error.to_string())?;
    running.waiting().await.map(drop).map_err(|error| error.to_string())
}

fn to_mcp_tool(tool: PinnedTool) -> Tool {
    let schema = match tool.schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(tool.name, tool.description, Arc::new(schema))
}

/// An MCP server whose calls are handled by `collieclaw`.
#[derive(Clone)]
pub(crate) struct ToolServer {
    tools: Arc<[Tool]>,
    calls: Arc<UnansweredCalls>,
}

type ReplySenders = HashMap<u64, oneshot::Sender<Result<McpCallOutcome, String>>>;

/// The calls that `collieclaw` has not answered yet.
struct UnansweredCalls {
    sender: ParentLineSender,
    next: AtomicU64,
    waiting: Mutex<ReplySenders>,
    /// The places for calls that `collieclaw` has got.
    places: Semaphore,
    /// The number of calls that wait for a place.
    held_back: AtomicUsize,
}

impl UnansweredCalls {
    fn new(sender: ParentLineSender) -> Self {
        Self {
            sender,
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
            places: Semaphore::new(MOST_WAITING),
            held_back: AtomicUsize::new(0),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, ReplySenders> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for a place.
struct HeldBack<'h>(&'h AtomicUsize);

impl<'h> HeldBack<'h> {
    fn new(count: &'h AtomicUsize) -> Option<Self> {
        let free = |held| (held < MOST_HELD_BACK).then_some(held + 1);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, free).ok().map(|_| Self(count))
    }
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A pending call; dropping the guard cancels the call.
struct CallGuard<'c> {
    calls: &'c UnansweredCalls,
    number: u64,
}

impl CallGuard<'_> {
    fn cancel(&self) {
        if self.calls.waiting().contains_key(&self.number) {
            self.calls.sender.send(&McpClientRequest::Cancel { number: self.number });
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        // A disconnected client drops the future of its call.
        self.cancel();
        self.calls.waiting().remove(&self.number);
    }
}

impl ServerHandler for ToolServer {
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
        ready(Ok(ListToolsResult::with_all_items(self.tools.to_vec())))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let broken = |what: String| ErrorData::internal_error(what, None);
        let calls = &*self.calls;
        let held_back = HeldBack::new(&calls.held_back)
            .ok_or_else(|| broken("the server takes no more calls at the moment".to_owned()))?;
        let place = tokio::select! {
            place = calls.places.acquire() => place.map_err(|error| broken(error.to_string()))?,
            () = wait_for_cancel(&context) => return Err(broken("cancelled".to_owned())),
        };
        drop(held_back);
        let _place = place;
        let pending_call = CallGuard { calls, number: calls.next.fetch_add(1, Ordering::Relaxed) };
        let (reply, mut answered) = oneshot::channel();
        calls.waiting().insert(pending_call.number, reply);
        let arguments = serde_json::to_string(&call.arguments.unwrap_or_default());
        let arguments = arguments.map_err(|error| broken(error.to_string()))?;
        let call =
            McpClientRequest::Call { number: pending_call.number, tool: call.name.into_owned(), arguments };
        if !calls.sender.send(&call) {
            // An unsent call would never be answered. The limit for a client's message makes this impossible
            // today.
            return Err(broken("the arguments are too long".to_owned()));
        }
        let answered = tokio::select! {
            answered = &mut answered => answered,
            () = wait_for_cancel(&context) => {
                pending_call.cancel();
                answered.await
            }
        };
        let outcome = answered.map_err(|_| broken("CollieClaw takes no more calls".to_owned()))?;
        Ok(CallToolResponse::Complete(to_mcp_result(outcome.map_err(broken)?)))
    }
}

/// Waits until the client cancels its request or, over HTTP, closes the connection of the request.
async fn wait_for_cancel(context: &RequestContext<RoleServer>) {
    let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<WeakTcpPeer>());
    let left = async {
        match caller {
            Some(caller) => caller.wait_for_disconnect().await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = left => {}
    }
}

fn to_mcp_result(outcome: McpCallOutcome) -> CallToolResult {
    let content = vec![ContentBlock::text(outcome.text)];
    let mut result =
        if outcome.worked { CallToolResult::success(content) } else { CallToolResult::error(content) };
    if let Some(receipt) = outcome.receipt {
        let mut meta = MetaObject::new();
        meta.insert(RECEIPT.to_owned(), receipt.into());
        result.meta = Some(meta);
    }
    result
}
