//! Reads what a client sends: lines, then messages, then commands that its role permits.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{
    API_VERSION, AdminPin, ApiError, ApiRequest, ClientHello, ClientMessage, ClientRole, Command,
    CommandReply, ErrorCode, MessageParseError, Millis, ServerMessage, ServerWelcome,
};
use shepherd_util::{ErrorChain, TokenBucket};
use tokio::net::unix::ReadHalf;
use tokio::time::{Instant, timeout_at};

use super::super::IncomingEvent;
use super::super::connected_client::ConnectedClient;
use super::super::server_state::{ClientPermissions, ServerState, client_info, now};
use super::super::wire::{encode_line, not_permitted_error, timeout_error};
use super::CommandCost;
use crate::frame::{FrameDecoder, MAX_ADMIN_FRAME, MAX_FRAME};
use crate::pin::PinStoreError;

/// The number of bytes per read. The buffer is on the stack only during a read, so that an idle connection holds no
/// memory.
const CHUNK: usize = 16 * 1024;

/// The reason for which nothing more is read.
pub(super) enum ReadEnd {
    /// The client has closed its side.
    ClientClosed,
    /// The client broke a rule that costs it the connection.
    ProtocolError(ApiError),
    /// The connection is lost, or the daemon has closed it.
    ConnectionClosed,
}

pub(super) struct RequestReader<'a> {
    shared: &'a Arc<ServerState>,
    client: &'a Arc<ConnectedClient>,
    decoder: FrameDecoder,
    cheap_tokens: TokenBucket,
    listing_tokens: TokenBucket,
    expensive_tokens: TokenBucket,
    hello_received: bool,
    /// The time of the connection, or of the last complete message.
    idle_since: Instant,
    /// The start of the line that is still incomplete.
    partial_line_since: Option<Instant>,
}

impl<'a> RequestReader<'a> {
    pub(super) fn new(shared: &'a Arc<ServerState>, client: &'a Arc<ConnectedClient>) -> Self {
        Self {
            shared,
            client,
            decoder: FrameDecoder::new(MAX_FRAME),
            cheap_tokens: TokenBucket::full(shared.limits.rates_per_client.cheap),
            listing_tokens: TokenBucket::full(shared.limits.rates_per_client.listings),
            expensive_tokens: TokenBucket::full(shared.limits.rates_per_client.expensive),
            hello_received: false,
            idle_since: Instant::now(),
            partial_line_since: None,
        }
    }

    pub(super) async fn run(mut self, reader: &ReadHalf<'_>) -> ReadEnd {
        loop {
            if let Err(ending) = self.wait_readable(reader).await {
                return ending;
            }
            match read_chunk(reader, &mut self.decoder) {
                Ok(0) => return ReadEnd::ClientClosed,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => return ReadEnd::ConnectionClosed,
            }
            // The largest length of a line depends on rules that may have changed since the last line.
            let taken = match self.refresh_permissions() {
                Ok(_) => self.handle_lines().await,
                Err(ending) => Err(ending),
            };
            if let Err(ending) = taken {
                return ending;
            }
        }
    }

    /// Waits for more bytes, for as long as this client may take.
    async fn wait_readable(&self, reader: &ReadHalf<'_>) -> Result<(), ReadEnd> {
        let readable = match self.read_deadline() {
            None => reader.readable().await,
            Some((since, patience, what)) => match timeout_at(since + patience, reader.readable()).await {
                Ok(readable) => readable,
                // A client that has subscribed meanwhile need not send anything.
                Err(_) if self.read_deadline().is_none() => return Ok(()),
                Err(_) => return Err(ReadEnd::ProtocolError(timeout_error(what, patience))),
            },
        };
        readable.map_err(|_| ReadEnd::ConnectionClosed)
    }

    /// Returns the start and the length of the current wait.
    fn read_deadline(&self) -> Option<(Instant, Duration, &'static str)> {
        let limits = &self.shared.limits;
        if !self.hello_received {
            return Some((self.idle_since, limits.hello_timeout, "No hello was received"));
        }
        if let Some(since) = self.partial_line_since {
            return Some((since, limits.line_timeout, "A line was not completed"));
        }
        if self.client.outbox.is_subscribed() {
            return None;
        }
        Some((self.idle_since, limits.idle_timeout, "Nothing was received"))
    }

