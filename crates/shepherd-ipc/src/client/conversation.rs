//! The client's half of the protocol, without a socket: what to send, and what that which came means.

use std::collections::VecDeque;
use std::io;

use serde::Serialize;
use shepherd_api::{
    ApiError, ClientMessage, Command, DaemonStateSnapshot, Event, Hello, Outcome, Reply, Request, Response,
    ServerMessage, Welcome,
};

use crate::client::CallError;
use crate::frame::{FrameDecoder, MAX_REPLY_FRAME};

/// Events that are kept while an answer is waited for.
const MOST_KEPT: usize = 4_096;

/// What the daemon says unasked to whoever subscribed.
#[derive(Clone, Debug, PartialEq)]
pub enum Pushed {
    /// Something happened.
    Event(Event),
    /// This client was too slow; events were left out.
    FellBehind {
        /// How many.
        missed: u64,
        /// How it stands now.
        snapshot: DaemonStateSnapshot,
    },
}

/// One connection as seen from the client.
#[derive(Debug)]
pub(crate) struct Conversation {
    decoder: FrameDecoder,
    next_id: u64,
    pushed: VecDeque<Pushed>,
}

/// What came.
enum Message {
    Welcome(Welcome),
    Response(Response),
    Pushed(Pushed),
}

impl Conversation {
    pub(crate) fn new() -> Self {
        Self { decoder: FrameDecoder::new(MAX_REPLY_FRAME), next_id: 1, pushed: VecDeque::new() }
    }

    pub(crate) fn hello(name: &str) -> Result<Vec<u8>, CallError> {
        line(&ClientMessage::Hello(Hello::of(name)))
    }

    /// A request and the id that its answer will have.
    pub(crate) fn request(&mut self, command: Command) -> Result<(u64, Vec<u8>), CallError> {
        let id = self.next_id;
        self.next_id += 1;
        Ok((id, line(&ClientMessage::Request(Request { id, command }))?))
    }

    /// Takes in what was read; nothing is the end of the connection.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        if bytes.is_empty() {
            return Err(CallError::Disconnected(io::ErrorKind::UnexpectedEof.into()));
        }
        self.decoder.feed(bytes);
        Ok(())
    }

    pub(crate) fn welcome(&mut self) -> Result<Option<Welcome>, CallError> {
        match self.next_message()? {
            Some(Message::Welcome(welcome)) => Ok(Some(welcome)),
            Some(Message::Response(_) | Message::Pushed(_)) => Err(CallError::Unreadable),
            None => Ok(None),
        }
    }

    /// The answer to a request, if it is there. Events before it are kept; answers that nobody waits for any more
    /// are dropped.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Option<Reply>, CallError> {
        while let Some(message) = self.next_message()? {
            match message {
                Message::Response(response) if response.id == id => {
                    return match response.result {
                        Outcome::Ok(reply) => Ok(Some(reply)),
                        Outcome::Err(error) => Err(CallError::Refused(error)),
                    };
                }
                Message::Response(_) | Message::Welcome(_) => {}
                Message::Pushed(_) if self.pushed.len() >= MOST_KEPT => return Err(CallError::TooManyEvents),
                Message::Pushed(pushed) => self.pushed.push_back(pushed),
            }
        }
        Ok(None)
    }

    pub(crate) fn pushed(&mut self) -> Result<Option<Pushed>, CallError> {
        if let Some(pushed) = self.pushed.pop_front() {
            return Ok(Some(pushed));
        }
        while let Some(message) = self.next_message()? {
            if let Message::Pushed(pushed) = message {
                return Ok(Some(pushed));
            }
        }
        Ok(None)
    }

    /// What the daemon said last, for whoever finds that it no longer listens.
    pub(crate) fn farewell(&mut self) -> Option<ApiError> {
        loop {
            match self.next_message() {
                Ok(Some(_)) => {}
                Err(CallError::Closed(error)) => return Some(error),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn next_message(&mut self) -> Result<Option<Message>, CallError> {
        while let Some(frame) = self.decoder.next_frame().map_err(|_| CallError::Unreadable)? {
            let message = ServerMessage::parse(frame).map_err(|_| CallError::Unreadable)?;
            return Ok(Some(match message {
                ServerMessage::Welcome(welcome) => Message::Welcome(welcome),
                ServerMessage::Response(response) => Message::Response(response),
                ServerMessage::Event { event } => Message::Pushed(Pushed::Event(event)),
                ServerMessage::FellBehind { missed, snapshot } => {
                    Message::Pushed(Pushed::FellBehind { missed, snapshot })
                }
                ServerMessage::Closing { error } => return Err(CallError::Closed(error)),
                ServerMessage::Unknown => continue,
            }));
        }
        Ok(None)
    }
}

fn line(message: &impl Serialize) -> Result<Vec<u8>, CallError> {
    let mut line = serde_json::to_vec(message).map_err(|_| CallError::Unreadable)?;
    line.push(b'\n');
    Ok(line)
}
