//! `mcp`: servers of tools that others wrote, looked at and approved; and our tools for other agents.

mod shown;

use std::time::Duration;

use clap::Subcommand;
use collieclaw::cancel::Cancel;
use collieclaw::channels::{Token, visible};
use collieclaw::config::{Config, McpConnection, McpServer};
use collieclaw::mcp::serve::{Way, serve};
use collieclaw::mcp::{Ground, Pinned, PinnedTool, Session, Trouble, offered_name};
use serde_json::{Value, json};

use super::confirm::confirm;
use super::environment::Environment;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::open::{self, Setup};
use super::screen::{Screen, count, table};

#[derive(Subcommand)]
pub(crate) enum Mcp {
    /// The servers of the configuration, and what was approved of them.
    #[command(after_help = "Examples:\n  collieclaw mcp list\n  collieclaw mcp list --output json")]
    List,
    /// The approved tools of one, as the model is told of them.
    #[command(after_help = "Example:\n  collieclaw mcp tools time")]
    Tools {
        /// Which server.
        server: String,
    },
    /// Connects to one, shows its tools or what has changed, and asks whether they may be used.
    #[command(after_help = "Examples:\n  collieclaw mcp approve time\n  collieclaw mcp approve time --yes")]
    Approve {
        /// Which server.
        server: String,
        /// Yes, they may.
        #[arg(long)]
        yes: bool,
    },
    /// Forgets what was approved of one.
    #[command(after_help = "Example:\n  collieclaw mcp remove time")]
    Remove {
        /// Which server.
        server: String,
    },
    /// Offers CollieClaw's own tools to another agent, on standard input and output: gate, sandbox and receipts included.
    #[command(
        after_help = "Examples:\n  collieclaw mcp serve\n  collieclaw mcp serve --http 8765\n\nWhat needs an approval is denied: the only one who could be asked is the client."
    )]
    Serve {
        /// On this port of 127.0.0.1 instead; the token is in mcp.token in the home.
        #[arg(long, value_name = "PORT")]
        http: Option<u16>,
    },
}

/// The longest that a server may take to start and to tell its tools.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(mcp: &Mcp, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let config = || open::config(environment);
    match mcp {
        Mcp::List => list(&config()?, environment, screen),
        Mcp::Tools { server } => tools(server, &config()?, environment, screen),
        Mcp::Approve { server, yes } => approve(server, *yes, &config()?, environment, screen),
        // The configuration may still name what is removed.
        Mcp::Remove { server } => remove(server, environment, screen),
        Mcp::Serve { http } => offer(*http, &open::setup(environment)?, environment, screen),
    }
}

fn remove(server: &str, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    if !Pinned::remove(&environment.home, server)? {
        let is_configured = open::config(environment)?.mcp.servers.contains_key(server);
        return Err(if is_configured { nothing_approved(server) } else { no_server(server) });
    }
    screen.answer(&json!({ "removed": server }), || {
        format!("what was approved of {} is forgotten", visible(server))
    });
    // What is configured of it is the operator's; that it leads nowhere now is said.
    let setup = open::setup(environment)?;
    setup.absent_tools(environment).iter().for_each(|absent| screen.remark(absent));
    Ok(())
}

fn nothing_approved(server: &str) -> Failure {
    let what = format!("nothing of the MCP server `{server}` is approved, so there is nothing to forget");
    Failure::Wrong { what, cure: "its settings are in `[mcp.servers.NAME]` of the configuration" }
}

fn no_server(server: &str) -> Failure {
    let what = format!("there is no MCP server `{server}`");
    Failure::Wrong { what, cure: "`collieclaw mcp list` shows them; add one as `[mcp.servers.NAME]`" }
}

fn list(config: &Config, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let mut told: Vec<(Value, Vec<String>)> = Vec::new();
    for (name, settings) in &config.mcp.servers {
        let pinned = Pinned::load(&environment.home, name)?;
        let state = match &pinned {
            None => "not approved",
            Some(pinned) if !pinned.is_of(settings) => "configured otherwise than it was approved",
            Some(_) => "approved",
        };
        let number = pinned.map_or(0, |pinned| pinned.tools.len());
        let value = json!({ "name": name, "server": settings, "state": state, "tools": number });
        let row =
            vec![name.clone(), at(&settings.connection), state.to_owned(), count(number as u64, "tool")];
        told.push((value, row));
    }
    let (values, rows): (Vec<Value>, Vec<Vec<String>>) = told.into_iter().unzip();
    screen.answer(&values, || match rows.as_slice() {
        [] => "no MCP servers: add one as `[mcp.servers.NAME]` to the configuration, then `collieclaw mcp approve NAME`"
            .to_owned(),
        rows => table(rows),
    });
    Ok(())
}