    async fn handle_lines(&mut self) -> Result<(), ReadEnd> {
        let mut took_one = false;
        loop {
            let message = match self.decoder.next_frame() {
                Ok(Some(frame)) => ClientMessage::parse(frame),
                Ok(None) => break,
                Err(error) => {
                    let sentence = format!("A line is longer than {} bytes.", error.limit);
                    return Err(ReadEnd::ProtocolError(ApiError::new(ErrorCode::MessageTooLarge, sentence)));
                }
            };
            took_one = true;
            self.handle_message(message).await?;
        }
        if took_one && self.hello_received {
            self.idle_since = Instant::now();
            self.partial_line_since = None;
        }
        if self.decoder.has_partial_line() {
            self.partial_line_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    async fn handle_message(
        &mut self,
        message: Result<ClientMessage, MessageParseError>,
    ) -> Result<(), ReadEnd> {
        let fault = |code, sentence: &str| Err(ReadEnd::ProtocolError(ApiError::new(code, sentence)));
        match message {
            Ok(ClientMessage::Hello(hello)) if !self.hello_received => self.handle_hello(&hello),
            Ok(ClientMessage::Hello(_)) => {
                fault(ErrorCode::HandshakeExpected, "The handshake is already complete.")
            }
            Err(MessageParseError::InvalidLine(error)) => Err(ReadEnd::ProtocolError(error)),
            Ok(ClientMessage::Request(_)) | Err(MessageParseError::InvalidRequest { .. })
                if !self.hello_received =>
            {
                fault(ErrorCode::HandshakeExpected, "The first message must be a hello.")
            }
            Err(MessageParseError::InvalidRequest { id, error }) => {
                self.reserve_request().await?;
                if self.take_rate_token(id, CommandCost::Expensive).await {
                    self.send_reply(id, Err(error)).await;
                }
                Ok(())
            }
            Ok(ClientMessage::Request(ApiRequest { id, command })) => {
                self.reserve_request().await?;
                self.handle_command(id, command).await
            }
        }
    }

    fn handle_hello(&mut self, hello: &ClientHello) -> Result<(), ReadEnd> {
        let speaks = hello.negotiate_version().map_err(ReadEnd::ProtocolError)?;
        self.client.set_name(&hello.client);
        let permissions = self.refresh_permissions()?;
        let welcome = ServerWelcome {
            api_version: API_VERSION,
            speaks,
            daemon_version: self.shared.daemon_version.clone(),
            client_id: self.client.client_id.clone(),
            role: permissions.role,
            role_with_pin: Some(permissions.role_with_pin),
        };
        let line = encode_line(&ServerMessage::Welcome(welcome)).ok_or(ReadEnd::ConnectionClosed)?;
        self.client.outbox.push_line(line);
        self.hello_received = true;
        Ok(())
    }

    async fn handle_command(&mut self, id: u64, command: Command) -> Result<(), ReadEnd> {
        let kind = CommandCost::of_command(&command);
        if !self.take_rate_token(id, kind).await {
            return Ok(());
        }
        let rights = self.refresh_permissions()?;
        let needs = command.required_role();
        if rights.role < needs {
            self.refuse_command(id, &command, &rights).await;
            return Ok(());
        }
        if needs == ClientRole::Admin {
            // The PIN stays valid for as long as it is used.
            self.shared.extend_elevation(self.client);
        }
        match command {
            Command::Authenticate { pin } => self.authenticate(id, pin, rights).await,
            command => {
                let client = client_info(self.client, rights);
                let request = IncomingEvent::Request { client, request_id: id, command };
                self.shared.lanes.sender_for(kind).send(request).await.map_err(|_| ReadEnd::ConnectionClosed)
            }
        }
    }

    async fn authenticate(
        &mut self,
        id: u64,
        pin: AdminPin,
        rights: ClientPermissions,
    ) -> Result<(), ReadEnd> {
        if rights.role_with_pin < ClientRole::Admin {
            let sentence = "This user can't be an administrator, even with the PIN.";
            self.record_refusal("authenticate", sentence).await;
            self.send_reply(id, Err(ApiError::new(ErrorCode::NotPermitted, sentence))).await;
            return Ok(());
        }
        let peer = self.client.peer;
        let generation = self.shared.pin_generation();
        let error = match self.shared.pin.verify(peer.uid, pin).await {
            Ok(()) => {
                let role = rights.role_with_pin;
                let event = IncomingEvent::Authenticated {
                    client: client_info(self.client, ClientPermissions { role, ..rights }),
                };
                self.shared.lanes.quick.send(event).await.map_err(|_| ReadEnd::ConnectionClosed)?;
                self.shared.elevate(self.client, generation);
                self.send_reply(id, Ok(CommandReply::Authenticated { role })).await;
                return Ok(());
            }
            Err(PinStoreError::Throttled(wait)) => {
                ApiError::rate_limited("Too many incorrect PINs. Wait and try again.", millis(wait))
            }
            Err(PinStoreError::Incorrect) => ApiError::new(ErrorCode::WrongPin, "Incorrect PIN."),
            Err(PinStoreError::NotSet) => ApiError::new(ErrorCode::WrongPin, "No PIN is set."),
            Err(
                error @ (PinStoreError::File { .. }
                | PinStoreError::Locked
                | PinStoreError::Hash(_)
                | PinStoreError::Thread(_)),
            ) => {
                let sentence = format!("The PIN could not be checked: {}.", ErrorChain(&error));
                ApiError::new(ErrorCode::StoreUnavailable, sentence)
            }
        };
        self.record_refusal("authenticate", &error.sentence).await;
        self.send_reply(id, Err(error)).await;
        Ok(())
    }

    async fn refuse_command(&self, id: u64, command: &Command, rights: &ClientPermissions) {
        let code = client_info(self.client, rights.clone()).refusal_code(command.required_role());
        let cure = if code == ErrorCode::PinRequired { " Give the PIN first." } else { "" };
        let refused = match command.required_role() {
            ClientRole::Admin => "only an administrator may do this",
            ClientRole::Shell | ClientRole::Observer => "you may only watch",
        };
        let sentence = format!("Permission denied: {refused}.{cure}");
        self.record_refusal(command.name(), &sentence).await;
        self.send_reply(id, Err(ApiError::new(code, sentence))).await;
    }

    /// Reports a refusal for the audit log.
    async fn record_refusal(&self, command: &'static str, reason: &str) {
        if let Some(refusal) =
            self.shared.record_refusal(self.client.peer, self.client.name(), command, reason)
        {
            let _ = self.shared.lanes.quick.send(refusal).await;
        }
    }

    /// Returns whether the client may give one more command. Otherwise answers with an error and reads the next line
    /// later.
    async fn take_rate_token(&mut self, id: u64, kind: CommandCost) -> bool {
        let own = match kind {
            CommandCost::Cheap => &mut self.cheap_tokens,
            CommandCost::Listing => &mut self.listing_tokens,
            CommandCost::Expensive => &mut self.expensive_tokens,
        };
        let taken = own.take(now()).and_then(|()| self.shared.take_user_token(self.client.peer.uid, kind));
        let Err(wait) = taken else { return true };
        self.shared.counters.rate_limited.add(1);
        let error = ApiError::rate_limited("Too many commands in too short a time.", millis(wait.0));
        self.send_reply(id, Err(error)).await;
        tokio::time::sleep(wait.0).await;
        false
    }

    /// Sends an answer that doesn't need the loop.
    async fn send_reply(&self, id: u64, result: Result<CommandReply, ApiError>) {
        self.shared.send_reply(self.client, id, result);
        // This path may not have awaited anything yet, and other clients need their turn.
        tokio::task::yield_now().await;
    }

    async fn reserve_request(&self) -> Result<(), ReadEnd> {
        let is_open = self.client.outbox.reserve_request(self.shared.limits.in_flight).await;
        if is_open { Ok(()) } else { Err(ReadEnd::ConnectionClosed) }
    }

    /// Returns the current role of the client, which also limits the length of its lines.
    fn refresh_permissions(&mut self) -> Result<ClientPermissions, ReadEnd> {
        let Some(rights) = self.shared.permissions(self.client) else {
            return Err(ReadEnd::ProtocolError(not_permitted_error()));
        };
        self.decoder.set_limit(if rights.role == ClientRole::Admin { MAX_ADMIN_FRAME } else { MAX_FRAME });
        Ok(rights)
    }
}

fn read_chunk(reader: &ReadHalf<'_>, decoder: &mut FrameDecoder) -> io::Result<usize> {
    let mut chunk = [0; CHUNK];
    let length = reader.try_read(&mut chunk)?;
    decoder.feed(chunk.get(..length).unwrap_or_default());
    Ok(length)
}

fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
