//! `collieclaw-mcp`: speaks the Model Context Protocol for `collieclaw`, which starts it in a sandbox.
//!
//! It has no rules, no receipts and no files; of keys only the token that its task needs. On one side is the protocol,
//! on standard input and output or on a loopback address; on the other, on standard error, the line to `collieclaw` with
//! its few shapes ([`line`](collieclaw_mcp_ipc)). It either asks a server ([`mcp_client`]) or offers tools to clients
//! ([`mcp_server`]), and ends when that line does.

mod client_handler;
mod content;
mod http_client;
mod http_server;
mod mcp_client;
mod mcp_server;
mod parent_line;
mod receive_budget;

use std::io::{self, Write};
use std::process::ExitCode;

use collieclaw_mcp_ipc::{AdapterHandshake, AdapterTask, VERSION};
use mcp_client::ServerTransport;
use mcp_server::OfferTarget;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == "--version") {
        // Nothing is left to do when nobody reads it.
        let _ = writeln!(io::stdout(), "collieclaw-mcp {VERSION}");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let ran = runtime.and_then(|runtime| {
        let ran = runtime.block_on(run());
        // A read of standard input can't be called back.
        runtime.shutdown_background();
        ran
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "collieclaw-mcp is started by collieclaw, to speak with MCP servers and clients: {error}"
            );
            ExitCode::from(2)
        }
    }
}

async fn run() -> io::Result<()> {
    let (mut ear, voice, mouth) = parent_line::open()?;
    let Some(AdapterHandshake { version, task }) = ear.receive().await else {
        return Err(io::Error::other("it says nothing that is understood"));
    };
    let fits = (version == VERSION)
        .then_some(())
        .ok_or_else(|| format!("`collieclaw` has the version {version}, and `collieclaw-mcp` {VERSION}"));
    match task {
        AdapterTask::AskProgram => {
            mcp_client::relay_requests(fits.map(|()| ServerTransport::Pipes), ear, &voice).await;
        }
        AdapterTask::AskAddress { url, token } => {
            mcp_client::relay_requests(fits.map(|()| ServerTransport::Address { url, token }), ear, &voice)
                .await;
        }
        AdapterTask::OfferToOne { tools } => {
            mcp_server::offer_tools(tools, fits.map(|()| OfferTarget::Stdio), ear, &voice).await;
        }
        AdapterTask::OfferToMany { tools, token } => {
            mcp_server::offer_tools(tools, fits.map(|()| OfferTarget::Http { token }), ear, &voice).await;
        }
    }
    drop(voice);
    mouth.close().await;
    Ok(())
}
