//! Tools of MCP servers, as the agent offers and calls them.

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
use collieclaw_gate::{ForeignToolAccess, GatePolicy, GateRequest, NetworkReach, RiskLevel, WriteAccess};
use collieclaw_mcp_ipc::PinnedTool;
use collieclaw_providers::secret::{Secret, is_secret_name};
use serde_json::{Map, Value, json};

use super::failure::McpFailure;
use super::pins::{PinnedServer, PinnedToolChange, ToolPinError};
use super::server_process::McpStartContext;
use super::session::{McpCallError, McpSession};
use super::session_pool::{ApprovedServer, McpSessionPool, PooledSession};

/// The longest tool name that model servers accept.
const LONGEST_NAME: usize = 64;

/// Returns the name under which the model sees a server's tool.
#[must_use]
pub fn offered_name(server: &str, tool: &str) -> String {
    let to_allowed = |char: char| if is_tool_name(&format!("x{char}")) { char } else { '_' };
    let name: String = format!("{server}{TOOL_SEPARATOR}{tool}").chars().map(to_allowed).collect();
    name.chars().take(LONGEST_NAME).collect()
}

/// The configured servers, with the tools that the operator approved.
pub struct McpServerSet<'s> {
    home: &'s AgentHome,
    variables: &'s BTreeMap<String, String>,
    sessions: &'s McpSessionPool,
    servers: Vec<Rc<McpServerHandle>>,
    /// The names of servers without an approval.
    unapproved: Vec<String>,
    /// The reasons why other servers can't be used, as sentences.
    problems: Vec<String>,
}

struct McpServerHandle {
    name: String,
    origin: String,
    approved: ApprovedServer,
    home: AgentHome,
    variables: BTreeMap<String, String>,
    sessions: McpSessionPool,
    /// The session that this turn uses.
    session: RefCell<Option<PooledSession>>,
}

impl<'s> McpServerSet<'s> {
    /// Creates an empty set. `variables` is the environment of this process.
    #[must_use]
    pub fn new(
        home: &'s AgentHome,
        variables: &'s BTreeMap<String, String>,
        sessions: &'s McpSessionPool,
    ) -> Self {
        Self { home, variables, sessions, servers: Vec::new(), unapproved: Vec::new(), problems: Vec::new() }
    }

