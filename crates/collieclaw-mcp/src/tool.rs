//! A server's tool, on its way through the door.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collieclaw_agent::config::{McpConnection, McpServerSettings, TOOL_SEPARATOR};
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::runtime::CallGrant;
use collieclaw_agent::tools::{
    ForeignTool, PreparedCall, Tool, ToolContext, ToolEnd, ToolResult, is_tool_name,
};
use collieclaw_gate::{ForeignToolInfo, GatePolicy, GateRequest, NetworkReach, RiskLevel, WriteAccess};
use collieclaw_mcp_ipc::PinnedTool;
use collieclaw_providers::secret::{Secret, is_secret_name};
use serde_json::{Map, Value, json};

use super::pins::{PinnedServer, PinnedToolChange, ToolPinError};
use super::server_process::McpStartContext;
use super::session::{McpCallError, McpSession};
use super::session_pool::{ApprovedServer, McpSessionPool, PooledSession};

/// What models take at most.
const LONGEST_NAME: usize = 64;

/// What the model calls a server's tool.
#[must_use]
pub fn offered_name(server: &str, tool: &str) -> String {
    let letter = |letter: char| if is_tool_name(&format!("x{letter}")) { letter } else { '_' };
    let name: String = format!("{server}{TOOL_SEPARATOR}{tool}").chars().map(letter).collect();
    name.chars().take(LONGEST_NAME).collect()
}

/// The servers of the configuration, and their tools as far as somebody approved them.
pub struct McpServerSet<'s> {
    home: &'s AgentHome,
    variables: &'s BTreeMap<String, String>,
    sessions: &'s McpSessionPool,
    servers: Vec<Rc<McpServerHandle>>,
    /// Of which nobody has approved anything, by name.
    unapproved: Vec<String>,
    /// Why others can't be used, in sentences.
    problems: Vec<String>,
}

struct McpServerHandle {
    name: String,
    origin: String,
    approved: ApprovedServer,
    home: AgentHome,
    variables: BTreeMap<String, String>,
    sessions: McpSessionPool,
    /// The one that this turn uses.
    session: RefCell<Option<PooledSession>>,
}

impl<'s> McpServerSet<'s> {
    /// None yet. `variables` is our environment.
    #[must_use]
    pub fn new(
        home: &'s AgentHome,
        variables: &'s BTreeMap<String, String>,
        sessions: &'s McpSessionPool,
    ) -> Self {
        Self { home, variables, sessions, servers: Vec::new(), unapproved: Vec::new(), problems: Vec::new() }
    }

    /// One more of the configuration, with what was approved of it.
    pub fn add(
        &mut self,
        name: &str,
        settings: &McpServerSettings,
        pinned: Option<&Result<PinnedServer, ToolPinError>>,
    ) {
        match pinned {
            Some(Ok(pinned)) if pinned.matches_connection(settings) => self.servers.push(Rc::new(McpServerHandle {
                name: name.to_owned(),
                origin: format!("the MCP server `{name}`"),
                approved: ApprovedServer { settings: settings.clone(), pinned: pinned.clone() },
                home: self.home.clone(),
                variables: self.variables.clone(),
                sessions: self.sessions.clone(),
                session: RefCell::new(None),
            })),
            Some(Ok(_)) => self.problems.push(format!(
                "the MCP server `{name}` is configured otherwise than it was approved; `collieclaw mcp approve \
                 {name}` looks again"
            )),
            None => self.unapproved.push(name.to_owned()),
            Some(Err(error)) => self.problems.push(format!("the MCP server `{name}` is not used: {error}")),
        }
    }

