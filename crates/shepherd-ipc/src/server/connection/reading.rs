//! What a client sends: lines, then messages, then commands that it may give.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use shepherd_api::{
    API_VERSION, ApiError, ClientMessage, Command, ErrorCode, Hello, Millis, Pin, Reply, Request, Role,
    ServerMessage, Unreadable, Welcome,
};
use shepherd_util::{Chain, TokenBucket};
use tokio::net::unix::ReadHalf;
use tokio::time::{Instant, timeout_at};

use super::super::Incoming;
use super::super::client::Client;
use super::super::shared::{Rights, Shared, info, now};
use super::super::wire::{line, not_welcome, took_too_long};
use super::Kind;
use crate::frame::{FrameDecoder, MAX_ADMIN_FRAME, MAX_FRAME};
use crate::pin::PinError;

/// Bytes that are read at once. They are on the stack only while they are looked at, so that an idle connection
/// holds none.
const CHUNK: usize = 16 * 1024;

/// Why nothing more is read.
pub(super) enum Ending {
    /// The client has nothing more to say.
    HungUp,
    /// The client did what costs it its connection.
    Fault(ApiError),
    /// The connection is gone, or the daemon has ended it.
    Over,
}

pub(super) struct Reading<'a> {
    shared: &'a Arc<Shared>,
    client: &'a Arc<Client>,
    decoder: FrameDecoder,
    looks: TokenBucket,
    surveys: TokenBucket,
    acts: TokenBucket,
    greeted: bool,
    /// When it connected, or last sent something whole.
    quiet_since: Instant,
    /// When the line began of which only a part is here.
    line_since: Option<Instant>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, client: &'a Arc<Client>) -> Self {
        Self {
            shared,
            client,
            decoder: FrameDecoder::new(MAX_FRAME),
            looks: TokenBucket::full(shared.limits.of_client.looks),
            surveys: TokenBucket::full(shared.limits.of_client.surveys),
            acts: TokenBucket::full(shared.limits.of_client.acts),
            greeted: false,
            quiet_since: Instant::now(),
            line_since: None,
        }
    }

    pub(super) async fn run(mut self, reader: &ReadHalf<'_>) -> Ending {
        loop {
            if let Err(ending) = self.wait(reader).await {
                return ending;
            }
            match read(reader, &mut self.decoder) {
                Ok(0) => return Ending::HungUp,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => return Ending::Over,
            }
            // How long a line may be depends on rules that may have changed since the last one.
            let taken = match self.rights() {
                Ok(_) => self.take_lines().await,
                Err(ending) => Err(ending),
            };
            if let Err(ending) = taken {
                return ending;
            }
        }
    }

    /// Waits for more, as long as this client may take.
    async fn wait(&self, reader: &ReadHalf<'_>) -> Result<(), Ending> {
        let readable = match self.patience() {
            None => reader.readable().await,
            Some((since, patience, what)) => match timeout_at(since + patience, reader.readable()).await {
                Ok(readable) => readable,
                // Who subscribed in the meantime may be quiet for ever.
                Err(_) if self.patience().is_none() => return Ok(()),
                Err(_) => return Err(Ending::Fault(took_too_long(what, patience))),
            },
        };
        readable.map_err(|_| Ending::Over)
    }

    /// Since when we wait for what, and how long at most.
    fn patience(&self) -> Option<(Instant, Duration, &'static str)> {
        let limits = &self.shared.limits;
        if !self.greeted {
            return Some((self.quiet_since, limits.hello_patience, "No hello came"));
        }
        if let Some(since) = self.line_since {
            return Some((since, limits.line_patience, "A line was begun and not ended"));
        }
        if self.client.outbox.is_subscribed() {
            return None;
        }
        Some((self.quiet_since, limits.idle_patience, "Nothing was said"))
    }

    async fn take_lines(&mut self) -> Result<(), Ending> {
        let mut took_one = false;
        loop {
            let message = match self.decoder.next_frame() {
                Ok(Some(frame)) => ClientMessage::parse(frame),
                Ok(None) => break,
                Err(error) => {
                    let sentence =
                        format!("A line has more than the {} bytes that it may have.", error.limit);
                    return Err(Ending::Fault(ApiError::new(ErrorCode::MessageTooLarge, sentence)));
                }
            };
            took_one = true;
            self.take_message(message).await?;
        }
        if took_one && self.greeted {
            self.quiet_since = Instant::now();
            self.line_since = None;
        }
        if self.decoder.is_within_a_line() {
            self.line_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    async fn take_message(&mut self, message: Result<ClientMessage, Unreadable>) -> Result<(), Ending> {
        let fault = |code, sentence: &str| Err(Ending::Fault(ApiError::new(code, sentence)));
        match message {
            Ok(ClientMessage::Hello(hello)) if !self.greeted => self.greet(&hello),
            Ok(ClientMessage::Hello(_)) => fault(ErrorCode::HandshakeExpected, "Hello was said before."),
            Err(Unreadable::Line(error)) => Err(Ending::Fault(error)),
            Ok(ClientMessage::Request(_)) | Err(Unreadable::Request { .. }) if !self.greeted => {
                fault(ErrorCode::HandshakeExpected, "Say hello first.")
            }
            Err(Unreadable::Request { id, error }) => {
                self.take_request().await?;
                if self.has_rate(id, Kind::Act).await {
                    self.answer(id, Err(error)).await;
                }
                Ok(())
            }
            Ok(ClientMessage::Request(Request { id, command })) => {
                self.take_request().await?;
                self.command(id, command).await
            }
        }
    }

    fn greet(&mut self, hello: &Hello) -> Result<(), Ending> {
        let speaks = hello.agree().map_err(Ending::Fault)?;
        self.client.introduce(&hello.client);
        let role = self.rights()?.role;
        let welcome = Welcome {
            api_version: API_VERSION,
            speaks,
            daemon_version: self.shared.daemon_version.clone(),
            client_id: self.client.client_id.clone(),
            role,
        };
        let line = line(&ServerMessage::Welcome(welcome)).ok_or(Ending::Over)?;
        self.client.outbox.say(line);
        self.greeted = true;
        Ok(())
    }

    async fn command(&mut self, id: u64, command: Command) -> Result<(), Ending> {
        let kind = Kind::of(&command);
        if !self.has_rate(id, kind).await {
            return Ok(());
        }
        let rights = self.rights()?;
        let needs = command.needs();
        if rights.role < needs {
            self.refuse(id, &command, &rights).await;
            return Ok(());
        }
        if needs == Role::Admin {
            // The PIN lasts as long as it is used.
            self.shared.prolong(self.client);
        }
        match command {
            Command::Authenticate { pin } => self.authenticate(id, pin, rights).await,
            command => {
                let client = info(self.client, rights);
                let request = Incoming::Request { client, request_id: id, command };
                self.shared.lanes.of(kind).send(request).await.map_err(|_| Ending::Over)
            }
        }
    }

    async fn authenticate(&mut self, id: u64, pin: Pin, rights: Rights) -> Result<(), Ending> {
        if rights.role_with_pin < Role::Admin {
            let sentence = "This user is no administrator, with or without the PIN.";
            self.report("authenticate", sentence).await;
            self.answer(id, Err(ApiError::new(ErrorCode::NotPermitted, sentence))).await;
            return Ok(());
        }
        let peer = self.client.peer;
        let generation = self.shared.pin_generation();
        let error = match self.shared.pin.verify(peer.uid, pin).await {
            Ok(()) => {
                let role = rights.role_with_pin;
                let told = Incoming::Authenticated { client: info(self.client, Rights { role, ..rights }) };
                self.shared.lanes.quick.send(told).await.map_err(|_| Ending::Over)?;
                self.shared.elevate(self.client, generation);
                self.answer(id, Ok(Reply::Authenticated { role })).await;
                return Ok(());
            }
            Err(PinError::TooSoon(wait)) => {
                ApiError::rate_limited("There were too many wrong PINs. Wait a while.", millis(wait))
            }
            Err(PinError::Wrong) => ApiError::new(ErrorCode::WrongPin, "This is not the PIN."),
            Err(PinError::NotSet) => ApiError::new(ErrorCode::WrongPin, "No PIN is set."),
            Err(error @ (PinError::File { .. } | PinError::Locked | PinError::Hash(_))) => {
                let sentence = format!("The PIN could not be checked: {}.", Chain(&error));
                ApiError::new(ErrorCode::StoreUnavailable, sentence)
            }
        };
        self.report("authenticate", &error.sentence).await;
        self.answer(id, Err(error)).await;
        Ok(())
    }

    async fn refuse(&self, id: u64, command: &Command, rights: &Rights) {
        let code = info(self.client, rights.clone()).refusal_for_want_of(command.needs());
        let cure = if code == ErrorCode::PinRequired { " Give the PIN first." } else { "" };
        let sentence = format!(
            "`{}` needs the role {}; this client's is {}.{cure}",
            command.name(),
            name(command.needs()),
            name(rights.role)
        );
        self.report(command.name(), &sentence).await;
        self.answer(id, Err(ApiError::new(code, sentence))).await;
    }

    /// Has a refusal recorded.
    async fn report(&self, command: &'static str, reason: &str) {
        if let Some(refusal) = self.shared.refusal(self.client.peer, self.client.name(), command, reason) {
            let _ = self.shared.lanes.quick.send(refusal).await;
        }
    }

    /// Whether the client may give one more command. If not, it is told so, and its next line is read when it may.
    async fn has_rate(&mut self, id: u64, kind: Kind) -> bool {
        let own = match kind {
            Kind::Look => &mut self.looks,
            Kind::Survey => &mut self.surveys,
            Kind::Act => &mut self.acts,
        };
        let taken = own.take(now()).and_then(|()| self.shared.take_user_rate(self.client.peer.uid, kind));
        let Err(wait) = taken else { return true };
        self.shared.counters.rate_limited.add(1);
        let error = ApiError::rate_limited("Too many commands in too short a time.", millis(wait.0));
        self.answer(id, Err(error)).await;
        tokio::time::sleep(wait.0).await;
        false
    }

    /// An answer that the loop need not be asked for.
    async fn answer(&self, id: u64, result: Result<Reply, ApiError>) {
        self.shared.answer(self.client, id, result);
        // Nothing else may have made us wait, and others want their turn.
        tokio::task::yield_now().await;
    }

    async fn take_request(&self) -> Result<(), Ending> {
        let is_open = self.client.outbox.take_request(self.shared.limits.in_flight).await;
        if is_open { Ok(()) } else { Err(Ending::Over) }
    }

    /// What the client may do now, and with that how long its lines may be.
    fn rights(&mut self) -> Result<Rights, Ending> {
        let Some(rights) = self.shared.rights(self.client) else {
            return Err(Ending::Fault(not_welcome()));
        };
        self.decoder.set_limit(if rights.role == Role::Admin { MAX_ADMIN_FRAME } else { MAX_FRAME });
        Ok(rights)
    }
}

fn read(reader: &ReadHalf<'_>, decoder: &mut FrameDecoder) -> io::Result<usize> {
    let mut chunk = [0; CHUNK];
    let length = reader.try_read(&mut chunk)?;
    decoder.feed(chunk.get(..length).unwrap_or_default());
    Ok(length)
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Observer => "observer",
        Role::Shell => "shell",
        Role::Admin => "admin",
    }
}

fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
