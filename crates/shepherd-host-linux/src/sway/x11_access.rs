//! Lets another user's programs connect to Xwayland, as `xhost +si:localuser:#UID` does.
//!
//! Xwayland accepts only programs of its own user unless that user allows others. The connection that allowed a user is kept
//! for the session, because Xwayland may forget the users when its last program disconnects.
//! Protocol: <https://www.x.org/releases/current/doc/xproto/x11protocol.html>.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, Uid};

use super::connection::{SwayProcess, connect, listener};

/// The longest time for all answers together. Sway starts Xwayland for the first connection, which takes a second on a slow
/// machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The bytes of the answer to `ChangeHosts` and `GetInputFocus`, and of events.
const REPLY: usize = 32;

/// The number of events that may come before an answer.
const MAX_EVENTS: usize = 1000;

const CHANGE_HOSTS: u8 = 109;
const GET_INPUT_FOCUS: u8 = 43;

/// The address family of users, and the kinds of messages from the server.
const SERVER_INTERPRETED: u8 = 5;
const CONNECTION_ACCEPTED: u8 = 1;
const ERROR_MESSAGE: u8 = 0;
const REPLY_MESSAGE: u8 = 1;

#[derive(Clone, Copy)]
enum HostChange {
    Insert = 0,
    Delete = 1,
}

/// A user that may connect to Xwayland.
pub(super) struct X11Access {
    pub(super) stream: UnixStream,
    pub(super) user: u32,
}

impl X11Access {
    /// Allows a user to connect to the Xwayland of this Sway.
    pub(super) fn allow(display: u32, sway: SwayProcess, user: u32) -> io::Result<Self> {
        let path = PathBuf::from(format!("/tmp/.X11-unix/X{display}"));
        let stream = connect_as(sway.uid, &path)?;
        // Everybody can create sockets in that folder.
        if listener(&stream)?.uid != sway.uid {
            return Err(io::Error::other("another user listens at its socket"));
        }
        stream.set_nonblocking(false)?;
        let mut server = DeadlineStream { stream: &stream, deadline: Instant::now() + TIMEOUT };
        set_up_connection(&mut server)?;
        server.write_all(&change_hosts(HostChange::Insert, user))?;
        // This request only asks for an answer, which comes after an error of the previous request.
        server.write_all(&[GET_INPUT_FOCUS, 0, 1, 0])?;
        read_reply(&mut server)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, user })
    }

    /// Takes the permission back. Running programs keep their connections. Never waits.
    pub(super) fn revoke(mut self) {
        // Writing fails only if Xwayland is gone or hangs.
        let _ = self.stream.write_all(&change_hosts(HostChange::Delete, self.user));
    }
}

/// A connection with one deadline for everything that is read and written. A timeout for each read would let a server that
/// sends single bytes delay a launch for hours.
struct DeadlineStream<'s> {
    stream: &'s UnixStream,
    deadline: Instant,
}

impl DeadlineStream<'_> {
    fn time_left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(too_late()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.time_left()?)?;
        self.stream.read(buffer).map_err(explain_timeout)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.time_left()?)?;
        self.stream.write(bytes).map_err(explain_timeout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Replaces the error of a socket whose timeout is over ("resource temporarily unavailable", `socket(7)`).
fn explain_timeout(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { too_late() } else { error }
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it did not answer within {} s", TIMEOUT.as_secs()))
}

/// Connects as the user of Xwayland, which accepts nobody else.
///
/// Only the effective user of a short-lived thread changes, so that no process of that user can signal or trace the thread
/// (`kill(2)`, `ptrace(2)`).
fn connect_as(user: u32, path: &Path) -> io::Result<UnixStream> {
    if rustix::process::geteuid().as_raw() == user {
        return connect(path);
    }
    let dumpable = rustix::process::dumpable_behavior()?;
    let work = || {
        rustix::thread::set_thread_res_uid(None, Uid::from_raw(user), None)?;
        connect(path)
    };
    let connected = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("host-x11".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that connects has panicked")))
    });
    // The change of the user makes the whole daemon non-dumpable (`PR_SET_DUMPABLE(2const)`).
    if matches!(dumpable, DumpableBehavior::Dumpable) {
        rustix::process::set_dumpable_behavior(dumpable)?;
    }
    connected
}

/// Opens the connection without an authorisation, in little-endian byte order and version 11.0 of the protocol.
fn set_up_connection(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
    let mut header = [0; 8];
    stream.read_exact(&mut header)?;
    let [status, .., low, high] = header;
    let length = u64::from(u16::from_le_bytes([low, high])) * 4;
    let copied = io::copy(&mut Read::by_ref(stream).take(length), &mut io::sink())?;
    match status {
        CONNECTION_ACCEPTED if copied == length => Ok(()),
        CONNECTION_ACCEPTED => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it refused the connection")),
    }
}

fn change_hosts(change: HostChange, user: u32) -> Vec<u8> {
    let address = format!("localuser\0#{user}").into_bytes();
    let length = u8::try_from(address.len()).unwrap_or(u8::MAX);
    let words = 2 + length.div_ceil(4);
    let mut request = vec![CHANGE_HOSTS, change as u8, words, 0, SERVER_INTERPRETED, 0, length, 0];
    request.extend(address);
    request.resize(usize::from(words) * 4, 0);
    request
}

fn read_reply(stream: &mut impl Read) -> io::Result<()> {
    let mut message = [0; REPLY];
    for _ in 0..MAX_EVENTS {
        stream.read_exact(&mut message)?;
        match message {
            [ERROR_MESSAGE, code, ..] => {
                return Err(io::Error::other(format!("it answered with error {code}")));
            }
            [REPLY_MESSAGE, ..] => return Ok(()),
            _ => {}
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_its_number() {
        assert_eq!(
            change_hosts(HostChange::Insert, 1000),
            b"\x6d\x00\x06\x00\x05\x00\x0f\x00localuser\0#1000\0"
        );
        assert_eq!(
            change_hosts(HostChange::Delete, 65_533),
            b"\x6d\x01\x06\x00\x05\x00\x10\x00localuser\0#65533"
        );
    }

    #[test]
    fn a_server_that_still_sends_at_the_deadline_is_given_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // Complete answers are there, but the time for them is over.
        theirs.write_all(&[34; REPLY]).unwrap();
        theirs.write_all(&[REPLY_MESSAGE; REPLY]).unwrap();
        let mut server = DeadlineStream { stream: &ours, deadline: Instant::now() };
        assert_eq!(read_reply(&mut server).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(server.write_all(b"x").unwrap_err().kind(), io::ErrorKind::TimedOut);
        // A single byte doesn't start the time anew.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&[34]).unwrap();
        let deadline = Instant::now() + Duration::from_millis(50);
        let error = read_reply(&mut DeadlineStream { stream: &ours, deadline }).unwrap_err();
        assert_eq!(error.to_string(), "it did not answer within 10 s");
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn errors_are_told_from_events_and_replies() {
        let answer = |kinds: &[u8]| {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            for kind in kinds {
                theirs.write_all(&[&[*kind, 10][..], &[0; 30]].concat()).unwrap();
            }
            drop(theirs);
            read_reply(&mut ours).map_err(|error| error.to_string())
        };
        assert_eq!(answer(&[1]), Ok(()));
        assert_eq!(answer(&[34, 34, 1]), Ok(()));
        assert_eq!(answer(&[34, 0, 1]), Err("it answered with error 10".to_owned()));
        assert_eq!(answer(&[34]), Err("failed to fill whole buffer".to_owned()));
    }
}
