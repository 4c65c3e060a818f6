//! A word to a program that listens at a socket of its own: QEMU's monitor (QMP), mpv's IPC.
//!
//! Whoever listens there is no more trusted than any program: it must be of the user that the session runs as, gets
//! so much time, and is listened to for so many bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;

use super::AskError;

/// Many times what either says before it answers.
const MAX_ANSWER: u64 = 256 * 1024;

/// Says one word to a machine's monitor.
pub(super) fn monitor(socket: &Path, user: u32, patience: Duration, word: &str) -> Result<(), AskError> {
    let mut line = Line::open(socket, user, patience)?;
    line.hear("QMP")?;
    line.say(&serde_json::json!({ "execute": "qmp_capabilities" }))?;
    line.hear("return")?;
    line.say(&serde_json::json!({ "execute": word }))?;
    unless_refused(line.hear("return"))
}

/// Tells a player to quit.
pub(super) fn player(socket: &Path, user: u32, patience: Duration) -> Result<(), AskError> {
    let mut line = Line::open(socket, user, patience)?;
    line.say(&serde_json::json!({ "command": ["quit"] }))?;
    unless_refused(line.hear("error"))
}

/// It has been asked. One that obeys at once may well hang up before it answers.
fn unless_refused(answer: Result<(), AskError>) -> Result<(), AskError> {
    match answer {
        Err(AskError::Socket(_)) => Ok(()),
        answer => answer,
    }
}

/// One that has stopped accepting must not make us wait for longer than we would for its answer.
fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience.max(Duration::from_millis(1))))?;
    net::connect(&socket, &address)?;
    Ok(socket.into())
}

struct Line {
    stream: BufReader<io::Take<UnixStream>>,
    deadline: Instant,
}

impl Line {
    fn open(socket: &Path, user: u32, patience: Duration) -> Result<Self, AskError> {
        let stream = connect(socket, patience)?;
        let peer = net::sockopt::socket_peercred(&stream).map_err(io::Error::from)?;
        if peer.uid.as_raw() != user {
            return Err(AskError::Stranger);
        }
        let deadline = Instant::now() + patience.min(Duration::from_secs(3_600));
        Ok(Self { stream: BufReader::new(stream.take(MAX_ANSWER)), deadline })
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
        let stream = self.stream.get_mut().get_mut();
        stream.set_write_timeout(Some(time_left(self.deadline)?))?;
        stream.write_all(format!("{message}\n").as_bytes())
    }

    /// Listens until something with this key is said; what else is said is passed over.
    fn hear(&mut self, key: &str) -> Result<(), AskError> {
        loop {
            self.stream.get_ref().get_ref().set_read_timeout(Some(time_left(self.deadline)?))?;
            let mut text = String::new();
            if self.stream.read_line(&mut text)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let said: Value = serde_json::from_str(&text).unwrap_or_default();
            match said.get(key) {
                Some(Value::String(outcome)) if outcome != "success" => {
                    return Err(AskError::Refused(outcome.chars().take(200).collect()));
                }
                Some(_) => return Ok(()),
                None if said.get("error").is_some() => {
                    return Err(AskError::Refused(text.chars().take(200).collect()));
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
    fn one_that_has_stopped_accepting_makes_nobody_wait_for_ever() {
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
        let knocking: Vec<_> = std::iter::repeat_with(socket)
            .take_while(|socket| net::connect(socket, &address).is_ok())
            .collect();
        assert!(!knocking.is_empty());
        let user = rustix::process::geteuid().as_raw();
        let refused = player(&path, user, Duration::from_millis(100));
        assert!(matches!(refused, Err(AskError::Socket(_))), "{refused:?}");
    }
}
