//! `collieclaw-mcp`, the program that implements the Model Context Protocol for `collieclaw`, in a sandbox.
//!
//! It has no policy, no receipts and no files, and gets only the token that its task needs. On one side it
//! speaks MCP, on standard input and output or on a loopback address; on the other side, on standard error,
//! it exchanges the messages of [`collieclaw_mcp_ipc`] with `collieclaw`. It either connects to a server
//! (`mcp_client`) or offers tools to clients (`mcp_server`), and exits when the connection to
//! `collieclaw` ends.

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

/// Runs `collieclaw-mcp` until its parent closes the connection.
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|argument| argument == "--version") {
        // A closed standard output is no reason to fail.
        let _ = writeln!(io::stdout(), "collieclaw-mcp {VERSION}");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let ran = runtime.and_then(|runtime| {
        let ran = runtime.block_on(run());
        // A blocking read of standard input can't be cancelled.
        runtime.shutdown_background();
        ran
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "collieclaw-mcp must be started by collieclaw: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> io::Result<()> {
    let (mut reader, sender, writer) = parent_line::open()?;
    let Some(AdapterHandshake { version, task }) = reader.receive().await else {
        return Err(io::Error::other("could not read the handshake"));
    };
    let version_check = (version == VERSION).then_some(()).ok_or_else(|| {
        format!("`collieclaw` has the version {version}, but `collieclaw-mcp` has the version {VERSION}")
    });
    match task {
        AdapterTask::AskProgram => {
            mcp_client::relay_requests(version_check.map(|()| ServerTransport::Pipes), reader, &sender).await;
        }
        AdapterTask::AskAddress { url, token } => {
            mcp_client::relay_requests(
                version_check.map(|()| ServerTransport::Address { url, token }),
                reader,
                &sender,
            )
            .await;
        }
        AdapterTask::OfferToOne { tools } => {
            mcp_server::offer_tools(tools, version_check.map(|()| OfferTarget::Stdio), reader, &sender).await;
        }
        AdapterTask::OfferToMany { tools, token } => {
            mcp_server::offer_tools(
                tools,
                version_check.map(|()| OfferTarget::Http { token }),
                reader,
                &sender,
            )
            .await;
        }
    }
    drop(sender);
    writer.close().await;
    Ok(())
}
