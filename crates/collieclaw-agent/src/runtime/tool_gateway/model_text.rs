//! The texts that the model and people get about a call. The system prompt says how the model should take a denial.

use std::fmt::Write;

use collieclaw_gate::{GateReason, GateVerdict};

use crate::tools::{ToolEnd, ToolResult};

pub(super) fn result_text(result: &ToolResult, most: usize) -> String {
    let mut text = match &result.end {
        ToolEnd::Done => String::new(),
        ToolEnd::Failed(error) => format!("error: {error}\n"),
        ToolEnd::Cancelled => "error: the tool was stopped before it finished\n".to_owned(),
    };
    text.push_str(&result.output);
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        let _ = write!(text, "\n[cut after {most} bytes]");
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

/// Gives the one reason that decided. The receipt and `collieclaw policy explain` have all of them.
pub(super) fn denied_text(verdict: &GateVerdict) -> String {
    let reason = verdict.reasons.first().map_or_else(|| "no rule allows it".to_owned(), GateReason::detail);
    format!("error: denied: {reason}")
}

pub(super) fn refused_text() -> String {
    "error: denied: the operator said no".to_owned()
}

pub(super) fn nobody_text(verdict: &GateVerdict) -> String {
    format!(
        "error: denied: this needs the operator's approval, and nobody is there to ask ({})",
        join_reasons(verdict)
    )
}

pub(super) fn stopped_text() -> String {
    "error: all tools are stopped (emergency stop)".to_owned()
}

pub(super) fn cancelled_text() -> String {
    "error: the operator cancelled the call".to_owned()
}

fn join_reasons(verdict: &GateVerdict) -> String {
    verdict.reasons.iter().map(GateReason::detail).collect::<Vec<_>>().join("; ")
}
