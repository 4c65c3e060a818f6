//! What all requests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::http::StatusCode;
use tokio::sync::mpsc::Sender;
use tokio::sync::{Semaphore, watch};

use super::answer::Refusal;
use super::approvals::Approvals;
use super::bucket::Bucket;
use super::chain::Chain;
use super::guard::Names;
use super::in_force::{ConfigTrace, InForce, State};
use super::metrics::Metrics;
use super::operator::Told;
use super::readers::Readers;
use super::token::Token;
use super::turns::{Going, Open};
use super::{Gateway, GatewayParts};
use crate::cancel::Cancel;
use crate::events::Event;
use crate::home::Home;
use crate::runtime::Runtime;

pub(super) struct Desk {
    pub(super) gateway: Gateway,
    in_force: InForce,
    pub(super) home: Home,
    pub(super) token: Token,
    pub(super) names: Names,
    pub(super) started: Instant,
    pub(super) approvals: Approvals,
    pub(super) chain: Arc<Chain>,
    pub(super) metrics: Metrics,
    pub(super) wrong_tokens: Bucket,
    pub(super) messages: Bucket,
    pub(super) searches: Bucket,
    pub(super) readers: Readers,
    seats: Arc<Semaphore>,
    closing: watch::Sender<bool>,
}

/// Guessing is hopeless; this keeps it from filling logs.
const WRONG_TOKENS: (u32, f64) = (20, 5.0);

/// What reads the memory or the receipts.
const SEARCHES: (u32, f64) = (100, 50.0);

/// How soon a turn may be over.
pub(super) const TURN_SOON: Duration = Duration::from_secs(5);

impl Desk {
    pub(super) fn new(gateway: &Gateway, address: SocketAddr) -> Self {
        let GatewayParts { found, trace, home, token, .. } = &*gateway.parts;
        let config = &found.config;
        let channel = &config.channels.gateway;
        let (most, a_second) = WRONG_TOKENS;
        Self {
            gateway: gateway.clone(),
            in_force: InForce::new(found.clone(), *trace),
            home: home.clone(),
            token: token.clone(),
            names: Names::of(address),
            started: Instant::now(),
            approvals: Approvals::new(channel.approval_timeout),
            chain: Arc::new(Chain::new(&config.receipts, home)),
            metrics: Metrics::default(),
            wrong_tokens: Bucket::new(most, a_second),
            messages: Bucket::new(channel.chats_per_minute, f64::from(channel.chats_per_minute) / 60.0),
            searches: Bucket::new(SEARCHES.0, SEARCHES.1),
            readers: Readers::new(),
            seats: Arc::new(Semaphore::new(channel.max_chats as usize)),
            closing: watch::Sender::new(false),
        }
    }

    /// Room for a turn, if there is some and nobody else speaks in that conversation.
    pub(super) fn begin(
        &self,
        conversation: &str,
        cancel: &Cancel,
        told: &Sender<Told>,
    ) -> Result<Going, Refusal> {
        let busy = |code, message: &str| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message).after(TURN_SOON)
        };
        let full = |_| busy("too-many-chats", "as many turns go on as may (`channels.gateway.max_chats`)");
        let going = self.gateway.turns.begin(conversation, || {
            let seat = Arc::clone(&self.seats).try_acquire_owned().map_err(full)?;
            Ok(Open { cancel: cancel.clone(), told: told.clone(), seat, config: None })
        })?;
        // Not before: a turn that begins while it closes is either cancelled with the others, or refused here.
        if *self.closing.borrow() {
            return Err(busy("closing", "the gateway is about to end"));
        }
        Ok(going)
    }

    /// What a turn begins with now. It touches the disk.
    pub(super) fn in_force(&self) -> State {
        let GatewayParts { read, tell, .. } = &*self.gateway.parts;
        let (state, taken) = self.in_force.now(&|| ConfigTrace::of(&self.home), SystemTime::now(), read);
        if let Some(taken) = taken {
            tell(taken.witness(), taken.event());
        }
        state
    }

    /// Tells it as the configuration in force says. It touches the disk.
    pub(super) fn tell(&self, event: Event<'_>) {
        (self.gateway.parts.tell)(&self.in_force().config, event);
    }

    /// All that a turn needs.
    pub(super) fn open(&self, state: &State) -> Result<Runtime, String> {
        (self.gateway.parts.open)(&state.config)
    }

    pub(super) fn turns_open(&self) -> usize {
        self.gateway.turns.count()
    }

    /// How many of them began under other rules than these.
    pub(super) fn turns_of_before(&self, state: &State) -> usize {
        self.gateway.turns.count_of_others(&state.config)
    }

    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// From now on nothing begins, and what goes on is cancelled.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
        self.gateway.turns.cancel_all();
    }

    /// Returns when no turn goes on.
    pub(super) async fn quiet(&self) {
        let all = self.gateway.parts.found.config.channels.gateway.max_chats;
        // Nobody closes the semaphore.
        let _ = self.seats.acquire_many(all).await;
    }
}