    /// What is configured and can't be used, in sentences.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let nobody = match self.unapproved.as_slice() {
            [] => None,
            [name] => Some(format!(
                "nobody has approved the tools of the MCP server `{name}`; `collieclaw mcp approve {name}` shows them"
            )),
            names => Some(format!(
                "nobody has approved the tools of the MCP servers `{}`; `collieclaw mcp approve NAME` shows them",
                names.join("`, `")
            )),
        };
        self.problems.iter().cloned().chain(nobody).collect()
    }

    /// What was approved, to know it again.
    pub fn fingerprints(&self) -> impl Iterator<Item = Value> {
        self.servers.iter().map(|server| json!({ "server": server.name, "pinned": server.approved.pinned }))
    }

    /// Those that can be used.
    #[must_use]
    pub fn approved(&self) -> Vec<ApprovedServer> {
        self.servers.iter().map(|server| server.approved.clone()).collect()
    }

    /// Their tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Box<dyn Tool>> {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        for server in &self.servers {
            let wanted = |tool: &&PinnedTool| server.approved.settings.enables_tool(&tool.name);
            for tool in server.approved.pinned.tools.iter().filter(wanted) {
                let name = offered_name(&server.name, &tool.name);
                let bound = Rc::new(McpToolBinding {
                    name: name.clone(),
                    tool: tool.clone(),
                    server: Rc::clone(server),
                });
                tools.push(Box::new(ForeignTool {
                    name,
                    description: tool.description.clone(),
                    schema: tool.schema.clone(),
                    make_call: Box::new(move |arguments| {
                        let arguments = arguments.as_object().cloned().unwrap_or_default();
                        Box::new(PreparedMcpCall { bound: Rc::clone(&bound), arguments })
                    }),
                }));
            }
        }
        tools
    }
}

struct McpToolBinding {
    name: String,
    tool: PinnedTool,
    server: Rc<McpServerHandle>,
}

struct PreparedMcpCall {
    bound: Rc<McpToolBinding>,
    arguments: Map<String, Value>,
}

impl PreparedCall for PreparedMcpCall {
    fn call(&self) -> GateRequest<'_> {
        let server = &self.bound.server;
        let (writes, network) = server.granted_access();
        let risk = server.risk(&self.bound.tool.name);
        GateRequest::ForeignTool(ForeignToolInfo {
            name: &self.bound.name,
            origin: &server.origin,
            risk,
            writes,
            network,
        })
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let McpToolBinding { tool, server, .. } = &*self.bound;
        let time = server.approved.settings.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let mut kept = server.session.borrow_mut();
        let mut result = server.call(tool, &self.arguments, &mut kept, context, time);
        // It ended while nobody asked it anything: that is no fault of this call.
        if result == Err(McpCallError::ServerEnded) && context.cancel.reason().is_none() {
            *kept = None;
            result = server.call(tool, &self.arguments, &mut kept, context, time);
        }
        let sandbox = kept.as_ref().and_then(|kept| kept.session.sandbox.clone());
        // One that did not answer is not asked again: the next call starts another.
        if result.is_err() {
            *kept = None;
        }
        let result = result.unwrap_or_else(|trouble| match trouble {
            McpCallError::Cancelled => ToolResult::cancelled(),
            McpCallError::TimedOut(time) => {
                let seconds = time.as_secs_f64();
                ToolResult::failed(format!("the server took longer than {seconds} s and was ended"))
                    .with_metadata("timed_out", true)
            }
            McpCallError::ServerEnded => ToolResult::failed("the server has ended"),
            McpCallError::Failed(why) => ToolResult::failed(why),
        });
        ToolResult { sandbox, ..server.redact_secrets(result) }
    }
}

impl McpServerHandle {
    /// Servers like to repeat what they were sent.
    fn redact_secrets(&self, result: ToolResult) -> ToolResult {
        let names: Vec<&String> = match self.connection() {
            McpConnection::Http { token_env, .. } => vec![token_env],
            McpConnection::Program { env, .. } => env.iter().filter(|name| is_secret_name(name)).collect(),
        };
        let values = names.into_iter().filter_map(|name| self.variables.get(name));
        let secrets: Vec<Secret> = values.map(|value| Secret::new(value.clone())).collect();
        let hidden = |text: String| secrets.iter().fold(text, |text, secret| secret.redact_in(&text));
        let end = match result.end {
            ToolEnd::Failed(why) => ToolEnd::Failed(hidden(why)),
            other => other,
        };
        ToolResult { end, output: hidden(result.output), ..result }
    }

