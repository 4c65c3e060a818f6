//! The daemon's metrics for Prometheus (S13.2).

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use shepherd_core::CoreEvent;
use shepherd_ipc::ConnectionCounts;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CommandLabel {
    command: &'static str,
}

/// The counters, with their registry.
#[derive(Debug)]
pub(crate) struct DaemonMetrics {
    registry: Registry,
    pub(crate) launches_approved: Counter,
    pub(crate) launches_denied: Counter,
    sessions_started: Counter,
    sessions_ended: Counter,
    warnings: Counter,
    expiries: Counter,
    pub(crate) store_failures: Counter,
    commands: Family<CommandLabel, Counter>,
    clients: Gauge,
    subscribers: Gauge,
    connections_accepted: Counter,
    connections_turned_away: Counter,
    connections_failed: Counter,
    connections_ended: Counter,
    commands_refused: Counter,
    commands_rate_limited: Counter,
    events_left_out: Counter,
    log_lines_lost: Counter,
    pub(crate) session_running: Gauge,
    pub(crate) entries: Gauge,
}

impl DaemonMetrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("shepherd");
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let launches_approved = counter("launches_approved", "Launches that the policy allowed");
        let launches_denied = counter("launches_denied", "Launches that the policy denied");
        let sessions_started = counter("sessions_started", "Programs that were started");
        let sessions_ended = counter("sessions_ended", "Sessions that have ended");
        let warnings = counter("warnings", "Warnings that were given");
        let expiries = counter("expiries", "Programs that were stopped because their time was up");
        let store_failures = counter("store_failures", "Batches whose first write failed");
        let connections_accepted = counter("connections_accepted", "Accepted connections");
        let connections_turned_away = counter("connections_turned_away", "Refused connections");
        let connections_failed = counter(
            "connections_failed",
            "Connections that could not be accepted, because no file descriptor was left",
        );
        let connections_ended = counter(
            "connections_ended",
            "Connections that were closed because of the client's input or silence",
        );
        let commands_refused = counter("commands_refused", "Commands that the client's role does not permit");
        let commands_rate_limited = counter("commands_rate_limited", "Commands beyond the rate limit");
        let events_left_out = counter("events_left_out", "Events that slow subscribers missed");
        let log_lines_lost =
            counter("log_lines_lost", "Log lines that were dropped because standard error was not read");
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let clients = gauge("clients", "Connected clients");
        let subscribers = gauge("subscribers", "Clients that are subscribed to events");
        let session_running = gauge("session_running", "Sessions that run");
        let entries = gauge("entries", "Entries in the policy");
        let commands = Family::default();
        registry.register("commands", "Commands by name", commands.clone());
        Self {
            registry,
            launches_approved,
            launches_denied,
            sessions_started,
            sessions_ended,
            warnings,
            expiries,
            store_failures,
            commands,
            clients,
            subscribers,
            connections_accepted,
            connections_turned_away,
            connections_failed,
            connections_ended,
            commands_refused,
            commands_rate_limited,
            events_left_out,
            log_lines_lost,
            session_running,
            entries,
        }
    }

    pub(crate) fn count_command(&self, command: &'static str) {
        self.commands.get_or_create(&CommandLabel { command }).inc();
    }

    pub(crate) fn count_event(&self, event: &CoreEvent) {
        match event {
            CoreEvent::SessionStarted { .. } => drop(self.sessions_started.inc()),
            CoreEvent::Warning { .. } => drop(self.warnings.inc()),
            CoreEvent::ExpireDue { .. } => drop(self.expiries.inc()),
            CoreEvent::SessionEnded { .. } => drop(self.sessions_ended.inc()),
            CoreEvent::SessionLaunching { .. }
            | CoreEvent::DeadlineChanged { .. }
            | CoreEvent::StopRequested { .. }
            | CoreEvent::EntryAvailabilityChanged
            | CoreEvent::PolicyReloaded { .. }
            | CoreEvent::GrantChanged { .. }
            | CoreEvent::RequestChanged { .. } => {}
        }
    }

    /// Sets the metrics that other parts of the daemon count.
    pub(crate) fn update_transport_counts(&self, counts: &ConnectionCounts, log_lines_lost: u64) {
        self.clients.set(i64::try_from(counts.clients).unwrap_or(i64::MAX));
        self.subscribers.set(i64::try_from(counts.subscribers).unwrap_or(i64::MAX));
        for (counter, count) in [
            (&self.connections_accepted, counts.accepted),
            (&self.connections_turned_away, counts.rejected),
            (&self.connections_failed, counts.failed_accepts),
            (&self.connections_ended, counts.protocol_errors),
            (&self.commands_refused, counts.refused),
            (&self.commands_rate_limited, counts.rate_limited),
            (&self.events_left_out, counts.events_dropped),
            (&self.log_lines_lost, log_lines_lost),
        ] {
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }

    /// Returns all metrics in the text format.
    pub(crate) fn encode_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}
