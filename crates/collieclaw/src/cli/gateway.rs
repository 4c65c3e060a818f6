//! `gateway`: HTTP and a page for a browser, on this machine alone.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use collieclaw::channels::{Channel, ConfigTrace, FoundConfig, Gateway as Served, GatewayParts, Token};
use collieclaw::config::Config;
use collieclaw::events::Event;
use collieclaw::tools::Foreign;
use serde_json::json;
use ward_diag::{Chain, Style};

use super::environment::Environment;
use super::failure::Failure;
use super::open::{self, Setup};
use super::screen::Screen;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw gateway\n  collieclaw gateway --port 9000\n  collieclaw gateway --link\n\nEvery request bears the token that is in the home (~/.collieclaw, or what COLLIECLAW_HOME names) as gateway.token; see docs/collieclaw-gateway.md."
)]
pub(crate) struct Gateway {
    /// Another port than `channels.gateway.port`; 0 takes any that is free.
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Prints the link that opens the page of a gateway that runs, and starts none. Whoever has the link has the agent.
    #[arg(long, conflicts_with = "port")]
    link: bool,
}

pub(crate) fn run(gateway: &Gateway, environment: Environment, screen: &Screen) -> Result<(), Failure> {
    if gateway.link {
        return show_link(&environment, screen);
    }
    let trace = ConfigTrace::of(&environment.home);
    let (mut setup, text) = open::setup_and_text(&environment)?;
    let port = gateway.port;
    settle(&mut setup.config, port);
    if !setup.config.channels.gateway.enabled {
        return Err(Failure::GatewayOff);
    }
    let token = Token::open(&environment.home.gateway_token())?;
    open::announce(&setup.config, &environment)?;
    let runtime = open::runtime(&setup, &environment)?;
    let policy_hash = runtime.door.rules.policy_hash.clone();
    let (home, shown, screen) = (environment.home.clone(), token.clone(), *screen);
    let environment = Arc::new(environment);
    let read = {
        let environment = Arc::clone(&environment);
        move || found(&environment, port).map_err(|failure| why(&failure))
    };
    let tell = {
        let environment = Arc::clone(&environment);
        move |config: &Config, event: Event<'_>| {
            // A word for the log that nobody knows would have ended us at the start.
            if let Ok(events) = open::events(config, &environment) {
                events.tell(event);
            }
        }
    };
    let looking = Arc::downgrade(&environment);
    let end_what_was_taken_back = move || looking.upgrade().iter().for_each(|environment| look(environment));
    environment.sessions.watch(end_what_was_taken_back).map_err(Failure::io("watch over MCP servers"))?;
    let sessions = environment.sessions.clone();
    let open = move |config: &Config| {
        let setup = Setup { config: config.clone(), foreign: Foreign::load(&environment.home) };
        open::runtime(&setup, &environment).map_err(|failure| why(&failure))
    };
    let mut served = Served::new(GatewayParts {
        found: FoundConfig { config: setup.config, text, policy_hash },
        trace,
        home,
        token,
        read: Box::new(read),
        open: Box::new(open),
        tell: Box::new(tell),
        listening: Box::new(move |address| say(address, &shown, screen)),
    });
    let ended = served.start(runtime);
    // Whoever looks at them in this moment has them, too.
    sessions.end_all();
    Ok(ended?)
}

/// Rules that can't be read let no MCP server run on.
fn look(environment: &Environment) {
    if open::end_what_was_taken_back(environment).is_err() {
        environment.sessions.end_all();
    }
}

/// What is settled here and not in the file.
fn settle(config: &mut Config, port: Option<u16>) {
    let channel = &mut config.channels.gateway;
    channel.port = port.unwrap_or(channel.port);
    // The rules and receipts of a turn here name the tools that are offered here.
    config.channels.cli.tools_allow = channel.tools_allow.clone();
}

/// What the file says now, if a turn could begin with it.
fn found(environment: &Environment, port: Option<u16>) -> Result<FoundConfig, Failure> {
    let (mut setup, text) = open::setup_and_text(environment)?;
    settle(&mut setup.config, port);
    let workspace = open::workspace(&setup.config)?;
    let policy_hash = open::rules(&setup, &workspace, environment)?.policy_hash;
    Ok(FoundConfig { config: setup.config, text, policy_hash })
}

/// For whoever is not at this terminal.
fn why(failure: &Failure) -> String {
    if let Failure::Config { report } = failure {
        return report.render(Style::Plain);
    }
    let mut why = without_number(&Chain(failure).to_string());
    if let Some(cure) = failure.cure() {
        why.push_str("\nhelp: ");
        why.push_str(cure);
    }
    why
}

/// The number of an error of the system says nothing that its words don't.
fn without_number(told: &str) -> String {
    match told.rsplit_once(" (os error ") {
        Some((words, number)) if number.ends_with(')') => words.to_owned(),
        _ => told.to_owned(),
    }
}

/// The link to what listens. A token that was made here would be refused there.
fn show_link(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let address = Served::running(&environment.home).ok_or_else(|| Failure::Wrong {
        what: "no gateway of this home listens".to_owned(),
        cure: "start one with `collieclaw gateway` or `collieclaw service start`",
    })?;
    let link = link(address, &Token::read(&environment.home.gateway_token())?);
    screen.answer(&json!({ "link": link }), || link.clone());
    Ok(())
}

/// A token is shown to a person at a terminal, and never left in a log.
fn say(address: SocketAddr, token: &Token, screen: Screen) {
    // A service manager waits for it; without one nobody does.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let seen = std::io::stdout().is_terminal();
    screen.answer(&json!({ "address": format!("http://{address}/") }), || {
        let way =
            if seen { link(address, token) } else { "what `collieclaw gateway --link` prints".to_owned() };
        format!("CollieClaw listens on http://{address}/\nOpen {way}")
    });
}

/// What is behind the `#` is never sent: the page takes it and hides it.
fn link(address: SocketAddr, token: &Token) -> String {
    format!("http://{address}/#token={}", token.reveal())
}
