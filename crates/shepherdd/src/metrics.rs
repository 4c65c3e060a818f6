//! What can be counted, for Prometheus (S13.2).

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use shepherd_core::CoreEvent;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CommandName {
    command: &'static str,
}

/// The counters, and the registry that knows them all.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) launches_approved: Counter,
    pub(crate) launches_denied: Counter,
    sessions_started: Counter,
    sessions_ended: Counter,
    warnings: Counter,
    expiries: Counter,
    pub(crate) store_failures: Counter,
    commands: Family<CommandName, Counter>,
    pub(crate) clients: Gauge,
    pub(crate) session_running: Gauge,
    pub(crate) entries: Gauge,
}

impl Metrics {
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
        let sessions_ended = counter("sessions_ended", "Sessions that are over");
        let warnings = counter("warnings", "Warnings that were given");
        let expiries = counter("expiries", "Programs that had to be ended");
        let store_failures = counter("store_failures", "Batches that could not be written at once");
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let clients = gauge("clients", "Clients that are connected");
        let session_running = gauge("session_running", "Whether a session runs");
        let entries = gauge("entries", "Entries of the policy");
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
            session_running,
            entries,
        }
    }

    pub(crate) fn command(&self, command: &'static str) {
        self.commands.get_or_create(&CommandName { command }).inc();
    }

    pub(crate) fn count(&self, event: &CoreEvent) {
        match event {
            CoreEvent::SessionStarted { .. } => drop(self.sessions_started.inc()),
            CoreEvent::Warning { .. } => drop(self.warnings.inc()),
            CoreEvent::ExpireDue { .. } => drop(self.expiries.inc()),
            CoreEvent::SessionEnded { .. } => drop(self.sessions_ended.inc()),
            CoreEvent::DeadlineChanged { .. }
            | CoreEvent::EntryAvailabilityChanged
            | CoreEvent::PolicyReloaded { .. } => {}
        }
    }

    /// All of them, in the text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}
