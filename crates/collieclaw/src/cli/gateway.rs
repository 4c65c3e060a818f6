//! `gateway`: serves HTTP and a browser page, on this machine only.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use collieclaw_agent::channel::Channel;
use collieclaw_agent::config::Config;
use collieclaw_agent::events::AgentEvent;
use collieclaw_gateway::{ConfigFileStamp, GatewayParts, HttpGateway, LoadedConfig};
use collieclaw_listen::AccessToken;
use serde_json::json;
use ward_diag::{ErrorChain, ReportStyle};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring::{self, ForeignToolSources, LoadedSetup};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw gateway\n  collieclaw gateway --port 9000\n  collieclaw gateway --link\n\nEvery request needs the token in gateway.token in the home folder (~/.collieclaw or $COLLIECLAW_HOME); see docs/collieclaw-gateway.md."
)]
pub(crate) struct GatewayArgs {
    /// Listen on this port instead of `channels.gateway.port`; 0 picks a free port
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Print the link to the page of the running gateway, and start nothing. Anyone with the link can use the agent
    #[arg(long, conflicts_with = "port")]
    link: bool,
}

pub(crate) fn run(
    gateway: &GatewayArgs,
    environment: CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    if gateway.link {
        return show_link(&environment, screen);
    }
    let trace = ConfigFileStamp::read(&environment.home);
    let (mut setup, text) = wiring::load_setup_and_text(&environment)?;
    let port = gateway.port;
    apply_overrides(&mut setup.config, port);
    if !setup.config.channels.gateway.enabled {
        return Err(CommandFailure::GatewayDisabled);
    }
    let token = AccessToken::open_or_create(&environment.home.gateway_token())?;
    wiring::emit_startup_events(&setup.config, &environment)?;
    let runtime = wiring::open_runtime(&setup, &environment)?;
    let policy_hash = runtime.tool_gateway.rules.policy_hash.clone();
    let (home, shown, screen) = (environment.home.clone(), token.clone(), *screen);
    let environment = Arc::new(environment);
    let read = {
        let environment = Arc::clone(&environment);
        move || load_config(&environment, port).map_err(|failure| describe_failure(&failure))
    };
    let tell = {
        let environment = Arc::clone(&environment);
        move |config: &Config, event: AgentEvent<'_>| {
            // An unknown value of `COLLIECLAW_LOG` would have ended the program at the start.
            if let Ok(events) = wiring::open_event_log(config, &environment) {
                events.emit(event);
            }
        }
    };
    let looking = Arc::downgrade(&environment);
    let end_what_was_taken_back =
        move || looking.upgrade().iter().for_each(|environment| end_revoked_or_all_servers(environment));
    environment
        .sessions
        .watch(end_what_was_taken_back)
        .map_err(CommandFailure::io("watch the MCP servers"))?;
    let sessions = environment.sessions.clone();
    let open = move |config: &Config| {
        let setup = LoadedSetup {
            config: config.clone(),
            base: config.clone(),
            external_tools: ForeignToolSources::load(&environment.home),
        };
        wiring::open_runtime(&setup, &environment).map_err(|failure| describe_failure(&failure))
    };
    let mut served = HttpGateway::new(GatewayParts {
        initial_config: LoadedConfig { config: setup.config, text, policy_hash },
        config_stamp: trace,
        home,
        token,
        load_config: Box::new(read),
        open_runtime: Box::new(open),
        report_event: Box::new(tell),
        on_listening: Box::new(move |address| announce_address(address, &shown, screen)),
    });
    let ended = served.start(runtime);
    // A request that is reading the sessions right now keeps them alive, so they are ended explicitly.
    sessions.end_all();
    Ok(ended?)
}

/// Ends MCP servers that the current rules no longer allow. If the rules can't be read, all servers end.
fn end_revoked_or_all_servers(environment: &CliEnvironment) {
    if wiring::end_revoked_servers(environment).is_err() {
        environment.sessions.end_all();
    }
}

/// Applies command-line settings on top of the configuration file.
fn apply_overrides(config: &mut Config, port: Option<u16>) {
    let channel = &mut config.channels.gateway;
    channel.port = port.unwrap_or(channel.port);
    // The rules and receipts of gateway turns must name the tools that the gateway offers.
    config.channels.cli.tools_allow = channel.tools_allow.clone();
}

/// Reads the configuration file again, and checks that a turn could start with it.
fn load_config(environment: &CliEnvironment, port: Option<u16>) -> Result<LoadedConfig, CommandFailure> {
    let (mut setup, text) = wiring::load_setup_and_text(environment)?;
    apply_overrides(&mut setup.config, port);
    let workspace = wiring::open_workspace(&setup.config)?;
    let policy_hash = wiring::build_rules(&setup, &workspace, environment)?.policy_hash;
    Ok(LoadedConfig { config: setup.config, text, policy_hash })
}

/// Formats a failure for a client that isn't at this terminal.
pub(super) fn describe_failure(failure: &CommandFailure) -> String {
    if let CommandFailure::Config { report } = failure {
        return report.render(ReportStyle::Plain);
    }
    let mut why = strip_os_error_number(&ErrorChain(failure).to_string());
    if let Some(cure) = failure.help() {
        why.push_str("\nhelp: ");
        why.push_str(cure);
    }
    why
}

/// Removes the `(os error N)` suffix, which only repeats the words before it.
fn strip_os_error_number(message: &str) -> String {
    match message.rsplit_once(" (os error ") {
        Some((words, number)) if number.ends_with(')') => words.to_owned(),
        _ => message.to_owned(),
    }
}

/// Returns the link to the running gateway. The token must exist: a new token would be refused.
fn show_link(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let address =
        HttpGateway::find_running(&environment.home).ok_or_else(|| CommandFailure::InvalidInput {
            what: "no gateway of this home is running".to_owned(),
            cure: "start one with `collieclaw gateway` or `collieclaw service start`",
        })?;
    let link = page_link(address, &AccessToken::read(&environment.home.gateway_token())?);
    screen.print_answer(&json!({ "link": link }), || link.clone());
    Ok(())
}

/// Announces the address. The token is shown only at a terminal, never written to a log.
fn announce_address(address: SocketAddr, token: &AccessToken, screen: OutputPrinter) {
    // Notifies the service manager that waits for the start, if there is one.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let seen = std::io::stdout().is_terminal();
    screen.print_answer(&json!({ "address": format!("http://{address}/") }), || {
        let link = if seen {
            page_link(address, token)
        } else {
            "the link that `collieclaw gateway --link` prints".to_owned()
        };
        format!("CollieClaw listens on http://{address}/\nOpen {link}")
    });
}

/// Returns the link with the token in the fragment (`#…`), which browsers never send; the page reads and hides it.
fn page_link(address: SocketAddr, token: &AccessToken) -> String {
    format!("http://{address}/#token={}", token.reveal())
}
