//! `mcp`: lists, approves and removes MCP servers, and offers our tools to other agents.

mod display;

use std::time::Duration;

use clap::Subcommand;
use collieclaw_agent::config::{Config, McpConnection, McpServerSettings};
use collieclaw_listen::AccessToken;
use collieclaw_mcp::serve::{ServeTransport, serve};
use collieclaw_mcp::{
    McpCallError, McpFailure, McpSession, McpStartContext, PinnedServer, PinnedTool, offered_name,
};
use collieclaw_providers::cancel::CancelFlag;
use serde_json::{Value, json};
use ward_terminal::{align_columns, escape_line, format_count};

use super::confirm::confirm;
use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::interrupt::InterruptHandler;
use super::output::OutputPrinter;
use super::wiring::{self, LoadedSetup};

#[derive(Subcommand)]
pub(crate) enum McpCommand {
    /// List configured MCP servers and their approvals.
    #[command(after_help = "Examples:\n  collieclaw mcp list\n  collieclaw mcp list --output json")]
    List,
    /// List the approved tools of a server, as the model sees them.
    #[command(after_help = "Example:\n  collieclaw mcp tools time")]
    Tools {
        /// Name of the server in the configuration
        server: String,
    },
    /// Connect to a server, show its tools or what has changed, and ask whether to approve them.
    #[command(after_help = "Examples:\n  collieclaw mcp approve time\n  collieclaw mcp approve time --yes")]
    Approve {
        /// Name of the server in the configuration
        server: String,
        /// Approve without asking
        #[arg(long)]
        yes: bool,
    },
    /// Remove the approval of a server.
    #[command(after_help = "Example:\n  collieclaw mcp remove time")]
    Remove {
        /// Name of the server
        server: String,
    },
    /// Serve CollieClaw's tools to another agent on standard input and output, with gate, sandbox and receipts.
    #[command(
        after_help = "Examples:\n  collieclaw mcp serve\n  collieclaw mcp serve --http 8765\n\nCalls that need an approval are denied, because no operator can be asked over MCP."
    )]
    Serve {
        /// Listen on this port of 127.0.0.1 instead; the token is in mcp.token in the home
        #[arg(long, value_name = "PORT")]
        http: Option<u16>,
    },
}

/// The time limit for a server to start and list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run(
    mcp: &McpCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let config = || wiring::load_config(environment);
    match mcp {
        McpCommand::List => list(&config()?, environment, screen),
        McpCommand::Tools { server } => tools(server, &config()?, environment, screen),
        McpCommand::Approve { server, yes } => approve(server, *yes, &config()?, environment, screen),
        // The configuration may still name the removed server.
        McpCommand::Remove { server } => remove(server, environment, screen),
        McpCommand::Serve { http } => {
            serve_tools(*http, &wiring::load_setup(environment)?, environment, screen)
        }
    }
}

fn remove(server: &str, environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    if !PinnedServer::remove(&environment.home, server)? {
        let is_configured = wiring::load_config(environment)?.mcp.servers.contains_key(server);
        return Err(if is_configured { nothing_approved(server) } else { unknown_server(server) });
    }
    screen.print_answer(&json!({ "removed": server }), || {
        format!("removed the approval of {}", escape_line(server))
    });
    // The configuration isn't changed here, so warn about entries that now lead nowhere.
    let setup = wiring::load_setup(environment)?;
    setup.missing_tools(environment).iter().for_each(|absent| screen.print_remark(absent));
    Ok(())
}

fn nothing_approved(server: &str) -> CommandFailure {
    let what = format!("the MCP server `{server}` has no approval to remove");
    CommandFailure::InvalidInput {
        what,
        cure: "its settings are in `[mcp.servers.NAME]` of the configuration",
    }
}

fn unknown_server(server: &str) -> CommandFailure {
    let what = format!("no such MCP server `{server}`");
    CommandFailure::InvalidInput {
        what,
        cure: "run `collieclaw mcp list` to see the servers; add one as `[mcp.servers.NAME]`",
    }
}

fn list(config: &Config, environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let mut listed: Vec<(Value, Vec<String>)> = Vec::new();
    for (name, settings) in &config.mcp.servers {
        let pinned = PinnedServer::load(&environment.home, name)?;
        let state = match &pinned {
            None => "not approved",
            Some(pinned) if !pinned.matches_connection(settings) => {
                "configuration changed since the approval"
            }
            Some(_) => "approved",
        };
        let number = pinned.map_or(0, |pinned| pinned.tools.len());
        let value = json!({ "name": name, "server": settings, "state": state, "tools": number });
        let row = vec![
            name.clone(),
            describe_connection(&settings.connection),
            state.to_owned(),
            format_count(number, "tool", "tools"),
        ];
        listed.push((value, row));
    }
    let (values, rows): (Vec<Value>, Vec<Vec<String>>) = listed.into_iter().unzip();
    screen.print_answer(&values, || match rows.as_slice() {
        [] => "no MCP servers: add one as `[mcp.servers.NAME]` to the configuration, then `collieclaw mcp approve NAME`"
            .to_owned(),
        rows => align_columns(rows),
    });
    Ok(())
}

