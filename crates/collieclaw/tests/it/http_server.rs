//! A scripted HTTP server, with one action for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::{wait_for_value, wait_until};

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
    log: Arc<ServerLog>,
    accepting: Option<JoinHandle<()>>,
}

/// The record of a server's work so far.
#[derive(Default)]
struct ServerLog {
    received: Mutex<Vec<ReceivedRequest>>,
    /// The clients that were sent the first part of a reply.
    replied: Mutex<Vec<SocketAddr>>,
    is_over: AtomicBool,
}

impl TestServer {
    /// Starts a server on the loopback address. The last action is repeated.
    pub(crate) fn start(acts: Vec<ServerAction>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let log: Arc<ServerLog> = Arc::default();
        let its_log = Arc::clone(&log);
        let accepting = std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                if its_log.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let act = acts[number.min(acts.len() - 1)].clone();
                let log = Arc::clone(&its_log);
                // Clients may disconnect at any time.
                std::thread::spawn(move || perform(&stream.unwrap(), &act, &log).unwrap_or_default());
            }
        });
        Self { address, log, accepting: Some(accepting) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.log.received.lock().unwrap().clone()
    }

    /// Waits until a client has read the first part of a reply.
    pub(crate) fn wait_until_reply_is_read(&self) {
        let client = wait_for_value("a reply is sent", || self.log.replied.lock().unwrap().last().copied());
        wait_until_read(client, self.address);
    }
}

/// Waits until a client has read everything that this server has sent, or has closed the connection.
fn wait_until_read(client: SocketAddr, server: SocketAddr) {
    let hex = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port()),
        IpAddr::V6(_) => unreachable!("the server listens on an IPv4 address"),
    };
    // A line is `number: local remote state sent:unread …`, see proc_net_tcp in the documentation of Linux.
    let connection = format!(" {} {} ", hex(client), hex(server));
    wait_until("the client has read the reply", || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let queues = table.lines().find_map(|line| line.split_once(&connection)?.1.split(' ').nth(1));
        queues.is_none_or(|queues| queues.ends_with(":00000000"))
    });
}

impl Drop for TestServer {
    /// Returns when nobody listens on the port any more.
    fn drop(&mut self) {
        self.log.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

/// Returns a response with its length.
pub(crate) fn http_reply(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn perform(mut stream: &TcpStream, act: &ServerAction, log: &ServerLog) -> std::io::Result<()> {
    if matches!(act, ServerAction::HalfClose) {
        stream.shutdown(Shutdown::Write)?;
    }
    let request = read_request(stream)?;
    log.received.lock().unwrap().push(request);
    let client = stream.peer_addr()?;
    if let ServerAction::Send(start)
    | ServerAction::Flood(start, _)
    | ServerAction::Drip(start)
    | ServerAction::Hang(start)
    | ServerAction::Reset(start) = act
    {
        stream.write_all(start.as_bytes())?;
        log.replied.lock().unwrap().push(client);
    }
    let go_on = || !log.is_over.load(Ordering::SeqCst);
    match act {
        ServerAction::Send(_) | ServerAction::HalfClose => {}
        ServerAction::Flood(_, more) => {
            while go_on() {
                stream.write_all(more.as_bytes())?;
            }
        }
        ServerAction::Drip(_) => {
            while go_on() {
                stream.write_all(b" ")?;
                // The pace of a slow server.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        ServerAction::Hang(_) => {
            // Until the client disconnects.
            let _ = stream.read(&mut [0; 64])?;
        }
        ServerAction::Reset(_) => {
            wait_until_read(client, stream.local_addr()?);
            rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        }
        ServerAction::Pieces(pieces, pause) => {
            stream.set_nodelay(true)?;
            for piece in pieces {
                stream.write_all(piece)?;
                // The pace of a server that streams.
                std::thread::sleep(*pause);
            }
        }
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
