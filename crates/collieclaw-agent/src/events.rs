//! Events: reported as they happen on standard error, for people or as JSON, and in `audit.log` for the
//! machine's administrator (C14). Events contain no secrets. The audit log contains neither arguments nor
//! results of tools.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use collieclaw_gate::AutonomyLevel;
use serde_json::{Map, Value};

use ward_terminal::escape_line;

use crate::receipts::{ReceiptReason, ReceiptStatus};

mod audit;

pub use audit::AgentAuditLog;

#[derive(Debug, Clone, Copy)]
pub enum AgentEvent<'e> {
    Startup {
        version: &'e str,
    },
    ConfigPath {
        path: &'e Path,
    },
    WorkspacePath {
        path: &'e Path,
    },
    ProviderSelected {
        provider: &'e str,
        model: &'e str,
    },
    ProviderFailed {
        provider: &'e str,
        error: &'e str,
    },
    ProviderFellBack {
        from: &'e str,
        to: &'e str,
        error: &'e str,
    },
    /// The provider failed several times in a row and is tried last for some time.
    ProviderSuspended {
        provider: &'e str,
        failures: u32,
        seconds: u64,
    },
    /// A router chose a provider. `rule` is absent if the router's default was used.
    ProviderRouted {
        router: &'e str,
        provider: &'e str,
        rule: Option<usize>,
    },
    ChannelStarted {
        channel: &'e str,
        /// True if the channel shows answers while they are being written.
        drafts: bool,
    },
    ConversationStarted {
        conversation: &'e str,
    },
    ToolRequested {
        tool: &'e str,
        conversation: &'e str,
    },
    ToolApproved {
        tool: &'e str,
        approver: &'e str,
    },
    ToolDenied {
        tool: &'e str,
        reason: &'e ReceiptReason,
        detail: &'e str,
    },
    ToolCompleted {
        tool: &'e str,
        milliseconds: u64,
    },
    ToolFailed {
        tool: &'e str,
        error: &'e str,
    },
    ReceiptWritten {
        receipt: &'e str,
        status: ReceiptStatus,
    },
    ReceiptsRecovered {
        what: &'e str,
    },
    MemoryPersisted {
        conversation: &'e str,
        turns: usize,
    },
    /// A person stopped all tools through this channel.
    EstopSet {
        channel: &'e str,
    },
    /// A person let tools run again.
    EstopCleared {
        channel: &'e str,
    },
    /// A call was stopped by the emergency stop.
    EstopTriggered {
        tool: &'e str,
    },
    /// A changed configuration took effect while the agent runs.
    ConfigReloaded {
        autonomy_before: AutonomyLevel,
        autonomy: AutonomyLevel,
        policy_hash_before: &'e str,
        policy_hash: &'e str,
        /// True if the agent may now do more without asking.
        loosened: bool,
    },
    Trouble {
        what: &'e str,
    },
    /// Additional information next to the output of a command.
    Remark {
        what: &'e str,
    },
    CommandFailed {
        code: &'e str,
        error: &'e str,
        help: Option<&'e str>,
    },
}

/// The importance of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventLevel {
    /// Useful to the operator.
    Info,
    /// A refusal or a failure that the person who talks to the agent also sees.
    Notice,
    /// A problem that is reported nowhere else.
    Warn,
    /// As a minimum level: silences every event.
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFormat {
    /// A line of text for each event.
    Human,
    /// A JSON object for each event.
    Json,
}

/// Writes events to an output and, where configured, to the audit log.
pub struct EventSink {
    form: EventFormat,
    least: EventLevel,
    out: RefCell<Box<dyn Write>>,
    audit: Option<AgentAuditLog>,
}

impl EventSink {
    /// Creates a sink that writes events of at least this level to `out`.
    #[must_use]
    pub fn new(form: EventFormat, least: EventLevel, out: Box<dyn Write>) -> Self {
        Self { form, least, out: RefCell::new(out), audit: None }
    }

    /// Also writes decisions about tools to the audit log at `path`.
    #[must_use]
    pub fn with_audit(self, path: PathBuf) -> Self {
        Self { audit: Some(AgentAuditLog::new(path)), ..self }
    }

    #[must_use]
    pub fn format(&self) -> EventFormat {
        self.form
    }

