//! What all requests share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::http::StatusCode;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::answer::Refusal;
use super::approvals::Approvals;
use super::bucket::Bucket;
use super::chain::Chain;
use super::guard::Names;
use super::metrics::Metrics;
use super::readers::Readers;
use super::token::Token;
use super::{Gateway, Open};
use crate::cancel::{Cancel, Why};
use crate::config::Config;
use crate::home::Home;

pub(super) struct Desk {
    pub(super) config: Config,
    config_modified: Option<SystemTime>,
    pub(super) home: Home,
    pub(super) token: Token,
    pub(super) open: Open,
    pub(super) names: Names,
    /// What the model may be told of, for `/tools`.
    pub(super) tools: Value,
    pub(super) started: Instant,
    pub(super) approvals: Approvals,
    pub(super) chain: Chain,
    pub(super) metrics: Metrics,
    pub(super) wrong_tokens: Bucket,
    pub(super) messages: Bucket,
    pub(super) searches: Bucket,
    pub(super) readers: Readers,
    /// The turns that go on, by their conversation.
    turns: Mutex<BTreeMap<String, Cancel>>,
    seats: Arc<Semaphore>,
    closing: watch::Sender<bool>,
}

/// Guessing is hopeless; this keeps it from filling logs.
const WRONG_TOKENS: (u32, f64) = (20, 5.0);

/// What reads the memory or the receipts.
const SEARCHES: (u32, f64) = (100, 50.0);

/// How soon a turn may be over.
const TURN_SOON: Duration = Duration::from_secs(5);

impl Desk {
    pub(super) fn new(gateway: Gateway, address: SocketAddr, tools: Value) -> Self {
        let Gateway { config, config_modified, home, token, open } = gateway;
        let channel = &config.channels.gateway;
        let (most, a_second) = WRONG_TOKENS;
        Self {
            names: Names::of(address),
            tools,
            started: Instant::now(),
            approvals: Approvals::new(channel.approval_timeout),
            chain: Chain::new(&config.receipts, &home),
            metrics: Metrics::default(),
            wrong_tokens: Bucket::new(most, a_second),
            messages: Bucket::new(channel.chats_per_minute, f64::from(channel.chats_per_minute) / 60.0),
            searches: Bucket::new(SEARCHES.0, SEARCHES.1),
            readers: Readers::new(),
            turns: Mutex::default(),
            seats: Arc::new(Semaphore::new(channel.max_chats as usize)),
            closing: watch::Sender::new(false),
            config,
            config_modified,
            home,
            token,
            open,
        }
    }

    /// Room for a turn, if there is some and nobody else speaks in that conversation.
    pub(super) fn seat(self: &Arc<Self>, conversation: &str, cancel: &Cancel) -> Result<Seat, Refusal> {
        let busy = |code, message: &str| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message).after(TURN_SOON)
        };
        let mut turns = self.turns();
        if *self.closing.borrow() {
            return Err(busy("closing", "the gateway is about to end"));
        }
        if turns.contains_key(conversation) {
            let message = "a turn of this conversation goes on";
            return Err(Refusal::new(StatusCode::CONFLICT, "turn-open", message).after(TURN_SOON));
        }
        let full = |_| busy("too-many-chats", "as many turns go on as may (`channels.gateway.max_chats`)");
        let permit = Arc::clone(&self.seats).try_acquire_owned().map_err(full)?;
        turns.insert(conversation.to_owned(), cancel.clone());
        Ok(Seat { desk: Arc::clone(self), conversation: conversation.to_owned(), _permit: permit })
    }

    /// Whether the file says something else, perhaps, than what is in force. It touches the disk.
    pub(super) fn config_changed(&self) -> bool {
        Gateway::config_modified(&self.home) != self.config_modified
    }

    pub(super) fn turns_open(&self) -> usize {
        self.turns().len()
    }

    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// From now on nothing begins, and what goes on is cancelled.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
        let going_on: Vec<Cancel> = self.turns().values().cloned().collect();
        for turn in going_on {
            turn.raise(Why::Operator);
        }
    }

    /// Returns when no turn goes on.
    pub(super) async fn quiet(&self) {
        let all = self.config.channels.gateway.max_chats;
        // Nobody closes the semaphore.
        let _ = self.seats.acquire_many(all).await;
    }

    fn turns(&self) -> MutexGuard<'_, BTreeMap<String, Cancel>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn's right to go on.
pub(super) struct Seat {
    desk: Arc<Desk>,
    conversation: String,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.desk.turns().remove(&self.conversation);
    }
}
