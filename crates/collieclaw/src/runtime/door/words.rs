//! What the model is told of a call, and people, too. Nothing of it changes a rule; what to make of a denial is in the
//! system prompt.

use std::fmt::Write;

use collieclaw_gate::{Reason, Verdict};

use crate::tools::{End, ToolResult};

pub(super) fn result(result: &ToolResult, most: usize) -> String {
    let mut text = match &result.end {
        End::Done => String::new(),
        End::Failed(error) => format!("error: {error}\n"),
        End::Cancelled => "error: it was stopped before its end\n".to_owned(),
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

pub(super) fn error(fault: &str) -> String {
    format!("error: {fault}")
}

pub(super) fn denied(verdict: &Verdict) -> String {
    format!("error: denied: {}", reasons(verdict))
}

pub(super) fn refused() -> String {
    "error: denied: the operator said no".to_owned()
}

pub(super) fn nobody(verdict: &Verdict) -> String {
    format!(
        "error: denied: this needs the operator's approval, and nobody is there to ask ({})",
        reasons(verdict)
    )
}

pub(super) fn stopped() -> String {
    "error: all tools are stopped (emergency stop)".to_owned()
}

pub(super) fn cancelled() -> String {
    "error: the operator cancelled this".to_owned()
}

fn reasons(verdict: &Verdict) -> String {
    verdict.reasons.iter().map(Reason::detail).collect::<Vec<_>>().join("; ")
}
