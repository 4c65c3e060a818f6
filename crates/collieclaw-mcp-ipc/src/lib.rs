//! Messages between `collieclaw` and `collieclaw-mcp`, one JSON value per line.
//!
//! Only `collieclaw-mcp` implements MCP, in its own sandbox. The protocol is large and its input is untrusted,
//! so the process with the keys and receipts parses nothing but these few types.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use collieclaw_providers::secret::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The version that both programs must share. Raise the last number with every change to these types.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-2");

/// A server without requests for this long is ended. The limit is generous because a person may think for
/// minutes between two messages, and a server may hold state.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The longest line. Our encoding of a server's longest message may be up to twice as long as the message.
pub const LONGEST_LINE: u64 = 16 << 20;

/// The longest list of tools, in bytes. Nobody would read a longer list before approving it.
const LONGEST_LIST: usize = 1 << 20;

/// Limits for the output of a program that crashed: bytes read, time to wait, characters shown.
const MAX_TRAILING_BYTES: u64 = 4096;
const TRAILING_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_TRAILING_CHARS: usize = 400;

/// A tool as it is described to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedTool {
    /// The tool's name at the server.
    pub name: String,
    pub description: String,
    /// A JSON Schema of the arguments.
    pub schema: Value,
}

/// The first line, sent by `collieclaw`.
#[derive(Debug, Serialize, Deserialize)]
pub struct AdapterHandshake {
    /// The sender's [`VERSION`].
    pub version: String,
    pub task: AdapterTask,
}

/// The task that `collieclaw-mcp` is started for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterTask {
    /// Connect to the server whose output is our standard input and whose input is our standard output.
    AskProgram,
    /// Connect to the server at a loopback address.
    AskAddress {
        url: String,
        /// The bearer token for every request.
        token: Option<AdapterToken>,
    },
    /// Offer tools to the client on standard input and output.
    OfferToOne { tools: Vec<PinnedTool> },
    /// Offer tools to clients that connect to the listening socket on standard input and send the token.
    OfferToMany {
        tools: Vec<PinnedTool>,
        /// The bearer token that every request must carry.
        token: AdapterToken,
    },
}

/// A token that is serialized as plain text but never printed.
#[derive(Debug)]
pub struct AdapterToken(pub Secret);

impl AdapterToken {
    /// Wraps a token and trims the blanks around it.
    #[must_use]
    pub fn new(token: String) -> Self {
        Self(Secret::new(token))
    }
}

impl Serialize for AdapterToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.reveal())
    }
}

impl<'de> Deserialize<'de> for AdapterToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// A request to an MCP server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerRequest {
    List,
    Call { tool: String, arguments: Map<String, Value> },
}

/// A message from an MCP server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerReply {
    Tools(Vec<ListedMcpTool>),
    /// The result of a tool call.
    Told {
        /// The result as the model gets it.
        text: String,
        /// False if the server reported an error.
        worked: bool,
    },
    /// The request failed, for this reason.
    Failed(String),
    /// The server ended before it answered, or never started.
    Ended(String),
    /// Nothing listens at the server's address.
    NothingListens(String),
    /// The two programs have different versions.
    WrongVersion(String),
    /// The server sent more than its budget.
    TooMuch,
    /// The server had ended before the request.
    Gone,
    /// A notice that the server's tools have changed; it answers no request.
    Changed,
}

/// A tool in a server's list. The schema stays text until its length is checked, because parsed JSON needs up
/// to a hundred times the memory.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListedMcpTool {
    pub name: String,
    pub description: String,
    /// A JSON Schema of the arguments.
    pub schema: String,
}

impl ListedMcpTool {
    pub fn parse_all(listed: Vec<Self>) -> Result<Vec<PinnedTool>, String> {
        let length = |tool: &Self| tool.name.len() + tool.description.len() + tool.schema.len();
        if listed.iter().map(length).sum::<usize>() > LONGEST_LIST {
            return Err(format!("its list of tools is longer than {} kB", LONGEST_LIST >> 10));
        }
        let invalid_schema = |error| format!("could not read the schema of a tool: {error}");
        let tool = |Self { name, description, schema }| {
            let schema = serde_json::from_str(&schema).map_err(invalid_schema)?;
            Ok(PinnedTool { name, description, schema })
        };
        listed.into_iter().map(tool).collect()
    }
}

/// A message from a client of our tools.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpClientRequest {
    Call {
        number: u64,
        tool: String,
        /// A JSON object as text, for the same reason as in [`ListedMcpTool`].
        arguments: String,
    },
    /// The client no longer waits for the call.
    Cancel { number: u64 },
    /// The last message: serving has ended.
    Over(ServingEnd),
}

/// The reason why serving ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServingEnd {
    Left,
    NoProtocol(String),
    /// The adapter failed, for this reason.
    Fault(String),
    /// The two programs have different versions.
    WrongVersion(String),
}

/// The reply to a client's call.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpCallReply {
    pub number: u64,
    /// The outcome, or the reason why the call was not handled.
    pub outcome: Result<McpCallOutcome, String>,
}