    /// Adds a configured server with its pin.
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
                "the configuration of the MCP server `{name}` has changed since it was approved; run `collieclaw mcp \
                 approve {name}` to check it again"
            )),
            None => self.unapproved.push(name.to_owned()),
            Some(Err(error)) => self.problems.push(format!("could not use the MCP server `{name}`: {error}")),
        }
    }

    /// Returns the reasons why configured servers can't be used, as sentences.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let unapproved = match self.unapproved.as_slice() {
            [] => None,
            [name] => Some(format!(
                "the tools of the MCP server `{name}` are not approved; run `collieclaw mcp approve {name}` to see them"
            )),
            names => Some(format!(
                "the tools of the MCP servers `{}` are not approved; run `collieclaw mcp approve NAME` to see them",
                names.join("`, `")
            )),
        };
        self.problems.iter().cloned().chain(unapproved).collect()
    }

    /// Returns a value for each server that changes with its approval.
    pub fn fingerprints(&self) -> impl Iterator<Item = Value> {
        self.servers.iter().map(|server| json!({ "server": server.name, "pinned": server.approved.pinned }))
    }

    /// Returns the servers that can be used.
    #[must_use]
    pub fn approved(&self) -> Vec<ApprovedServer> {
        self.servers.iter().map(|server| server.approved.clone()).collect()
    }

    /// Returns the enabled tools of all usable servers.
    #[must_use]
    pub fn tools(&self) -> Vec<Box<dyn Tool>> {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        for server in &self.servers {
            let wanted = |tool: &&PinnedTool| server.approved.settings.enables_tool(&tool.name);
            for tool in server.approved.pinned.tools.iter().filter(wanted) {
                let name = offered_name(&server.name, &tool.name);
                let binding = Rc::new(McpToolBinding {
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
                        Box::new(PreparedMcpCall { binding: Rc::clone(&binding), arguments })
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
    binding: Rc<McpToolBinding>,
    arguments: Map<String, Value>,
}

impl PreparedCall for PreparedMcpCall {
    fn call(&self) -> GateRequest<'_> {
        let server = &self.binding.server;
        let (writes, network) = server.granted_access();
        let risk = server.risk(&self.binding.tool.name);
        GateRequest::ForeignTool(ForeignToolAccess {
            name: &self.binding.name,
            origin: &server.origin,
            risk,
            writes,
            network,
        })
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let McpToolBinding { tool, server, .. } = &*self.binding;
        let time = server.approved.settings.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let mut kept = server.session.borrow_mut();
        let mut result = server.call(tool, &self.arguments, &mut kept, context, time);
        // The server ended while it was idle, which is not this call's fault: start a new server and try
        // again.
        if result == Err(McpCallError::ServerEnded) && context.cancel.reason().is_none() {
            *kept = None;
            result = server.call(tool, &self.arguments, &mut kept, context, time);
        }
        let sandbox = kept.as_ref().and_then(|kept| kept.session.sandbox.clone());
        // A server that didn't answer is never reused: the next call starts a new server.
        if result.is_err() {
            *kept = None;
        }
        let result = result.unwrap_or_else(|error| match error {
            McpCallError::Cancelled => ToolResult::cancelled(),
            McpCallError::TimedOut(time) => {
                let seconds = time.as_secs_f64();
                ToolResult::failed(format!("the server took longer than {seconds} s and was killed"))
                    .with_metadata("timed_out", true)
            }
            McpCallError::ServerEnded => ToolResult::failed("the server has ended"),
            McpCallError::Failed(why) => ToolResult::failed(why.to_string()),
        });
        ToolResult { sandbox, ..server.redact_secrets(result) }
    }
}

impl McpServerHandle {
    /// Removes secrets from a result, because servers may repeat what they were sent.
    fn redact_secrets(&self, result: ToolResult) -> ToolResult {
        let names: Vec<&String> = match self.connection() {
            McpConnection::Http { token_env, .. } => vec![token_env],
            McpConnection::Program { env, .. } => env.iter().filter(|name| is_secret_name(name)).collect(),
        };
        let values = names.into_iter().filter_map(|name| self.variables.get(name));
        let secrets: Vec<Secret> = values.map(|value| Secret::new(value.clone())).collect();
        let redact = |text: String| secrets.iter().fold(text, |text, secret| secret.redact_in(&text));
        let end = match result.end {
            ToolEnd::Failed(why) => ToolEnd::Failed(redact(why)),
            other => other,
        };
        ToolResult { end, output: redact(result.output), ..result }
    }

    fn risk(&self, tool: &str) -> RiskLevel {
        let settings = &self.approved.settings;
        settings.risks.get(tool).copied().unwrap_or(settings.risk)
    }

    fn connection(&self) -> &McpConnection {
        &self.approved.settings.connection
    }

    /// Returns true if the server may keep running between turns. A server that can write to the workspace
    /// could do so without a receipt, and a server at an address needs no keeping.
    fn may_outlive_turn(&self) -> bool {
        matches!(self.connection(), McpConnection::Program { workspace, .. } if workspace.writes() == WriteAccess::None)
    }

    /// Returns the access that the sandbox grants. A server at an address runs outside of the sandbox.
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
        // The server at an address may have been replaced without notice, so its tools are checked every
        // time.
        let tools_checked = running.is_some() && matches!(self.connection(), McpConnection::Program { .. });
        let running = running.map_or_else(|| self.start_session(context.policy), Ok)?;
        let session = &kept.insert(running).session;
        let with_whole_time = |error: McpCallError| match error {
            McpCallError::TimedOut(_) => McpCallError::TimedOut(time),
            other => other,
        };
        if session.take_tools_changed() || !tools_checked {
            self.check_unchanged(&session.list_tools(context.cancel, left()?).map_err(with_whole_time)?)?;
        }
        session.call_tool(&tool.name, arguments, context.cancel, left()?).map_err(with_whole_time)
    }

    fn start_session(&self, policy: &GatePolicy) -> Result<PooledSession, McpCallError> {
        let context =
            McpStartContext { server: &self.name, policy, home: &self.home, variables: &self.variables };
        let session = McpSession::open(&self.approved.settings, context).map_err(McpCallError::Failed)?;
        Ok(PooledSession { session, approved: self.approved.clone(), policy: policy.clone() })
    }

    /// Fails if a pinned tool was removed or changed. New tools are ignored, because they are not offered.
    fn check_unchanged(&self, now: &[PinnedTool]) -> Result<(), McpCallError> {
        let changes = self.approved.pinned.changes(now);
        let change = changes.iter().find_map(|change| match change {
            PinnedToolChange::Added(_) => None,
            PinnedToolChange::Removed(before) => Some(format!("`{}` was removed", before.name)),
            PinnedToolChange::Changed { before, .. } => Some(format!("`{}` has changed", before.name)),
        });
        let name = &self.name;
        match change {
            None => Ok(()),
            Some(what) => Err(McpCallError::Failed(McpFailure::Other(format!(
                "the tools of the MCP server `{name}` changed since they were approved: {what}; the call was not sent. \
                 `collieclaw mcp approve {name}` shows the difference"
            )))),
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
