//! The texts that the model and people get about a call. The system prompt says how the model should react to a denial.

use std::fmt::Write;

use collieclaw_gate::{GateReason, GateVerdict, RiskLevel};

use crate::tools::{ToolEnd, ToolResult, limit_output};

pub(super) fn result_text(result: &ToolResult, most: usize) -> String {
    let mut text = match &result.end {
        ToolEnd::Done => String::new(),
        ToolEnd::Failed(error) => format!("error: {error}\n"),
        ToolEnd::Cancelled => "error: the tool was stopped before it finished\n".to_owned(),
    };
    text.push_str(&result.output);
    if let Some(limited) = limit_output(&text, most) {
        text = limited;
    }
    if !result.metadata.is_empty() {
        let facts: Vec<String> =
            result.metadata.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        if !(text.is_empty() || text.ends_with('\n')) {
            text.push('\n');
        }
        let _ = write!(text, "[{}]", facts.join(", "));
    }
    text
}

pub(super) fn error_text(fault: &str) -> String {
    format!("error: {fault}")
}

pub(super) fn denied_text(verdict: &GateVerdict) -> String {
    format!("error: denied: {}", deciding_reason(verdict))
}

pub(super) fn refused_text() -> String {
    "error: denied: the operator said no".to_owned()
}

pub(super) fn no_operator_text() -> String {
    "error: denied: this call needs the operator's approval, and no operator is available".to_owned()
}

pub(super) fn stopped_text() -> String {
    "error: all tools are stopped (emergency stop)".to_owned()
}

pub(super) fn cancelled_text() -> String {
    "error: the operator cancelled the call".to_owned()
}

/// Returns the one reason that decided. `collieclaw policy explain` shows all reasons.
pub(super) fn deciding_reason(verdict: &GateVerdict) -> String {
    // Only the level `readonly` denies calls of low or medium risk.
    let at_readonly = verdict.risk < RiskLevel::High;
    let decides = |reason: &&GateReason| !at_readonly || !reason.is_read_only();
    match verdict.reasons.iter().find(decides) {
        None => "no rule allows the call".to_owned(),
        Some(GateReason::ListedProgram { name, .. }) if at_readonly => {
            format!("`{name}` may change something; the level `readonly` forbids this")
        }
        Some(reason) if at_readonly => {
            format!("{}; the level `readonly` forbids this", reason.detail())
        }
        Some(reason) => reason.detail(),
    }
}
