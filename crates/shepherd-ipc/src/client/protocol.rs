//! The client's half of the protocol, without a socket: the bytes to send, and the meaning of received bytes.

use std::collections::VecDeque;
use std::io;

use serde::Serialize;
use shepherd_api::{
    ApiError, ApiRequest, ApiResponse, ClientHello, ClientMessage, Command, CommandReply, CommandResult,
    DaemonStateSnapshot, Event, ServerMessage, ServerWelcome,
};

use crate::client::CallError;
use crate::frame::{FrameDecoder, MAX_REPLY_FRAME};

/// The number of events that are kept while a reply is pending.
const MAX_BUFFERED_PUSHES: usize = 4_096;

/// A message that the daemon sends to a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerPush {
    /// An event happened.
    Event(Event),
    /// Events were dropped, because this client was too slow.
    FellBehind {
        /// The number of dropped events.
        missed: u64,
        /// The current state.
        snapshot: DaemonStateSnapshot,
    },
}

/// The protocol state of one connection.
#[derive(Debug)]
pub(crate) struct ClientProtocol {
    decoder: FrameDecoder,
    next_id: u64,
    buffered_pushes: VecDeque<ServerPush>,
}

/// A received message.
enum ReceivedMessage {
    Welcome(ServerWelcome),
    Response(ApiResponse),
    Pushed(ServerPush),
}

impl ClientProtocol {
    pub(crate) fn new() -> Self {
        Self { decoder: FrameDecoder::new(MAX_REPLY_FRAME), next_id: 1, buffered_pushes: VecDeque::new() }
    }

    pub(crate) fn encode_hello(name: &str) -> Result<Vec<u8>, CallError> {
        encode_line(&ClientMessage::Hello(ClientHello::for_client(name)))
    }

    /// Creates a request, and returns the id that its reply will have.
    pub(crate) fn encode_request(&mut self, command: Command) -> Result<(u64, Vec<u8>), CallError> {
        let id = self.next_id;
        self.next_id += 1;
        Ok((id, encode_line(&ClientMessage::Request(ApiRequest { id, command }))?))
    }

    /// Takes the bytes of a read; an empty slice is the end of the connection.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        if bytes.is_empty() {
            return Err(CallError::Disconnected(io::ErrorKind::UnexpectedEof.into()));
        }
        self.decoder.feed(bytes);
        Ok(())
    }

    pub(crate) fn take_welcome(&mut self) -> Result<Option<ServerWelcome>, CallError> {
        match self.next_message()? {
            Some(ReceivedMessage::Welcome(welcome)) => Ok(Some(welcome)),
            Some(ReceivedMessage::Response(_) | ReceivedMessage::Pushed(_)) => Err(CallError::InvalidReply),
            None => Ok(None),
        }
    }

    /// Returns the reply to a request, if it has arrived. Earlier events are kept; replies to abandoned requests are
    /// dropped.
    pub(crate) fn take_reply(&mut self, id: u64) -> Result<Option<CommandReply>, CallError> {
        while let Some(message) = self.next_message()? {
            match message {
                ReceivedMessage::Response(response) if response.id == id => {
                    return match response.result {
                        CommandResult::Ok(reply) => Ok(Some(reply)),
                        CommandResult::Err(error) => Err(CallError::Refused(error)),
                    };
                }
                ReceivedMessage::Response(_) | ReceivedMessage::Welcome(_) => {}
                ReceivedMessage::Pushed(_) if self.buffered_pushes.len() >= MAX_BUFFERED_PUSHES => {
                    return Err(CallError::TooManyEvents);
                }
                ReceivedMessage::Pushed(pushed) => self.buffered_pushes.push_back(pushed),
            }
        }
        Ok(None)
    }

    pub(crate) fn take_push(&mut self) -> Result<Option<ServerPush>, CallError> {
        if let Some(pushed) = self.buffered_pushes.pop_front() {
            return Ok(Some(pushed));
        }
        while let Some(message) = self.next_message()? {
            if let ReceivedMessage::Pushed(pushed) = message {
                return Ok(Some(pushed));
            }
        }
        Ok(None)
    }

    /// Returns the daemon's last message, for a caller that finds the connection closed.
    pub(crate) fn take_closing_error(&mut self) -> Option<ApiError> {
        loop {
            match self.next_message() {
                Ok(Some(_)) => {}
                Err(CallError::Closed(error)) => return Some(error),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn next_message(&mut self) -> Result<Option<ReceivedMessage>, CallError> {
        while let Some(frame) = self.decoder.next_frame().map_err(|_| CallError::InvalidReply)? {
            let message = ServerMessage::parse(frame).map_err(|_| CallError::InvalidReply)?;
            return Ok(Some(match message {
                ServerMessage::Welcome(welcome) => ReceivedMessage::Welcome(welcome),
                ServerMessage::Response(response) => ReceivedMessage::Response(response),
                ServerMessage::Event { event } => ReceivedMessage::Pushed(ServerPush::Event(event)),
                ServerMessage::FellBehind { missed, snapshot } => {
                    ReceivedMessage::Pushed(ServerPush::FellBehind { missed, snapshot })
                }
                ServerMessage::Closing { error } => return Err(CallError::Closed(error)),
                ServerMessage::Unknown => continue,
            }));
        }
        Ok(None)
    }
}

fn encode_line(message: &impl Serialize) -> Result<Vec<u8>, CallError> {
    let mut line = serde_json::to_vec(message).map_err(|_| CallError::InvalidReply)?;
    line.push(b'\n');
    Ok(line)
}
