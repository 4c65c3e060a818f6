//! What happens, told as it happens: for people on standard error, for programs as JSON, and for whoever looks after the
//! machine in `audit.log` (C14). No event holds a secret, and the audit log nothing of what was asked for or returned.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use collieclaw_gate::AutonomyLevel;
use serde_json::{Map, Value};

use ward_terminal::escape_line;

mod audit;

pub use audit::AgentAuditLog;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names of the fields say it, and `fields` writes them out")]
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
    /// A provider failed too often and is asked last for a while.
    ProviderLeftOut {
        provider: &'e str,
        failures: u32,
        seconds: u64,
    },
    /// A router chose a provider; by its default, if by no rule.
    ProviderRouted {
        router: &'e str,
        provider: &'e str,
        rule: Option<usize>,
    },
    ChannelStarted {
        channel: &'e str,
        /// Whether answers are shown while they are being written.
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
        reason: &'e str,
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
        status: &'e str,
    },
    ReceiptsRecovered {
        what: &'e str,
    },
    MemoryPersisted {
        conversation: &'e str,
        turns: usize,
    },
    /// Somebody stopped all tools, by this channel.
    EstopSet {
        channel: &'e str,
    },
    /// Somebody let them run again.
    EstopCleared {
        channel: &'e str,
    },
    /// A call met the stop.
    EstopTriggered {
        tool: &'e str,
    },
    /// Other rules hold from now on, while it runs.
    ConfigTaken {
        autonomy_before: AutonomyLevel,
        autonomy: AutonomyLevel,
        policy_hash_before: &'e str,
        policy_hash: &'e str,
        /// Whether the agent may do more on its own.
        loosened: bool,
    },
    Trouble {
        what: &'e str,
    },
    /// Something beside the answer of a command.
    Remark {
        what: &'e str,
    },
    /// A command did not do what was asked.
    CommandFailed {
        code: &'e str,
        error: &'e str,
        help: Option<&'e str>,
    },
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventLevel {
    /// What an operator wants to know.
    Info,
    /// Something was refused or went wrong; whoever talks to the agent is told of it anyway.
    Notice,
    /// Something that nobody else tells.
    Warn,
    /// More than this is never said.
    Off,
}

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFormat {
    /// A line for people.
    Human,
    /// A JSON object a line.
    Json,
}

/// Where events go.
pub struct EventSink {
    form: EventFormat,
    least: EventLevel,
    out: RefCell<Box<dyn Write>>,
    audit: Option<AgentAuditLog>,
}

impl EventSink {
    /// Told on `out`, from a level on.
    #[must_use]
    pub fn new(form: EventFormat, least: EventLevel, out: Box<dyn Write>) -> Self {
        Self { form, least, out: RefCell::new(out), audit: None }
    }

    /// Decisions about tools are also kept.
    #[must_use]
    pub fn with_audit(self, path: PathBuf) -> Self {
        Self { audit: Some(AgentAuditLog::new(path)), ..self }
    }

    /// How it is told.
    #[must_use]
    pub fn format(&self) -> EventFormat {
        self.form
    }

    /// Tells it. A log that nobody can read stops nothing.
    pub fn emit(&self, event: AgentEvent<'_>) {
        let now = jiff::Timestamp::now();
        if event.level() >= self.least {
            let line = match self.form {
                EventFormat::Human => event.human_line(),
                EventFormat::Json => event.event_json(now).to_string(),
            };
            let mut out = self.out.borrow_mut();
            // In one piece: others may write there as well.
            let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
        }
        if let Some(audit) = &self.audit
            && event.is_audited()
            && let Err(error) = audit.write(&event.audit_json(now))
        {
            self.emit(AgentEvent::Trouble { what: &format!("the audit log can't be written: {error}") });
        }
    }
}

impl AgentEvent<'_> {
    fn level(&self) -> EventLevel {
        match self {
            Self::ReceiptsRecovered { .. }
            | Self::ProviderFellBack { .. }
            | Self::ProviderLeftOut { .. }
            | Self::ConfigTaken { .. }
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
                | Self::ConfigTaken { .. }
        )
    }

    /// Its name for programs, and what it tells.
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
            Self::ProviderLeftOut { provider, failures, seconds } => (
                "provider_left_out",
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
            Self::ToolDenied { tool, reason, detail } => {
                ("tool_denied", vec![text("tool", tool), text("reason", reason), text("detail", detail)])
            }
            Self::ToolCompleted { tool, milliseconds } => {
                ("tool_completed", vec![text("tool", tool), ("milliseconds", (*milliseconds).into())])
            }
            Self::ToolFailed { tool, error } => {
                ("tool_failed", vec![text("tool", tool), text("error", error)])
            }
            Self::ReceiptWritten { receipt, status } => {
                ("receipt_written", vec![text("receipt", receipt), text("status", status)])
            }
            Self::ReceiptsRecovered { what } => ("receipts_recovered", vec![text("what", what)]),
            Self::MemoryPersisted { conversation, turns } => {
                ("memory_persisted", vec![text("conversation", conversation), ("turns", (*turns).into())])
            }
            Self::EstopSet { channel } => ("estop_triggered", vec![text("channel", channel)]),
            Self::EstopCleared { channel } => ("estop_cleared", vec![text("channel", channel)]),
            Self::EstopTriggered { tool } => ("estop_triggered", vec![text("tool", tool)]),
            Self::ConfigTaken { autonomy_before, autonomy, policy_hash_before, policy_hash, loosened } => (
                "config_taken",
                vec![
                    text("autonomy_before", &autonomy_before.to_string()),
                    text("autonomy", &autonomy.to_string()),
                    text("policy_hash_before", policy_hash_before),
                    text("policy_hash", policy_hash),
                    ("loosened", (*loosened).into()),
                ],
            ),
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
        // A whole sentence needs no name before it.
        if let [("what", Value::String(sentence))] = fields.as_slice() {
            line.push_str(&escape_line(sentence));
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

    /// What stays when the memory is cleared: that and why, not what about. Reasons have their codes.
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
