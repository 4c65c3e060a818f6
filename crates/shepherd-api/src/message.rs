//! The messages of the protocol: each is one line, in either direction.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::note::is_unsafe_to_display;
use crate::{
    ApiError, ClientHello, Command, CommandReply, DaemonStateSnapshot, ErrorCode, Event, ServerWelcome,
};

/// A message from a client to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// The first message of a connection, and only the first. Unknown fields are ignored, so that a newer client learns
    /// which versions the daemon supports.
    Hello(ClientHello),
    /// A request with a command.
    Request(ApiRequest),
}

/// A command that expects an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiRequest {
    /// The id of the request, chosen by the client; the answer repeats it.
    pub id: u64,
    /// The command to carry out.
    pub command: Command,
}

/// A message from the daemon to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The answer to `hello`.
    Welcome(ServerWelcome),
    /// The answer to a request.
    Response(ApiResponse),
    /// An event, sent to subscribers.
    Event {
        /// The event that happened.
        event: Event,
    },
    /// A new snapshot for a subscriber that was too slow, after events were dropped.
    FellBehind {
        /// The number of dropped events.
        missed: u64,
        /// The whole state as it is now.
        snapshot: DaemonStateSnapshot,
    },
    /// The last message before the daemon closes the connection.
    Closing {
        /// The reason for closing.
        error: ApiError,
    },
    /// A message that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApiResponse {
    /// The id of the request.
    pub id: u64,
    /// The result of the command.
    pub result: CommandResult,
}

/// The result of a command.
#[expect(clippy::large_enum_variant, reason = "an answer is made, sent and forgotten; none is kept")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandResult {
    /// The command was carried out.
    Ok(CommandReply),
    /// The command was not carried out.
    Err(ApiError),
}

impl From<Result<CommandReply, ApiError>> for CommandResult {
    fn from(result: Result<CommandReply, ApiError>) -> Self {
        match result {
            Ok(reply) => Self::Ok(reply),
            Err(error) => Self::Err(error),
        }
    }
}

impl From<CommandResult> for Result<CommandReply, ApiError> {
    fn from(outcome: CommandResult) -> Self {
        match outcome {
            CommandResult::Ok(reply) => Ok(reply),
            CommandResult::Err(error) => Err(error),
        }
    }
}

/// The error for a line that isn't a valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageParseError {
    /// The line is a request that can be answered; the connection stays open.
    InvalidRequest {
        /// The id of the request.
        id: u64,
        /// The error to answer with.
        error: ApiError,
    },
    /// The line is not a message; the connection ends with [`ServerMessage::Closing`].
    InvalidLine(ApiError),
}

/// The number of characters of a foreign text that an answer repeats: enough to recognise it.
const MAX_QUOTED_CHARS: usize = 200;

/// Quotes a foreign text in a sentence: shortened, and without characters that could control a terminal.
fn escape_for_display(text: &impl ToString) -> String {
    let text = text.to_string();
    let mut shown = String::new();
    for character in text.chars().take(MAX_QUOTED_CHARS) {
        if is_unsafe_to_display(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    if text.chars().nth(MAX_QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// The parts of a request that can be read even if its command can't.
#[derive(Deserialize)]
struct RequestEnvelope {
    r#type: RequestTag,
    id: u64,
    command: Option<CommandTag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RequestTag {
    Request,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CommandTag {
    Named { r#type: String },
    Other(IgnoredAny),
}

impl ClientMessage {
    /// Parses a line as the daemon does: strictly, with an answer for everything that is wrong.
    ///
    /// # Errors
    /// The line is not a message, or its command is unknown in this version.
    pub fn parse(line: &[u8]) -> Result<Self, MessageParseError> {
        let fault = match serde_json::from_slice(line) {
            Ok(message) if is_tagged_object(line) => return Ok(message),
            Ok(_) => {
                let sentence =
                    "This line is not a message of the protocol: write it as an object with a `type`.";
                return Err(MessageParseError::InvalidLine(ApiError::new(
                    ErrorCode::MalformedMessage,
                    sentence,
                )));
            }
            Err(fault) => fault,
        };
        let Ok(RequestEnvelope { r#type: RequestTag::Request, id, command }) = serde_json::from_slice(line)
        else {
            let sentence =
                format!("This line is not a message of the protocol: {}.", escape_for_display(&fault));
            return Err(MessageParseError::InvalidLine(ApiError::new(ErrorCode::MalformedMessage, sentence)));
        };
        let error = match command {
            Some(CommandTag::Named { r#type: name }) if !Command::NAMES.contains(&name.as_str()) => {
                let sentence = format!(
                    "There is no command `{}` in this version of the daemon.",
                    escape_for_display(&name)
                );
                ApiError::new(ErrorCode::UnknownCommand, sentence)
            }
            Some(CommandTag::Named { .. } | CommandTag::Other(_)) | None => {
                let sentence = format!("The command can't be read: {}.", escape_for_display(&fault));
                ApiError::new(ErrorCode::InvalidCommand, sentence)
            }
        };
        Err(MessageParseError::InvalidRequest { id, error })
    }
}

/// Returns whether message and command are objects with a name. serde would also accept arrays and numbers, whose
/// meaning depends on positions and would change after an addition.
fn is_tagged_object(line: &[u8]) -> bool {
    let named = |value: &serde_json::Value| {
        value.is_object() && value.get("type").is_some_and(serde_json::Value::is_string)
    };
    serde_json::from_slice(line)
        .is_ok_and(|message: serde_json::Value| named(&message) && message.get("command").is_none_or(named))
}

impl ServerMessage {
    /// Parses a line as a client does: leniently.
    ///
    /// # Errors
    /// The line is not a message.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }
}
