//! A server's tool, on its way through the door.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use collieclaw_gate::{Call, Foreign, Reaches, Risk, Writes};
use serde_json::{Map, Value, json};

use super::content;
use super::pins::{Change, Pinned, PinnedTool};
use super::session::{Session, Trouble};
use super::start::Ground;
use crate::config::{Config, McpConnection, McpServer};
use crate::home::Home;
use crate::runtime::Granted;
use crate::secret::Secret;
use crate::tools::{BadArguments, Context, End, Prepared, Tool, ToolResult, is_tool_name, schema};

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
pub struct Servers {
    servers: Vec<Rc<Server>>,
    /// What is configured and can't be used, in sentences.
    pub troubles: Vec<String>,
}

struct Server {
    name: String,
    origin: String,
    settings: McpServer,
    pinned: Pinned,
    home: Home,
    variables: BTreeMap<String, String>,
    session: RefCell<Option<Session>>,
}

impl Servers {
    /// Those of a configuration. `variables` is our environment.
    #[must_use]
    pub fn load(home: &Home, config: &Config, variables: &BTreeMap<String, String>) -> Self {
        let mut loaded = Self { servers: Vec::new(), troubles: Vec::new() };
        for (name, settings) in &config.mcp.servers {
            match Pinned::load(home, name) {
                Ok(Some(pinned)) if pinned.is_of(settings) => loaded.servers.push(Rc::new(Server {
                    name: name.clone(),
                    origin: format!("the MCP server `{name}`"),
                    settings: settings.clone(),
                    pinned,
                    home: home.clone(),
                    variables: variables.clone(),
                    session: RefCell::new(None),
                })),
                Ok(Some(_)) => loaded.troubles.push(format!(
                    "the MCP server `{name}` is configured otherwise than it was approved; `collieclaw mcp approve \
                     {name}` looks again"
                )),
                Ok(None) => loaded.troubles.push(format!(
                    "nobody has approved the tools of the MCP server `{name}`; `collieclaw mcp approve {name}` shows them"
                )),
                Err(error) => loaded.troubles.push(format!("the MCP server `{name}` is not used: {error}")),
            }
        }
        loaded
    }

    /// What was approved, to know it again.
    pub fn marks(&self) -> impl Iterator<Item = Value> {
        self.servers.iter().map(|server| json!({ "server": server.name, "pinned": server.pinned }))
    }

    /// Their tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Box<dyn Tool>> {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        for server in &self.servers {
            let wanted = |tool: &&PinnedTool| server.settings.wants(&tool.name);
            for tool in server.pinned.tools.iter().filter(wanted) {
                tools.push(Box::new(Offered(Rc::new(Bound {
                    name: offered_name(&server.name, &tool.name),
                    tool: tool.clone(),
                    server: Rc::clone(server),
                }))));
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

struct Offered(Rc<Bound>);

struct Wanted {
    bound: Rc<Bound>,
    arguments: Map<String, Value>,
}

impl Tool for Offered {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn description(&self) -> &str {
        &self.0.tool.description
    }

    fn parameters_schema(&self) -> Value {
        self.0.tool.schema.clone()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn Prepared>, BadArguments> {
        schema::check(&self.0.tool.schema, arguments)
            .map_err(|fault| BadArguments::new(&self.0.name, &fault))?;
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Ok(Box::new(Wanted { bound: Rc::clone(&self.0), arguments }))
    }
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
        let time = server.settings.timeout.unwrap_or(Duration::MAX).min(context.bounds.tool_timeout);
        let mut session = server.session.borrow_mut();
        let mut result = server.call(tool, &self.arguments, &mut session, context, time);
        // It ended while nobody asked it anything: that is no fault of this call.
        if result == Err(Trouble::Gone) {
            *session = None;
            result = server.call(tool, &self.arguments, &mut session, context, time);
        }
        let sandbox = session.as_ref().and_then(|session| session.sandbox.clone());
        // One that did not answer is not asked again: the next call starts another.
        if result.is_err() {
            *session = None;
        }
        let result = result.unwrap_or_else(|trouble| match trouble {
            Trouble::Cancelled => ToolResult { end: End::Cancelled, ..ToolResult::done("") },
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
        let names: Vec<&String> = match &self.settings.connection {
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
        self.settings.risks.get(tool).copied().unwrap_or(self.settings.risk)
    }

    /// What its sandbox lets it reach. One that was there before has none.
    fn reach(&self) -> (Writes, Reaches) {
        match &self.settings.connection {
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
        session: &mut Option<Session>,
        context: &Context<'_>,
        time: Duration,
    ) -> Result<ToolResult, Trouble> {
        let deadline = Instant::now() + time;
        let left = || match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Trouble::TimedOut(time)),
            left => Ok(left),
        };
        let open = session.take().filter(|session| !session.is_over());
        let known = open.is_some();
        let session = match open {
            Some(open) => session.insert(open),
            None => {
                let ground = Ground { policy: context.policy, home: &self.home, variables: &self.variables };
                session.insert(Session::open(&self.settings, ground).map_err(Trouble::Failed)?)
            }
        };
        let in_time = |trouble: Trouble| match trouble {
            Trouble::TimedOut(_) => Trouble::TimedOut(time),
            other => other,
        };
        if session.says_it_changed() || !known {
            self.is_as_approved(&session.list(context.cancel, left()?).map_err(in_time)?)?;
        }
        let result = session.call(&tool.name, arguments, context.cancel, left()?).map_err(in_time)?;
        Ok(content::told(&result))
    }

    /// A new tool is offered to nobody; any other difference ends it.
    fn is_as_approved(&self, now: &[PinnedTool]) -> Result<(), Trouble> {
        let changes = self.pinned.changes(now);
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

/// Whether a variable holds what nobody should see, by what people call such.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASS", "AUTH"].iter().any(|part| name.contains(part))
}
