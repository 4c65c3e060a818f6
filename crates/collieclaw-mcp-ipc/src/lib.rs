//! What `collieclaw` and `collieclaw-mcp` say to each other: a value of JSON on each line.
//!
//! The protocol itself is spoken by the second program alone, in a sandbox of its own. It is large, and what it reads
//! comes from strangers: nothing of theirs is parsed where keys and receipts are, but for these few shapes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use collieclaw_providers::secret::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// What both must have. The second number is raised with every change of the shapes here.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// A server that nobody asks anything is ended. A person thinks for minutes between two messages, and a server may
/// have something open.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The longest line: twice the longest message of a server, for what is longer in our words.
pub const LONGEST_LINE: u64 = 16 << 20;

/// The longest list of tools, in letters. A longer one nobody reads.
const LONGEST_LIST: usize = 1 << 20;

/// Of a program that breaks off: what it says after that, for how long, and how much of it is told.
const MAX_TRAILING_BYTES: u64 = 4096;
const TRAILING_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_TRAILING_CHARS: usize = 400;

/// A tool, as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedTool {
    /// Its name at the server.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub schema: Value,
}

/// The first line, ours: what we are, and what the other one is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct AdapterHandshake {
    /// [`SUBJECT_VERSION`].
    pub version: String,
    /// What it is to do.
    pub task: AdapterTask,
}

/// What `collieclaw-mcp` is started for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterTask {
    /// To ask the server that writes to its standard input and reads its standard output.
    AskProgram,
    /// To ask the server at an address of this machine.
    AskAddress {
        /// Where.
        url: String,
        /// What every request bears.
        token: Option<AdapterToken>,
    },
    /// To offer tools to the client on its standard input and output.
    OfferToOne {
        /// These.
        tools: Vec<PinnedTool>,
    },
    /// To offer tools to whoever connects to the socket that is its standard input, and bears the token.
    OfferToMany {
        /// These.
        tools: Vec<PinnedTool>,
        /// What every request bears.
        token: AdapterToken,
    },
}

/// A token, which is a word on the line and nowhere else.
#[derive(Debug)]
pub struct AdapterToken(pub Secret);

impl AdapterToken {
    /// Without the blanks around it.
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

/// What a server is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerRequest {
    /// Its tools.
    List,
    /// To do something.
    Call {
        /// What.
        tool: String,
        /// With what.
        arguments: Map<String, Value>,
    },
}

/// What is heard of a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerReply {
    /// Its tools.
    Tools(Vec<ListedMcpTool>),
    /// What came of a call.
    Told {
        /// As the model gets it.
        text: String,
        /// Whether the server says that it worked.
        worked: bool,
    },
    /// Why there is no answer.
    Failed(String),
    /// There is none, for the server has ended, or never began.
    Ended(String),
    /// There is none, for the server sent too much.
    TooMuch,
    /// The server had ended before it was asked.
    Gone,
    /// No answer, but a word in between: its tools are others now.
    Changed,
}

/// A tool of a server. What is nested in it stays a text until its length is known: as values it needs a hundred times
/// the room.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListedMcpTool {
    /// Its name at the server.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub schema: String,
}

impl ListedMcpTool {
    pub fn parse_all(listed: Vec<Self>) -> Result<Vec<PinnedTool>, String> {
        let length = |tool: &Self| tool.name.len() + tool.description.len() + tool.schema.len();
        if listed.iter().map(length).sum::<usize>() > LONGEST_LIST {
            return Err(format!("its list of tools is longer than {} kB", LONGEST_LIST >> 10));
        }
        let unread = |error| format!("the schema of one of its tools can't be read: {error}");
        let tool = |Self { name, description, schema }| {
            let schema = serde_json::from_str(&schema).map_err(unread)?;
            Ok(PinnedTool { name, description, schema })
        };
        listed.into_iter().map(tool).collect()
    }
}

/// What a client of our tools wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpClientRequest {
    /// A call.
    Call {
        /// Its number.
        number: u64,
        /// Of what.
        tool: String,
        /// With what: an object, as a text for the same reason as that of [`ListedMcpTool`].
        arguments: String,
    },
    /// Nobody waits for it any more.
    Cancel {
        /// The number of the call.
        number: u64,
    },
    /// The last line.
    Over(ServingEnd),
}