/// The outcome of a client's call.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpCallOutcome {
    /// False if the call was denied or failed.
    pub worked: bool,
    pub text: String,
    pub receipt: Option<String>,
}

/// Encodes a value as a line of JSON.
///
/// # Errors
/// Fails if the value can't be represented in JSON.
pub fn encode_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Decodes a line of JSON.
///
/// # Errors
/// Fails if the line is not a value of this type.
pub fn decode_line<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(line)?)
}

/// Sends a value, and fails if the other side has not read it by the deadline.
pub fn send_line(mut socket: &UnixStream, value: &impl Serialize, deadline: Instant) -> io::Result<()> {
    let line = encode_line(value)?;
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_write_timeout(Some(left))?;
        match socket.write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads messages line by line.
pub struct AdapterLineReader(BufReader<UnixStream>);

impl AdapterLineReader {
    pub fn new(socket: UnixStream) -> Self {
        Self(BufReader::new(socket))
    }

    /// Returns the next message, or `None` at the end.
    ///
    /// # Errors
    /// Fails if the line is not a message. A program that crashes prints text instead; the error then
    /// contains that text.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        match self.0.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            // The other program ended without reading everything we sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            read => drop(read?),
        }
        match line.last() {
            None => Ok(None),
            Some(b'\n') => decode_line(&line).map(Some).map_err(|_| self.read_trailing_output(line)),
            Some(_) => Err(self.read_trailing_output(line)),
        }
    }

    /// Reads the remaining output for a short time and returns an error with the text on one line.
    pub fn read_trailing_output(&mut self, mut output: Vec<u8>) -> io::Error {
        let _ = self.0.get_ref().set_read_timeout(Some(TRAILING_OUTPUT_TIMEOUT));
        // A timeout is fine: the text that arrived in time counts.
        let _ = self.0.by_ref().take(MAX_TRAILING_BYTES).read_to_end(&mut output);
        let text: String = String::from_utf8_lossy(&output).chars().take(MAX_TRAILING_CHARS).collect();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        io::Error::new(io::ErrorKind::InvalidData, lines.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader_of_bytes(bytes: &[u8]) -> AdapterLineReader {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let bytes = bytes.to_vec();
        std::thread::spawn(move || drop(theirs.write_all(&bytes)));
        AdapterLineReader::new(ours)
    }

    #[test]
    fn messages_are_received_and_other_lines_are_rejected() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let soon = Instant::now() + Duration::from_secs(60);
        send_line(&theirs, &McpServerReply::Told { text: "two\nlines".to_owned(), worked: true }, soon)
            .unwrap();
        send_line(&theirs, &McpServerReply::Changed, soon).unwrap();
        drop(theirs);
        let mut reader = AdapterLineReader::new(ours);
        assert!(
            matches!(reader.receive(), Ok(Some(McpServerReply::Told { text, worked: true })) if text == "two\nlines")
        );
        assert!(matches!(reader.receive(), Ok(Some(McpServerReply::Changed))));
        assert!(matches!(reader.receive::<McpServerReply>(), Ok(None)));

        for broken in ["\"chang", "\"something_else\"\n"] {
            assert!(reader_of_bytes(broken.as_bytes()).receive::<McpServerReply>().is_err(), "{broken}");
        }
        let unending = vec![b'x'; usize::try_from(LONGEST_LINE).unwrap() + 1];
        assert!(reader_of_bytes(&unending).receive::<McpServerReply>().is_err());
    }

    #[test]
    fn a_panic_message_is_reported() {
        let panic =
            b"\nthread 'main' (7) panicked at x.rs:1:1:\nno luck\nnote: run with `RUST_BACKTRACE=1`\n";
        let error = reader_of_bytes(panic).receive::<McpServerReply>().unwrap_err().to_string();
        assert_eq!(
            error,
            "thread 'main' (7) panicked at x.rs:1:1: no luck note: run with `RUST_BACKTRACE=1`"
        );
    }

    #[test]
    fn sending_gives_up_on_a_peer_that_does_not_read() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let long = McpServerReply::Failed("x".repeat(8 << 20));
        let soon = || Instant::now() + Duration::from_millis(50);
        assert!(send_line(&ours, &long, soon()).is_err());
        // A slow reader is not waited for either: reading everything would take an hour.
        std::thread::spawn(move || {
            while (&theirs).read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                // The pace of a slow reader.
                std::thread::sleep(Duration::from_millis(400));
            }
        });
        assert!(send_line(&ours, &long, soon()).is_err());
    }

    #[test]
    fn a_token_is_sent_and_not_shown() {
        let task = AdapterTask::AskAddress {
            url: "u".to_owned(),
            token: Some(AdapterToken::new(" t0ken\n".to_owned())),
        };
        assert!(!format!("{task:?}").contains("t0ken"));
        let line = encode_line(&task).unwrap();
        assert!(String::from_utf8(line.clone()).unwrap().contains("\"t0ken\""));
        let AdapterTask::AskAddress { token: Some(token), .. } = decode_line(&line).unwrap() else {
            panic!()
        };
        assert_eq!(token.0.reveal(), "t0ken");
    }
}
