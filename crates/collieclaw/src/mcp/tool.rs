//! A server's tool, on its way through the door.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collieclaw_gate::{Call, Foreign, GatePolicy, Reaches, Risk, Writes};
use serde_json::{Map, Value, json};

use super::pins::{Change, PinError, Pinned, PinnedTool};
use super::session::{Session, Trouble};
use super::sessions::{Approved, Kept, Sessions};
use super::start::Ground;
use crate::config::{McpConnection, McpServer};
use crate::home::Home;
use crate::runtime::Granted;
use crate::secret::{Secret, names_a_secret};
use crate::tools::{Context, End, ForeignTool, Prepared, Tool, ToolResult, is_tool_name};

/// What stands between the name of a server and that of its tool. No tool of ours or of a plugin has it.
pub(crate) const BETWEEN: &str = "__";

/// What models take at most.
const LONGEST_NAME: usize = 64;

/// What the model calls a server's tool.
#[must_use]
pub fn offered_name(server: &str, tool: &str) -> String {
    let letter = |letter: char| if is_tool_name(&format!("x{letter}")) { letter } else { '_' };
    let name: String = format!("{server}{BETWEEN}{tool}").chars().map(letter).collect();
    name.chars().take(LONGEST_NAME).collect()
}

/// The servers of the configuration, and their tools as far as somebody approved them.
pub struct Servers<'s> {
    home: &'s Home,
    variables: &'s BTreeMap<String, String>,
    sessions: &'s Sessions,
    servers: Vec<Rc<Server>>,
    /// Of which nobody has approved anything, by name.
    unapproved: Vec<String>,
    /// Why others can't be used, in sentences.
    troubles: Vec<String>,
}

struct Server {
    name: String,
    origin: String,
    approved: Approved,
    home: Home,
    variables: BTreeMap<String, String>,
    sessions: Sessions,
    /// The one that this turn uses.
    kept: RefCell<Option<Kept>>,
}

impl<'s> Servers<'s> {
    /// None yet. `variables` is our environment.
    #[must_use]
    pub fn new(home: &'s Home, variables: &'s BTreeMap<String, String>, sessions: &'s Sessions) -> Self {
        Self { home, variables, sessions, servers: Vec::new(), unapproved: Vec::new(), troubles: Vec::new() }
    }

    /// One more of the configuration, with what was approved of it.
    pub fn add(&mut self, name: &str, settings: &McpServer, pinned: Option<&Result<Pinned, PinError>>) {
        match pinned {
            Some(Ok(pinned)) if pinned.is_of(settings) => self.servers.push(Rc::new(Server {
                name: name.to_owned(),
                origin: format!("the MCP server `{name}`"),
                approved: Approved { settings: settings.clone(), pinned: pinned.clone() },
                home: self.home.clone(),
                variables: self.variables.clone(),
                sessions: self.sessions.clone(),
                kept: RefCell::new(None),
            })),
            Some(Ok(_)) => self.troubles.push(format!(
                "the MCP server `{name}` is configured otherwise than it was approved; `collieclaw mcp approve \
                 {name}` looks again"
            )),
            None => self.unapproved.push(name.to_owned()),
            Some(Err(error)) => self.troubles.push(format!("the MCP server `{name}` is not used: {error}")),
        }
    }

    /// What is configured and can't be used, in sentences.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
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
        self.troubles.iter().cloned().chain(nobody).collect()
    }

    /// What was approved, to know it again.
    pub fn marks(&self) -> impl Iterator<Item = Value> {
        self.servers.iter().map(|server| json!({ "server": server.name, "pinned": server.approved.pinned }))
    }

    /// Those that can be used.
    #[must_use]
    pub fn approved(&self) -> Vec<Approved> {
        self.servers.iter().map(|server| server.approved.clone()).collect()
    }

    /// Their tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Box<dyn Tool>> {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        for server in &self.servers {
            let wanted = |tool: &&PinnedTool| server.approved.settings.wants(&tool.name);
            for tool in server.approved.pinned.tools.iter().filter(wanted) {
                let name = offered_name(&server.name, &tool.name);
                let bound =
                    Rc::new(Bound { name: name.clone(), tool: tool.clone(), server: Rc::clone(server) });
                tools.push(Box::new(ForeignTool {
                    name,
                    description: tool.description.clone(),
                    schema: tool.schema.clone(),
                    call: Box::new(move |arguments| {
                        let arguments = arguments.as_object().cloned().unwrap_or_default();
                        Box::new(Wanted { bound: Rc::clone(&bound), arguments })
                    }),
                }));
            }
        }
        tools
    }
}

impl McpServer {
    /// Whether the configuration takes a tool of it.
    #[must_use]
    pub fn wants(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }
}

struct Bound {
    name: String,
    tool: PinnedTool,
    server: Rc<Server>,
}

struct Wanted {
    bound: Rc<Bound>,
    arguments: Map<String, Value>,
}