    /// Reports an event. Failures to write are ignored, because a broken log must not stop the agent.
    pub fn emit(&self, event: AgentEvent<'_>) {
        let now = jiff::Timestamp::now();
        if event.level() >= self.least {
            let line = match self.form {
                EventFormat::Human => event.human_line(),
                EventFormat::Json => event.event_json(now).to_string(),
            };
            let mut out = self.out.borrow_mut();
            // One write for the whole line, because other processes may write to the same output.
            let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
        }
        if let Some(audit) = &self.audit
            && event.is_audited()
            && let Err(error) = audit.write(&event.audit_json(now))
        {
            self.emit(AgentEvent::Trouble { what: &format!("could not write to the audit log: {error}") });
        }
    }
}

impl AgentEvent<'_> {
    fn level(&self) -> EventLevel {
        match self {
            Self::ReceiptsRecovered { .. }
            | Self::ProviderFellBack { .. }
            | Self::ProviderSuspended { .. }
            | Self::ConfigReloaded { .. }
            | Self::CommandFailed { .. }
            | Self::Trouble { .. } => EventLevel::Warn,
            Self::ProviderFailed { .. }
            | Self::ToolDenied { .. }
            | Self::ToolFailed { .. }
            | Self::EstopSet { .. }
            | Self::EstopCleared { .. }
            | Self::EstopTriggered { .. } => EventLevel::Notice,
            Self::Startup { .. }
            | Self::ConfigPath { .. }
            | Self::WorkspacePath { .. }
            | Self::ProviderSelected { .. }
            | Self::ProviderRouted { .. }
            | Self::ChannelStarted { .. }
            | Self::ConversationStarted { .. }
            | Self::ToolRequested { .. }
            | Self::ToolApproved { .. }
            | Self::ToolCompleted { .. }
            | Self::ReceiptWritten { .. }
            | Self::Remark { .. }
            | Self::MemoryPersisted { .. } => EventLevel::Info,
        }
    }

    fn is_audited(&self) -> bool {
        matches!(
            self,
            Self::ToolRequested { .. }
                | Self::ToolApproved { .. }
                | Self::ToolDenied { .. }
                | Self::ToolCompleted { .. }
                | Self::ToolFailed { .. }
                | Self::ReceiptWritten { .. }
                | Self::ReceiptsRecovered { .. }
                | Self::EstopSet { .. }
                | Self::EstopCleared { .. }
                | Self::EstopTriggered { .. }
                | Self::ConfigReloaded { .. }
        )
    }

    /// Returns the event's name and fields for the JSON form.
    fn name_and_fields(&self) -> (&'static str, Vec<(&'static str, Value)>) {
        let text = |name, text: &str| (name, Value::from(text));
        let path = |path: &Path| ("path", Value::from(path.to_string_lossy()));
        match self {
            Self::Startup { version } => ("startup", vec![text("version", version)]),
            Self::ConfigPath { path: place } => ("config_path", vec![path(place)]),
            Self::WorkspacePath { path: place } => ("workspace_path", vec![path(place)]),
            Self::ProviderSelected { provider, model } => {
                ("provider_selected", vec![text("provider", provider), text("model", model)])
            }
            Self::ProviderFailed { provider, error } => {
                ("provider_failed", vec![text("provider", provider), text("error", error)])
            }
            Self::ProviderFellBack { from, to, error } => {
                ("provider_fell_back", vec![text("from", from), text("to", to), text("error", error)])
            }
            Self::ProviderSuspended { provider, failures, seconds } => (
                "provider_suspended",
                vec![
                    text("provider", provider),
                    ("failures", (*failures).into()),
                    ("seconds", (*seconds).into()),
                ],
            ),
            Self::ProviderRouted { router, provider, rule } => {
                let rule = rule.map_or_else(|| Value::from("default"), Value::from);
                ("provider_routed", vec![text("provider", provider), text("router", router), ("rule", rule)])
            }
            Self::ChannelStarted { channel, drafts } => {
                ("channel_started", vec![text("channel", channel), ("drafts", (*drafts).into())])
            }
            Self::ConversationStarted { conversation } => {
                ("conversation_started", vec![text("conversation", conversation)])
            }
            Self::ToolRequested { tool, conversation } => {
                ("tool_requested", vec![text("tool", tool), text("conversation", conversation)])
            }
            Self::ToolApproved { tool, approver } => {
                ("tool_approved", vec![text("tool", tool), text("approver", approver)])
            }
            Self::ToolDenied { tool, reason, detail } => (
                "tool_denied",
                vec![text("tool", tool), text("reason", reason.code()), text("detail", detail)],
            ),
            Self::ToolCompleted { tool, milliseconds } => {
                ("tool_completed", vec![text("tool", tool), ("milliseconds", (*milliseconds).into())])
            }
            Self::ToolFailed { tool, error } => {
                ("tool_failed", vec![text("tool", tool), text("error", error)])
            }
            Self::ReceiptWritten { receipt, status } => {
                ("receipt_written", vec![text("receipt", receipt), text("status", status.as_str())])
            }
            Self::ReceiptsRecovered { what } => ("receipts_recovered", vec![text("what", what)]),
            Self::MemoryPersisted { conversation, turns } => {
                ("memory_persisted", vec![text("conversation", conversation), ("turns", (*turns).into())])
            }
            Self::EstopSet { channel } => ("estop_triggered", vec![text("channel", channel)]),
            Self::EstopCleared { channel } => ("estop_cleared", vec![text("channel", channel)]),
            Self::EstopTriggered { tool } => ("estop_triggered", vec![text("tool", tool)]),
            Self::ConfigReloaded { autonomy_before, autonomy, policy_hash_before, policy_hash, loosened } => {
                (
                    "config_reloaded",
                    vec![
                        text("autonomy_before", &autonomy_before.to_string()),
                        text("autonomy", &autonomy.to_string()),
                        text("policy_hash_before", policy_hash_before),
                        text("policy_hash", policy_hash),
                        ("loosened", (*loosened).into()),
                    ],
                )
            }
            Self::Trouble { what } => ("trouble", vec![text("what", what)]),
            Self::Remark { what } => ("remark", vec![text("what", what)]),
            Self::CommandFailed { code, error, help } => {
                let mut fields = vec![text("code", code), text("error", error)];
                fields.extend(help.map(|help| text("help", help)));
                ("command_failed", fields)
            }
        }
    }

    fn human_line(&self) -> String {
        let (name, fields) = self.name_and_fields();
        let mut line = match self.level() {
            EventLevel::Info => "info: ".to_owned(),
            EventLevel::Notice | EventLevel::Warn | EventLevel::Off => "warning: ".to_owned(),
        };
        // An event whose only field is a sentence is printed without its name.
        if let [("what", Value::String(sentence))] = fields.as_slice() {
            line.push_str(&escape_line(sentence));
            return line;
        }
        if let Self::ConfigReloaded { autonomy_before, autonomy, loosened, .. } = self {
            let more = if *loosened { ", which allows more than before" } else { "" };
            line.push_str(&format!(
                "the changed configuration is in force{more} (autonomy: {autonomy}, before: {autonomy_before})"
            ));
            return line;
        }
        line.push_str(&name.replace('_', " "));
        for (index, (field, value)) in fields.iter().enumerate() {
            let value = value.as_str().map_or_else(|| value.to_string(), escape_line);
            line.push_str(if index == 0 { ": " } else { ", " });
            if !name.contains(field) {
                line.push_str(&field.replace('_', " "));
                line.push(' ');
            }
            line.push_str(&value);
        }
        line
    }

    /// Returns the event for the audit log, which outlives a cleared memory: without the free text that could
    /// quote what was asked. Reasons are kept as codes.
    fn audit_json(&self, now: jiff::Timestamp) -> Value {
        let mut line = self.event_json(now);
        if let Value::Object(members) = &mut line {
            members.retain(|name, _| !matches!(name.as_str(), "detail" | "error"));
        }
        line
    }

    fn event_json(&self, now: jiff::Timestamp) -> Value {
        let (name, fields) = self.name_and_fields();
        let level = match self.level() {
            EventLevel::Info => "info",
            EventLevel::Notice | EventLevel::Warn | EventLevel::Off => "warn",
        };
        let mut object = Map::new();
        object.insert("time".to_owned(), now.to_string().into());
        object.insert("level".to_owned(), level.into());
        object.insert("event".to_owned(), name.into());
        object.extend(fields.into_iter().map(|(field, value)| (field.to_owned(), value)));
        object.into()
    }
}
