//! One line of a conversation, in either direction.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::note::is_unsafe_to_display;
use crate::{
    ApiError, ClientHello, Command, CommandReply, DaemonStateSnapshot, ErrorCode, Event, ServerWelcome,
};

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// First, and only first. Fields that the daemon does not know are passed over, so that a newer client is told
    /// which versions there are.
    Hello(ClientHello),
    /// A command.
    Request(ApiRequest),
}

/// A command that wants an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiRequest {
    /// Chosen by the client; the answer has the same.
    pub id: u64,
    /// What is to be done.
    pub command: Command,
}

/// What the daemon sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The answer to `hello`.
    Welcome(ServerWelcome),
    /// The answer to a request.
    Response(ApiResponse),
    /// For subscribers.
    Event {
        /// What happened.
        event: Event,
    },
    /// This subscriber was too slow: events were left out, and this is how it stands now.
    FellBehind {
        /// How many events were left out.
        missed: u64,
        /// All of it.
        snapshot: DaemonStateSnapshot,
    },
    /// The last message of a connection that the daemon ends.
    Closing {
        /// Why.
        error: ApiError,
    },
    /// Something that this client is too old to know. Never sent.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApiResponse {
    /// That of the request.
    pub id: u64,
    /// What came of it.
    pub result: CommandResult,
}

/// What came of a command.
#[expect(clippy::large_enum_variant, reason = "an answer is made, sent and forgotten; none is kept")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandResult {
    /// It was carried out.
    Ok(CommandReply),
    /// It was not.
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

/// A line that the daemon could not take as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageParseError {
    /// A request that can be answered: the connection goes on.
    InvalidRequest {
        /// Its id.
        id: u64,
        /// What is wrong with it.
        error: ApiError,
    },
    /// Not a message at all: the connection ends with [`ServerMessage::Closing`].
    InvalidLine(ApiError),
}

/// Characters of a foreign text that are repeated in an answer: enough to see what was meant.
const MAX_QUOTED_CHARS: usize = 200;

/// A foreign text in a sentence: bounded, and with nothing that could do something to a terminal.
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

/// What can be told of a request even if its command can't be read.
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
    /// One line as the daemon reads it: strictly, and with an answer for whatever is wrong.
    ///
    /// # Errors
    /// The line is not a message, or its command is one that this version does not know.
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

/// Whether message and command are objects with a name. The library would also take arrays and numbers, which mean
/// positions, and would mean something else after an addition.
fn is_tagged_object(line: &[u8]) -> bool {
    let named = |value: &serde_json::Value| {
        value.is_object() && value.get("type").is_some_and(serde_json::Value::is_string)
    };
    serde_json::from_slice(line)
        .is_ok_and(|message: serde_json::Value| named(&message) && message.get("command").is_none_or(named))
}

impl ServerMessage {
    /// One line as a client reads it: leniently.
    ///
    /// # Errors
    /// The line is not a message.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }
}