impl Prepared for Wanted {
    fn call(&self) -> Call<'_> {
        let server = &self.bound.server;
        let (writes, network) = server.reach();
        let risk = server.risk(&self.bound.tool.name);
        Call::Foreign(Foreign { name: &self.bound.name, origin: &server.origin, risk, writes, network })
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let Bound { tool, server, .. } = &*self.bound;
        let time = server.approved.settings.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let mut kept = server.kept.borrow_mut();
        let mut result = server.call(tool, &self.arguments, &mut kept, context, time);
        // It ended while nobody asked it anything: that is no fault of this call.
        if result == Err(Trouble::Gone) && context.cancel.why().is_none() {
            *kept = None;
            result = server.call(tool, &self.arguments, &mut kept, context, time);
        }
        let sandbox = kept.as_ref().and_then(|kept| kept.session.sandbox.clone());
        // One that did not answer is not asked again: the next call starts another.
        if result.is_err() {
            *kept = None;
        }
        let result = result.unwrap_or_else(|trouble| match trouble {
            Trouble::Cancelled => ToolResult::cancelled(),
            Trouble::TimedOut(time) => {
                let seconds = time.as_secs_f64();
                ToolResult::failed(format!("the server took longer than {seconds} s and was ended"))
                    .with("timed_out", true)
            }
            Trouble::Gone => ToolResult::failed("the server has ended"),
            Trouble::Failed(why) => ToolResult::failed(why),
        });
        ToolResult { sandbox, ..server.without_secrets(result) }
    }
}

impl Server {
    /// Servers like to repeat what they were sent.
    fn without_secrets(&self, result: ToolResult) -> ToolResult {
        let names: Vec<&String> = match self.connection() {
            McpConnection::Http { token_env, .. } => vec![token_env],
            McpConnection::Program { env, .. } => env.iter().filter(|name| names_a_secret(name)).collect(),
        };
        let values = names.into_iter().filter_map(|name| self.variables.get(name));
        let secrets: Vec<Secret> = values.map(|value| Secret::new(value.clone())).collect();
        let hidden = |text: String| secrets.iter().fold(text, |text, secret| secret.hidden_in(&text));
        let end = match result.end {
            End::Failed(why) => End::Failed(hidden(why)),
            other => other,
        };
        ToolResult { end, output: hidden(result.output), ..result }
    }

    fn risk(&self, tool: &str) -> Risk {
        let settings = &self.approved.settings;
        settings.risks.get(tool).copied().unwrap_or(settings.risk)
    }

    fn connection(&self) -> &McpConnection {
        &self.approved.settings.connection
    }

    /// Whether it may run on between two turns: what could write there would do so without a receipt, and at an address
    /// there is nothing to be kept.
    fn stays(&self) -> bool {
        matches!(self.connection(), McpConnection::Program { workspace, .. } if workspace.writes() == Writes::Nothing)
    }

    /// What its sandbox lets it reach. One that was there before has none.
    fn reach(&self) -> (Writes, Reaches) {
        match self.connection() {
            McpConnection::Program { network, workspace, .. } => {
                (workspace.writes(), if *network { Reaches::Network } else { Reaches::Nothing })
            }
            McpConnection::Http { .. } => (Writes::Nothing, Reaches::Network),
        }
    }

    fn call(
        &self,
        tool: &PinnedTool,
        arguments: &Map<String, Value>,
        kept: &mut Option<Kept>,
        context: &Context<'_>,
        time: Duration,
    ) -> Result<ToolResult, Trouble> {
        let deadline = Instant::now() + time;
        let left = || match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Trouble::TimedOut(time)),
            left => Ok(left),
        };
        let idle = || self.sessions.take(&self.approved, context.policy);
        let running = kept.take().filter(|kept| !kept.session.is_over()).or_else(idle);
        // At an address another may stand by now, and nobody would tell.
        let known = running.is_some() && matches!(self.connection(), McpConnection::Program { .. });
        let running = running.map_or_else(|| self.start(context.policy), Ok)?;
        let session = &kept.insert(running).session;
        let in_time = |trouble: Trouble| match trouble {
            Trouble::TimedOut(_) => Trouble::TimedOut(time),
            other => other,
        };
        if session.says_it_changed() || !known {
            self.is_as_approved(&session.list(context.cancel, left()?).map_err(in_time)?)?;
        }
        session.call(&tool.name, arguments, context.cancel, left()?).map_err(in_time)
    }

    fn start(&self, policy: &GatePolicy) -> Result<Kept, Trouble> {
        let ground = Ground { policy, home: &self.home, variables: &self.variables };
        let session = Session::open(&self.approved.settings, ground).map_err(Trouble::Failed)?;
        Ok(Kept { session, approved: self.approved.clone(), policy: policy.clone() })
    }

    /// A new tool is offered to nobody; any other difference ends it.
    fn is_as_approved(&self, now: &[PinnedTool]) -> Result<(), Trouble> {
        let changes = self.approved.pinned.changes(now);
        let different = changes.iter().find_map(|change| match change {
            Change::New(_) => None,
            Change::Gone(before) => Some(format!("`{}` is gone", before.name)),
            Change::Changed { before, .. } => Some(format!("`{}` is another now", before.name)),
        });
        let name = &self.name;
        match different {
            None => Ok(()),
            Some(what) => Err(Trouble::Failed(format!(
                "the tools of the MCP server `{name}` are not as they were approved: {what}; nothing was called. \
                 `collieclaw mcp approve {name}` shows the difference"
            ))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take().filter(|_| self.stays()) {
            self.sessions.give_back(kept);
        }
    }
}
