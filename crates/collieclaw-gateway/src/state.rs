//! The state shared by all requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::http::StatusCode;
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::runtime::AgentRuntime;
use collieclaw_listen::AccessToken;
use collieclaw_providers::cancel::CancelFlag;
use tokio::sync::mpsc::Sender;
use tokio::sync::{Semaphore, watch};

use super::approvals::ApprovalQueue;
use super::blocking_io::ReadPool;
use super::guard::AllowedHosts;
use super::live_config::{ConfigFileStamp, ConfigSnapshot, LiveConfig};
use super::metrics::GatewayMetrics;
use super::rate_limit::RequestLimiter;
use super::receipt_chain::ChainMonitor;
use super::remote_operator::ChatEvent;
use super::response::ErrorResponse;
use super::turns::{OpenTurn, TurnGuard};
use super::{GatewayParts, HttpGateway};

pub(super) struct GatewayState {
    pub(super) channel: HttpGateway,
    live_config: LiveConfig,
    pub(super) home: AgentHome,
    pub(super) token: AccessToken,
    pub(super) allowed_hosts: AllowedHosts,
    pub(super) started: Instant,
    pub(super) approvals: ApprovalQueue,
    pub(super) receipt_chain: Arc<ChainMonitor>,
    pub(super) metrics: GatewayMetrics,
    pub(super) failed_auth_limiter: RequestLimiter,
    pub(super) message_limiter: RequestLimiter,
    pub(super) query_limiter: RequestLimiter,
    pub(super) read_pool: ReadPool,
    turn_slots: Arc<Semaphore>,
    shutdown: watch::Sender<bool>,
}

/// The rate limit for wrong tokens. Guessing is hopeless, but it must not fill the logs.
const FAILED_AUTH_RATE: (u32, f64) = (20, 5.0);

/// The rate limit for reads of memory and receipts.
const QUERY_RATE: (u32, f64) = (100, 50.0);

/// The delay suggested to a client while a turn is running.
pub(super) const TURN_RETRY_AFTER: Duration = Duration::from_secs(5);

impl GatewayState {
    pub(super) fn new(gateway: &HttpGateway, address: SocketAddr) -> Self {
        let GatewayParts { initial_config: found, config_stamp: trace, home, token, .. } = &*gateway.parts;
        let config = &found.config;
        let channel = &config.channels.gateway;
        let (most, a_second) = FAILED_AUTH_RATE;
        Self {
            channel: gateway.clone(),
            live_config: LiveConfig::new(found.clone(), *trace),
            home: home.clone(),
            token: token.clone(),
            allowed_hosts: AllowedHosts::for_address(address),
            started: Instant::now(),
            approvals: ApprovalQueue::new(channel.approval_timeout),
            receipt_chain: Arc::new(ChainMonitor::new(&config.receipts, home)),
            metrics: GatewayMetrics::default(),
            failed_auth_limiter: RequestLimiter::new(most, a_second),
            message_limiter: RequestLimiter::new(
                channel.chats_per_minute,
                f64::from(channel.chats_per_minute) / 60.0,
            ),
            query_limiter: RequestLimiter::new(QUERY_RATE.0, QUERY_RATE.1),
            read_pool: ReadPool::new(),
            turn_slots: Arc::new(Semaphore::new(channel.max_chats as usize)),
            shutdown: watch::Sender::new(false),
        }
    }

    /// Reserves a turn, unless all are taken or the conversation already has one.
    pub(super) fn begin_turn(
        &self,
        conversation: &str,
        cancel: &CancelFlag,
        events: &Sender<ChatEvent>,
    ) -> Result<TurnGuard, ErrorResponse> {
        let busy = |code, message: &str| {
            ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
                .with_retry_after(TURN_RETRY_AFTER)
        };
        let full = |_| busy("too-many-chats", "too many turns are running (`channels.gateway.max_chats`)");
        let guard = self.channel.turns.begin(conversation, || {
            let slot = Arc::clone(&self.turn_slots).try_acquire_owned().map_err(full)?;
            Ok(OpenTurn { cancel: cancel.clone(), events: events.clone(), slot, config: None })
        })?;
        // Checked after the reservation: a turn that starts during shutdown is either cancelled with the others or
        // refused here.
        if *self.shutdown.borrow() {
            return Err(busy("closing", "the gateway is shutting down"));
        }
        Ok(guard)
    }

    /// Returns the configuration for a new turn. Reads the disk.
    pub(super) fn current_config(&self) -> ConfigSnapshot {
        let GatewayParts { load_config: read, report_event: tell, .. } = &*self.channel.parts;
        let (state, taken) =
            self.live_config.current(&|| ConfigFileStamp::read(&self.home), SystemTime::now(), read);
        if let Some(taken) = taken {
            tell(taken.audited_config(), taken.event());
        }
        state
    }

    /// Reports an event as the configuration in force demands. Reads the disk.
    pub(super) fn report_event(&self, event: AgentEvent<'_>) {
        (self.channel.parts.report_event)(&self.current_config().config, event);
    }

    /// Opens the runtime of a turn.
    pub(super) fn open_runtime(&self, state: &ConfigSnapshot) -> Result<AgentRuntime, String> {
        (self.channel.parts.open_runtime)(&state.config)
    }

    pub(super) fn open_turn_count(&self) -> usize {
        self.channel.turns.count()
    }

    /// Returns the number of running turns that started under other rules than these.
    pub(super) fn outdated_turn_count(&self, state: &ConfigSnapshot) -> usize {
        self.channel.turns.count_with_other_config(&state.config)
    }

    pub(super) fn subscribe_shutdown(&self) -> watch::Receiver<bool> {
        self.shutdown.subscribe()
    }

    /// Refuses new turns and cancels the running ones.
    pub(super) fn shut_down(&self) {
        self.shutdown.send_replace(true);
        self.channel.turns.cancel_all();
    }

    /// Waits until no turn is running.
    pub(super) async fn wait_for_turns(&self) {
        let all = self.channel.parts.initial_config.config.channels.gateway.max_chats;
        // The semaphore is never closed, so acquiring can't fail.
        let _ = self.turn_slots.acquire_many(all).await;
    }
}
