//! Our own tools for other agents: whoever speaks the protocol calls them, and every call goes through the door.
//!
//! Nobody is asked: the only one who could be is the client, and it is the client whom the gate is there for. What needs
//! a yes is denied.

mod http;
mod server;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, sync_channel};

use rmcp::serve_server;
use rmcp::transport::async_rw::AsyncRwTransport;
use thiserror::Error;

use crate::channels::{Nobody, Token};
use crate::ids;
use crate::receipts::ReceiptError;
use crate::runtime::{Attended, Door, Fate, Offer, Wish};
use server::{Answered, Asked, Server, offered};

/// The longest message of a client.
const LONGEST_MESSAGE: usize = 4 << 20;

/// Calls that wait for the one before them.
const MOST_WAITING: usize = 16;

/// Why our tools can't be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A receipt can't be written: nothing more is run.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The machine says no.
    #[error("could not {what}")]
    Io {
        /// What.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The client does not speak the protocol.
    #[error("the client does not speak the protocol: {0}")]
    Protocol(String),
}

/// How clients come to us.
pub enum Way {
    /// One, on standard input and output, which nothing else may use.
    Stdio,
    /// Any number, on a loopback address, each with the token.
    Http {
        /// The port; 0 for any that is free.
        port: u16,
        /// What every request must carry.
        token: Token,
        /// Told where it is, once it listens.
        listening: Box<dyn FnOnce(std::net::SocketAddr) + Send>,
    },
}

/// Serves until the client is gone. `listed` are the tools that are offered.
///
/// # Errors
/// When it can't begin, or a receipt can't be written.
pub fn serve(door: &Door, listed: &BTreeSet<String>, way: Way) -> Result<(), ServeError> {
    let (sender, asked) = sync_channel(MOST_WAITING);
    let server = Server { tools: offered(door, listed), asked: sender };
    let thread = std::thread::Builder::new().name("mcp-serve".to_owned()).spawn(move || run(server, way));
    let thread = thread.map_err(|source| ServeError::Io { what: "start a thread", source })?;
    answer_all(door, listed, &asked)?;
    thread.join().unwrap_or_else(|_| Err(ServeError::Protocol("the server thread broke off".to_owned())))
}

/// One call after the other, on this thread: the door is here.
fn answer_all(door: &Door, listed: &BTreeSet<String>, asked: &Receiver<Asked>) -> Result<(), ReceiptError> {
    let conversation_id = ids::fresh("mcp");
    for Asked { tool, arguments, cancel, reply } in asked {
        let offer = if listed.contains(&tool) { Offer::Listed } else { Offer::Unlisted };
        let wish = Wish { conversation_id: &conversation_id, tool: &tool, arguments: &arguments, offer };
        let outcome = door.call(wish, &mut Attended { operator: &mut Nobody, cancel: &cancel })?;
        // A client that is gone hears nothing; the receipt is there.
        let _ = reply.send(Answered {
            worked: outcome.fate == Fate::Done,
            text: outcome.text,
            receipt: outcome.receipt_id,
        });
    }
    Ok(())
}

fn run(server: Server, way: Way) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|source| ServeError::Io { what: "make a runtime", source })?;
    let served = runtime.block_on(async {
        match way {
            Way::Stdio => {
                let streams = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout())
                    .with_max_line_length(LONGEST_MESSAGE);
                let broken = |error: String| ServeError::Protocol(error);
                let running =
                    serve_server(server, streams).await.map_err(|error| broken(error.to_string()))?;
                running.waiting().await.map(drop).map_err(|error| broken(error.to_string()))
            }
            Way::Http { port, token, listening } => http::serve(server, port, token, listening).await,
        }
    });
    // A read of standard input can't be called back.
    runtime.shutdown_background();
    served
}