fn describe_connection(connection: &McpConnection) -> String {
    escape_line(&match connection {
        McpConnection::Program { command, args, .. } => {
            [std::slice::from_ref(command), args].concat().join(" ")
        }
        McpConnection::Http { url, .. } => url.clone(),
    })
}

fn tools(
    server: &str,
    config: &Config,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let settings = config.mcp.servers.get(server).ok_or_else(|| unknown_server(server))?;
    let pinned = PinnedServer::load(&environment.home, server)?;
    let tools = pinned.map(|pinned| pinned.tools).unwrap_or_default();
    let to_json = |tool: &PinnedTool| {
        json!({ "name": offered_name(server, &tool.name), "tool": tool.name, "description": tool.description,
            "risk": settings.risks.get(&tool.name).unwrap_or(&settings.risk), "parameters": tool.schema,
            "used": settings.enables_tool(&tool.name) })
    };
    let values: Vec<Value> = tools.iter().map(to_json).collect();
    screen.print_answer(&values, || match tools.as_slice() {
        [] => {
            format!("no tools of {server} are approved: run `collieclaw mcp approve {server}` to review them")
        }
        tools => tools.iter().map(|tool| display::format_tool(server, tool, settings)).collect(),
    });
    Ok(())
}

fn approve(
    server: &str,
    yes: bool,
    config: &Config,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let settings = config.mcp.servers.get(server).ok_or_else(|| unknown_server(server))?;
    let found = fetch_tools(server, settings, config, environment)?;
    let (tools, left_out) = display::split_usable(server, settings, found);
    for why in &left_out {
        screen.print_remark(&escape_line(why));
    }
    let before = PinnedServer::load(&environment.home, server).ok().flatten();
    let text = match before.filter(|before| before.matches_connection(settings)) {
        Some(before) => display::format_changes(server, &before.changes(&tools)),
        None => tools.iter().map(|tool| display::format_tool(server, tool, settings)).collect(),
    };
    let question = format!("Approve these tools of {}?", escape_line(server));
    confirm(&text, &question, yes.into(), screen)?;
    let names: Vec<String> = tools.iter().map(|tool| offered_name(server, &tool.name)).collect();
    let file = PinnedServer::new(server, settings, tools).save(&environment.home)?;
    screen.print_answer(&json!({ "approved": server, "tools": names, "file": file }), || {
        let number = format_count(names.len(), "tool", "tools");
        format!(
            "approved {number} of {server}; the model can call those that `channels.cli.tools_allow` lists"
        )
    });
    Ok(())
}

/// Returns the tools that a server lists now.
fn fetch_tools(
    server: &str,
    settings: &McpServerSettings,
    config: &Config,
    environment: &CliEnvironment,
) -> Result<Vec<PinnedTool>, CommandFailure> {
    let failed = |why: McpFailure| CommandFailure::Mcp { server: server.to_owned(), why };
    let workspace = wiring::open_workspace(config)?;
    let policy = config.gate_policy(workspace.path().to_owned(), &environment.config_context);
    let cancel = CancelFlag::new().map_err(CommandFailure::io("set up cancelling"))?;
    let interrupt = InterruptHandler::install().map_err(CommandFailure::io("listen for Ctrl-C"))?;
    interrupt.set_turn(Some(cancel.clone()));
    let variables = &environment.config_context.variables;
    let context = McpStartContext { server, policy: &policy, home: &environment.home, variables };
    let session = McpSession::open(settings, context).map_err(failed)?;
    session.list_tools(&cancel, LIST_TIMEOUT).map_err(|trouble| match trouble {
        McpCallError::Cancelled => failed("it was cancelled".to_owned().into()),
        McpCallError::TimedOut(time) => {
            failed(format!("it did not list its tools within {} s", time.as_secs()).into())
        }
        McpCallError::ServerEnded => failed("it has ended".to_owned().into()),
        McpCallError::Failed(why) => failed(why),
    })
}

fn serve_tools(
    http: Option<u16>,
    setup: &LoadedSetup,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let tool_gateway = wiring::open_tool_gateway(setup, environment)?;
    let listed = setup.config.channels.cli.tools_allow.iter().cloned().collect();
    let transport = match http {
        None => ServeTransport::Stdio,
        Some(port) => {
            let file = environment.home.mcp_token();
            let token = AccessToken::open_or_create(&file)?;
            screen.print_remark(&format!("every request needs the token in {}", file.display()));
            let screen = *screen;
            let listening = move |address| screen.print_remark(&format!("listening on http://{address}/mcp"));
            ServeTransport::Http { port, token, on_listening: Box::new(listening) }
        }
    };
    Ok(serve(&tool_gateway, &listed, transport)?)
}