    fn risk(&self, tool: &str) -> RiskLevel {
        let settings = &self.approved.settings;
        settings.risks.get(tool).copied().unwrap_or(settings.risk)
    }

    fn connection(&self) -> &McpConnection {
        &self.approved.settings.connection
    }

    /// Whether it may run on between two turns: what could write there would do so without a receipt, and at an address
    /// there is nothing to be kept.
    fn may_outlive_turn(&self) -> bool {
        matches!(self.connection(), McpConnection::Program { workspace, .. } if workspace.writes() == WriteAccess::None)
    }

    /// What its sandbox lets it reach. One that was there before has none.
    fn granted_access(&self) -> (WriteAccess, NetworkReach) {
        match self.connection() {
            McpConnection::Program { network, workspace, .. } => {
                (workspace.writes(), if *network { NetworkReach::Full } else { NetworkReach::None })
            }
            McpConnection::Http { .. } => (WriteAccess::None, NetworkReach::Full),
        }
    }

    fn call(
        &self,
        tool: &PinnedTool,
        arguments: &Map<String, Value>,
        kept: &mut Option<PooledSession>,
        context: &ToolContext<'_>,
        time: Duration,
    ) -> Result<ToolResult, McpCallError> {
        let deadline = Instant::now() + time;
        let left = || match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(McpCallError::TimedOut(time)),
            left => Ok(left),
        };
        let idle = || self.sessions.take(&self.approved, context.policy);
        let running = kept.take().filter(|kept| !kept.session.is_closed_or_idle()).or_else(idle);
        // At an address another may stand by now, and nobody would tell.
        let known = running.is_some() && matches!(self.connection(), McpConnection::Program { .. });
        let running = running.map_or_else(|| self.start_session(context.policy), Ok)?;
        let session = &kept.insert(running).session;
        let in_time = |trouble: McpCallError| match trouble {
            McpCallError::TimedOut(_) => McpCallError::TimedOut(time),
            other => other,
        };
        if session.take_tools_changed() || !known {
            self.check_unchanged(&session.list_tools(context.cancel, left()?).map_err(in_time)?)?;
        }
        session.call_tool(&tool.name, arguments, context.cancel, left()?).map_err(in_time)
    }

    fn start_session(&self, policy: &GatePolicy) -> Result<PooledSession, McpCallError> {
        let ground = McpStartContext { policy, home: &self.home, variables: &self.variables };
        let session = McpSession::open(&self.approved.settings, ground).map_err(McpCallError::Failed)?;
        Ok(PooledSession { session, approved: self.approved.clone(), policy: policy.clone() })
    }

    /// A new tool is offered to nobody; any other difference ends it.
    fn check_unchanged(&self, now: &[PinnedTool]) -> Result<(), McpCallError> {
        let changes = self.approved.pinned.changes(now);
        let different = changes.iter().find_map(|change| match change {
            PinnedToolChange::Added(_) => None,
            PinnedToolChange::Removed(before) => Some(format!("`{}` is gone", before.name)),
            PinnedToolChange::Changed { before, .. } => Some(format!("`{}` is another now", before.name)),
        });
        let name = &self.name;
        match different {
            None => Ok(()),
            Some(what) => Err(McpCallError::Failed(format!(
                "the tools of the MCP server `{name}` are not as they were approved: {what}; nothing was called. \
                 `collieclaw mcp approve {name}` shows the difference"
            ))),
        }
    }
}

impl Drop for McpServerHandle {
    fn drop(&mut self) {
        if let Some(kept) = self.session.take().filter(|_| self.may_outlive_turn()) {
            self.sessions.return_session(kept);
        }
    }
}
