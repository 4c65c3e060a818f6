//! What `collieclaw` and `collieclaw-mcp` say to each other: a value of JSON on each line.
//!
//! The protocol itself is spoken by the second program alone, in a sandbox of its own. It is large, and what it reads
//! comes from strangers: nothing of theirs is parsed where keys and receipts are, but for these few shapes.

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pins::PinnedTool;

/// The longest line. What a server may send in answer to one question fits, however it is written.
const LONGEST_LINE: u64 = 64 << 20;

/// The first line, ours: both are of one version, and the other one's work.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// Ours.
    pub version: String,
    /// What it is to do.
    pub task: Task,
}

/// What `collieclaw-mcp` is started for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// To ask the server that writes to its standard input and reads its standard output.
    AskProgram,
    /// To ask the server at an address of this machine.
    AskAddress {
        /// Where.
        url: String,
        /// What every request bears.
        token: Option<String>,
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
        token: String,
    },
}

/// What a server is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
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
pub enum Answer {
    /// Its tools.
    Tools(Vec<PinnedTool>),
    /// What came of a call.
    Told {
        /// As the model gets it.
        text: String,
        /// Whether the server says that it worked.
        worked: bool,
    },
    /// Why there is no answer.
    Failed(String),
    /// There is none, for the server sent too much.
    TooMuch,
    /// The server had ended before it was asked.
    Gone,
    /// No answer, but a word in between: its tools are others now.
    Changed,
}

/// What a client of our tools wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// A call.
    Call {
        /// Its number.
        number: u64,
        /// Of what.
        tool: String,
        /// With what.
        arguments: Map<String, Value>,
    },
    /// Nobody waits for it any more.
    Cancel {
        /// The number of the call.
        number: u64,
    },
    /// The last line: all clients are gone, or this is why there can't be any.
    Over(Option<String>),
}

/// What came of a client's call.
#[derive(Debug, Serialize, Deserialize)]
pub struct Given {
    /// The number of the call.
    pub number: u64,
    /// The outcome; or why it was not even looked at.
    pub outcome: Result<Outcome, String>,
}

/// What a client gets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
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
pub fn written(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A line as a value.
///
/// # Errors
/// When it is none.
pub fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(line)?)
}

/// Says something.
pub(super) fn say(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    to.write_all(&written(value)?)
}

/// Hears the next thing; nothing at the end.
pub(super) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    match from.take(LONGEST_LINE).read_until(b'\n', &mut line) {
        // Whoever ended without having read all that we said.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        read => drop(read?),
    }
    match line.last() {
        None => Ok(None),
        Some(b'\n') => read(&line).map(Some).map_err(|_| not_understood(&line)),
        Some(_) => Err(not_understood(&line)),
    }
}

/// What is no value is what a program says when it breaks off.
fn not_understood(line: &[u8]) -> io::Error {
    const ENOUGH: usize = 200;
    let words: String = String::from_utf8_lossy(line).trim().chars().take(ENOUGH).collect();
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_and_what_is_no_line_is_not() {
        let mut said = Vec::new();
        say(&mut said, &Answer::Told { text: "two\nlines".to_owned(), worked: true }).unwrap();
        say(&mut said, &Answer::Changed).unwrap();
        let mut from = said.as_slice();
        assert!(
            matches!(hear(&mut from), Ok(Some(Answer::Told { text, worked: true })) if text == "two\nlines")
        );
        assert!(matches!(hear(&mut from), Ok(Some(Answer::Changed))));
        assert!(matches!(hear::<Answer>(&mut from), Ok(None)));

        for broken in ["thread panicked\n", "\"chang", "\"something_else\"\n"] {
            assert!(hear::<Answer>(&mut broken.as_bytes()).is_err(), "{broken}");
        }
        let unending = io::repeat(b'x').take(LONGEST_LINE + 1);
        assert!(hear::<Answer>(&mut io::BufReader::new(unending)).is_err());
    }
}