/// Why no client is served any more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServingEnd {
    /// It has left.
    Left,
    /// It does not speak the protocol.
    NoProtocol(String),
    /// The fault is ours.
    Fault(String),
}

/// What came of a client's call.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpCallReply {
    /// The number of the call.
    pub number: u64,
    /// The outcome; or why it was not even looked at.
    pub outcome: Result<McpCallOutcome, String>,
}

/// What a client gets.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpCallOutcome {
    /// Whether it was done.
    pub worked: bool,
    /// What it gave.
    pub text: String,
    /// The receipt.
    pub receipt: Option<String>,
}

/// A value as a line.
///
/// # Errors
/// When it has no form in JSON.
pub fn encode_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A line as a value.
///
/// # Errors
/// When it is none.
pub fn decode_line<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(line)?)
}

/// Says something, until then at the latest.
pub fn send_line(mut to: &UnixStream, value: &impl Serialize, deadline: Instant) -> io::Result<()> {
    let line = encode_line(value)?;
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        to.set_write_timeout(Some(left))?;
        match to.write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hears what is said, line by line.
pub struct AdapterLineReader(BufReader<UnixStream>);

impl AdapterLineReader {
    pub fn new(line: UnixStream) -> Self {
        Self(BufReader::new(line))
    }

    /// The next thing; nothing at the end.
    ///
    /// # Errors
    /// When it is no value. That is what a program says when it breaks off, and the error tells it.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        match self.0.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            // Whoever ended without having read all that we said.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            read => drop(read?),
        }
        match line.last() {
            None => Ok(None),
            Some(b'\n') => decode_line(&line).map(Some).map_err(|_| self.read_trailing_output(line)),
            Some(_) => Err(self.read_trailing_output(line)),
        }
    }

    /// All that is still said, in one line.
    pub fn read_trailing_output(&mut self, mut said: Vec<u8>) -> io::Error {
        let _ = self.0.get_ref().set_read_timeout(Some(TRAILING_OUTPUT_TIMEOUT));
        // What has come until the time is over counts.
        let _ = self.0.by_ref().take(MAX_TRAILING_BYTES).read_to_end(&mut said);
        let text: String = String::from_utf8_lossy(&said).chars().take(MAX_TRAILING_CHARS).collect();
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
    fn what_is_said_is_heard_and_what_is_no_line_is_not() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let soon = Instant::now() + Duration::from_secs(60);
        send_line(&theirs, &McpServerReply::Told { text: "two\nlines".to_owned(), worked: true }, soon)
            .unwrap();
        send_line(&theirs, &McpServerReply::Changed, soon).unwrap();
        drop(theirs);
        let mut ear = AdapterLineReader::new(ours);
        assert!(
            matches!(ear.receive(), Ok(Some(McpServerReply::Told { text, worked: true })) if text == "two\nlines")
        );
        assert!(matches!(ear.receive(), Ok(Some(McpServerReply::Changed))));
        assert!(matches!(ear.receive::<McpServerReply>(), Ok(None)));

        for broken in ["\"chang", "\"something_else\"\n"] {
            assert!(reader_of_bytes(broken.as_bytes()).receive::<McpServerReply>().is_err(), "{broken}");
        }
        let unending = vec![b'x'; usize::try_from(LONGEST_LINE).unwrap() + 1];
        assert!(reader_of_bytes(&unending).receive::<McpServerReply>().is_err());
    }

    #[test]
    fn the_words_of_a_panic_are_told() {
        let panic =
            b"\nthread 'main' (7) panicked at x.rs:1:1:\nno luck\nnote: run with `RUST_BACKTRACE=1`\n";
        let told = reader_of_bytes(panic).receive::<McpServerReply>().unwrap_err().to_string();
        assert_eq!(told, "thread 'main' (7) panicked at x.rs:1:1: no luck note: run with `RUST_BACKTRACE=1`");
    }

    #[test]
    fn whoever_does_not_listen_is_not_waited_for() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let long = McpServerReply::Failed("x".repeat(8 << 20));
        let soon = || Instant::now() + Duration::from_millis(50);
        assert!(send_line(&ours, &long, soon()).is_err());
        // Nor whoever listens slowly: an hour for all of it.
        std::thread::spawn(move || {
            while (&theirs).read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
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