fn at(connection: &McpConnection) -> String {
    visible(&match connection {
        McpConnection::Program { command, args, .. } => {
            [std::slice::from_ref(command), args].concat().join(" ")
        }
        McpConnection::Http { url, .. } => url.clone(),
    })
}

fn tools(server: &str, config: &Config, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let settings = config.mcp.servers.get(server).ok_or_else(|| no_server(server))?;
    let pinned = Pinned::load(&environment.home, server)?;
    let tools = pinned.map(|pinned| pinned.tools).unwrap_or_default();
    let told = |tool: &PinnedTool| {
        json!({ "name": offered_name(server, &tool.name), "tool": tool.name, "description": tool.description,
            "risk": settings.risks.get(&tool.name).unwrap_or(&settings.risk), "parameters": tool.schema,
            "used": settings.wants(&tool.name) })
    };
    let values: Vec<Value> = tools.iter().map(told).collect();
    screen.answer(&values, || match tools.as_slice() {
        [] => format!(
            "nothing of {server} is approved: `collieclaw mcp approve {server}` shows its tools and asks"
        ),
        tools => tools.iter().map(|tool| shown::tool(server, tool, settings)).collect(),
    });
    Ok(())
}

fn approve(
    server: &str,
    yes: bool,
    config: &Config,
    environment: &Environment,
    screen: &Screen,
) -> Result<(), Failure> {
    let settings = config.mcp.servers.get(server).ok_or_else(|| no_server(server))?;
    let found = asked(server, settings, config, environment)?;
    let (tools, left_out) = shown::usable(server, settings, found);
    for why in &left_out {
        screen.remark(&visible(why));
    }
    let before = Pinned::load(&environment.home, server).ok().flatten();
    let text = match before.filter(|before| before.is_of(settings)) {
        Some(before) => shown::changes(server, &before.changes(&tools)),
        None => tools.iter().map(|tool| shown::tool(server, tool, settings)).collect(),
    };
    let question = format!("May these tools of {} be used?", visible(server));
    confirm(&text, &question, yes.into(), screen)?;
    let names: Vec<String> = tools.iter().map(|tool| offered_name(server, &tool.name)).collect();
    let file = Pinned::new(server, settings, tools).save(&environment.home)?;
    screen.answer(&json!({ "approved": server, "tools": names, "file": file }), || {
        let number = count(names.len() as u64, "tool");
        format!("{number} of {server} may be used; the model is told of those that `channels.cli.tools_allow` lists")
    });
    Ok(())
}

/// What a server says of its tools, now.
fn asked(
    server: &str,
    settings: &McpServer,
    config: &Config,
    environment: &Environment,
) -> Result<Vec<PinnedTool>, Failure> {
    let failed = |why: String| Failure::Mcp { server: server.to_owned(), why };
    let workspace = open::workspace(config)?;
    let policy = config.gate_policy(workspace.path().to_owned(), &environment.surroundings);
    let cancel = Cancel::new().map_err(Failure::io("set up cancelling"))?;
    let interrupt = Interrupt::listen().map_err(Failure::io("listen for Ctrl-C"))?;
    interrupt.set(Some(cancel.clone()));
    let variables = &environment.surroundings.variables;
    let ground = Ground { policy: &policy, home: &environment.home, variables };
    let session = Session::open(settings, ground).map_err(failed)?;
    session.list(&cancel, PATIENCE).map_err(|trouble| match trouble {
        Trouble::Cancelled => failed("it was cancelled".to_owned()),
        Trouble::TimedOut(time) => failed(format!("it did not tell its tools within {} s", time.as_secs())),
        Trouble::Gone => failed("it has ended".to_owned()),
        Trouble::Failed(why) => failed(why),
    })
}

fn offer(
    http: Option<u16>,
    setup: &Setup,
    environment: &Environment,
    screen: &Screen,
) -> Result<(), Failure> {
    let door = open::door(setup, environment)?;
    let listed = setup.config.channels.cli.tools_allow.iter().cloned().collect();
    let way = match http {
        None => Way::Stdio,
        Some(port) => {
            let file = environment.home.mcp_token();
            let token = Token::open(&file)?;
            screen.remark(&format!("every request needs the token in {}", file.display()));
            let screen = *screen;
            let listening = move |address| screen.remark(&format!("listening on http://{address}/mcp"));
            Way::Http { port, token, listening: Box::new(listening) }
        }
    };
    Ok(serve(&door, &listed, way)?)
}
