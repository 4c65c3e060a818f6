//! Sends stop commands to programs that listen at a control socket: QEMU's monitor (QMP) and mpv's IPC.
//!
//! The listener is not trusted: it must run as the user of the session, and its replies are limited in time and size.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;

use super::StopMethodError;

/// Many times the bytes that either program sends before it answers.
const MAX_REPLY_BYTES: u64 = 256 * 1024;

/// Sends a command to the monitor of a virtual machine.
pub(super) fn send_monitor_command(
    socket: &Path,
    user: u32,
    timeout: Duration,
    command: &str,
) -> Result<(), StopMethodError> {
    let mut connection = ControlConnection::open(socket, user, timeout)?;
    connection.wait_for_key("QMP")?;
    connection.send_message(&serde_json::json!({ "execute": "qmp_capabilities" }))?;
    connection.wait_for_key("return")?;
    connection.send_message(&serde_json::json!({ "execute": command }))?;
    accept_disconnect(connection.wait_for_key("return"))
}

/// Tells a media player to quit.
pub(super) fn quit_player(socket: &Path, user: u32, timeout: Duration) -> Result<(), StopMethodError> {
    let mut connection = ControlConnection::open(socket, user, timeout)?;
    connection.send_message(&serde_json::json!({ "command": ["quit"] }))?;
    accept_disconnect(connection.wait_for_key("error"))
}

/// Treats a lost connection as success: a program that ends at once may close the socket before it answers.
fn accept_disconnect(answer: Result<(), StopMethodError>) -> Result<(), StopMethodError> {
    match answer {
        Err(StopMethodError::Socket(_)) => Ok(()),
        answer => answer,
    }
}

/// Connects with a timeout, because a program that has stopped accepting would block `connect` for ever.
fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout.max(Duration::from_millis(1))))?;
    net::connect(&socket, &address)?;
    Ok(socket.into())
}

struct ControlConnection {
    stream: BufReader<io::Take<UnixStream>>,
    deadline: Instant,
}

impl ControlConnection {
    fn open(socket: &Path, user: u32, timeout: Duration) -> Result<Self, StopMethodError> {
        let stream = connect(socket, timeout)?;
        let peer = net::sockopt::socket_peercred(&stream).map_err(io::Error::from)?;
        if peer.uid.as_raw() != user {
            return Err(StopMethodError::WrongPeer);
        }
        let deadline = Instant::now() + timeout.min(Duration::from_secs(3_600));
        Ok(Self { stream: BufReader::new(stream.take(MAX_REPLY_BYTES)), deadline })
    }

    fn send_message(&mut self, message: &Value) -> io::Result<()> {
        let stream = self.stream.get_mut().get_mut();
        stream.set_write_timeout(Some(time_left(self.deadline)?))?;
        stream.write_all(format!("{message}\n").as_bytes())
    }

    /// Reads messages until one has this key. Other messages are ignored.
    fn wait_for_key(&mut self, key: &str) -> Result<(), StopMethodError> {
        loop {
            self.stream.get_ref().get_ref().set_read_timeout(Some(time_left(self.deadline)?))?;
            let mut text = String::new();
            if self.stream.read_line(&mut text)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let message: Value = serde_json::from_str(&text).unwrap_or_default();
            match message.get(key) {
                Some(Value::String(outcome)) if outcome != "success" => {
                    return Err(StopMethodError::Refused(outcome.chars().take(200).collect()));
                }
                Some(_) => return Ok(()),
                None if message.get("error").is_some() => {
                    return Err(StopMethodError::Refused(text.chars().take(200).collect()));
                }
                None => {}
            }
        }
    }
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_to_a_full_backlog_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("monitor");
        let address = SocketAddrUnix::new(&path).unwrap();
        let socket = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
        };
        let listener = socket();
        net::bind(&listener, &address).unwrap();
        net::listen(&listener, 0).unwrap();
        let pending: Vec<_> = std::iter::repeat_with(socket)
            .take_while(|socket| net::connect(socket, &address).is_ok())
            .collect();
        assert!(!pending.is_empty());
        let user = rustix::process::geteuid().as_raw();
        let refused = quit_player(&path, user, Duration::from_millis(100));
        assert!(matches!(refused, Err(StopMethodError::Socket(_))), "{refused:?}");
    }
}
