//! `gateway`: HTTP and a page for a browser, on this machine alone.

use std::io::IsTerminal;
use std::net::SocketAddr;

use clap::Args;
use collieclaw::channels::{Gateway as Channel, Token};
use serde_json::json;
use ward_diag::Chain;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::Screen;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw gateway\n  collieclaw gateway --port 9000\n  collieclaw gateway --link\n\nEvery request bears the token of ~/.collieclaw/gateway.token; see docs/collieclaw-gateway.md."
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
    let config_modified = Channel::config_modified(&environment.home);
    let mut config = open::config(&environment)?;
    if !config.channels.gateway.enabled {
        return Err(Failure::GatewayOff);
    }
    if let Some(port) = gateway.port {
        config.channels.gateway.port = port;
    }
    let token = Token::open(&environment.home.gateway_token())?;
    let channel = &config.channels.gateway;
    // The rules and receipts of a turn here name the tools that are offered here.
    config.channels.cli.tools_allow = channel.tools_allow.clone();
    let (home, opened) = (environment.home.clone(), config.clone());
    open::announce(&config, &environment)?;
    let channel = Channel {
        open: Box::new(move || {
            open::runtime(&opened, &environment).map_err(|failure| Chain(&failure).to_string())
        }),
        token: token.clone(),
        config,
        config_modified,
        home,
    };
    channel.serve(|address| say(address, &token, screen))?;
    Ok(())
}

/// The link to what listens. A token that was made here would be refused there.
fn show_link(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let address = Channel::running(&environment.home).ok_or_else(|| Failure::Wrong {
        what: "no gateway of this home listens".to_owned(),
        cure: "start one with `collieclaw gateway` or `collieclaw service start`",
    })?;
    let link = link(address, &Token::read(&environment.home.gateway_token())?);
    screen.answer(&json!({ "link": link }), || link.clone());
    Ok(())
}

/// A token is shown to a person at a terminal, and never left in a log.
fn say(address: SocketAddr, token: &Token, screen: &Screen) {
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
