//! A scripted HTTP server, with one action for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The action after a request was read.
#[derive(Debug, Clone)]
pub(crate) enum ServerAction {
    /// Sends this and closes.
    Send(String),
    /// Sends the first text, then the second one again and again, for ever.
    Flood(String, String),
    /// Sends this, then a single byte now and then, for ever.
    Drip(String),
    /// Sends this, then keeps the connection open without sending more.
    Hang(String),
    /// Sends this and resets the connection.
    Reset(String),
    /// Sends the parts with a pause between them, and closes.
    Pieces(Vec<Vec<u8>>, Duration),
    /// Closes its sending side before it reads anything.
    HalfClose,
    /// Redirects to itself, with `{port}` in the location filled in.
    Redirect(u16, String),
}

/// A received request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    /// The request line, such as `GET /x HTTP/1.1`.
    pub(crate) line: String,
    /// The headers, with lower-case names.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl ReceivedRequest {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// The server; dropping it ends it.
pub(crate) struct TestServer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    over: Arc<AtomicBool>,
}

impl TestServer {
    /// Starts a server on the loopback address. The last action is repeated.
    pub(crate) fn start(acts: Vec<ServerAction>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, received: Arc::default(), over: Arc::default() };
        let (received, over) = (Arc::clone(&server.received), Arc::clone(&server.over));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let act = acts[number.min(acts.len() - 1)].clone();
                let (received, over) = (Arc::clone(&received), Arc::clone(&over));
                // Clients may disconnect at any time.
                std::thread::spawn(move || {
                    perform(&stream.unwrap(), &act, &received, &over).unwrap_or_default();
                });
            }
        });
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

/// Returns a response with its length.
pub(crate) fn http_reply(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn perform(
    mut stream: &TcpStream,
    act: &ServerAction,
    received: &Mutex<Vec<ReceivedRequest>>,
    over: &AtomicBool,
) -> std::io::Result<()> {
    if matches!(act, ServerAction::HalfClose) {
        stream.shutdown(Shutdown::Write)?;
    }
    received.lock().unwrap().push(read_request(stream)?);
    let go_on = || !over.load(Ordering::SeqCst);
    match act {
        ServerAction::Send(text) => stream.write_all(text.as_bytes())?,
        ServerAction::Flood(start, more) => {
            stream.write_all(start.as_bytes())?;
            while go_on() {
                stream.write_all(more.as_bytes())?;
            }
        }
        ServerAction::Drip(start) => {
            stream.write_all(start.as_bytes())?;
            while go_on() {
                stream.write_all(b" ")?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        ServerAction::Hang(start) => {
            stream.write_all(start.as_bytes())?;
            // Until the client disconnects.
            let _ = stream.read(&mut [0; 64])?;
        }
        ServerAction::Reset(start) => {
            stream.write_all(start.as_bytes())?;
            std::thread::sleep(Duration::from_millis(50));
            rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        }
        ServerAction::Pieces(pieces, pause) => {
            stream.set_nodelay(true)?;
            for piece in pieces {
                stream.write_all(piece)?;
                std::thread::sleep(*pause);
            }
        }
        ServerAction::HalfClose => {}
        ServerAction::Redirect(status, location) => {
            let port = stream.local_addr()?.port();
            let location = location.replace("{port}", &port.to_string());
            write!(stream, "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")?;
        }
    }
    Ok(())
}

fn read_request(stream: &TcpStream) -> std::io::Result<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut received = ReceivedRequest::default();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        match line.split_once(": ") {
            _ if line.is_empty() => break,
            Some((name, value)) if !received.line.is_empty() => {
                received.headers.push((name.to_lowercase(), value.to_owned()));
            }
            _ => received.line = line.to_owned(),
        }
    }
    let length = received.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    received.body = String::from_utf8(body).unwrap();
    Ok(received)
}
