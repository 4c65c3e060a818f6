//! `collieclaw-mcp`: speaks the Model Context Protocol for `collieclaw`, which starts it in a sandbox.
//!
//! It has no rules, no receipts and no files; of keys only the token that its task needs. On one side is the protocol,
//! on standard input and output or on a loopback address; on the other, on standard error, the line to `collieclaw` with
//! its few shapes ([`line`](collieclaw::mcp::line)). It either asks a server ([`ask`]) or offers tools to clients
//! ([`offer`]), and ends when that line does.

mod ask;
mod bounded;
mod content;
mod handler;
mod http;
mod offer;
mod offer_http;
mod voice;

use std::io::{self, Write};
use std::process::ExitCode;

use collieclaw::mcp::line::{Greeting, Task, VERSION};

use ask::Way;
use offer::Offered;

fn main() -> ExitCode {
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
    let (mut ear, voice, mouth) = voice::open()?;
    let Some(Greeting { version, task }) = ear.hear().await else {
        return Err(io::Error::other("it says nothing that is understood"));
    };
    let fits = (version == VERSION)
        .then_some(())
        .ok_or_else(|| format!("`collieclaw` has the version {version}, and `collieclaw-mcp` {VERSION}"));
    match task {
        Task::AskProgram => ask::ask(fits.map(|()| Way::Pipes), ear, &voice).await,
        Task::AskAddress { url, token } => {
            ask::ask(fits.map(|()| Way::Address { url, token }), ear, &voice).await;
        }
        Task::OfferToOne { tools } => offer::offer(tools, fits.map(|()| Offered::ToOne), ear, &voice).await,
        Task::OfferToMany { tools, token } => {
            offer::offer(tools, fits.map(|()| Offered::ToMany { token }), ear, &voice).await;
        }
    }
    drop(voice);
    mouth.close().await;
    Ok(())
}
