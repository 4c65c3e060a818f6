//! The reason codes in receipts.

use collieclaw_gate::GateVerdict;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

use collieclaw_providers::cancel::CancelReason;

/// The reason why a call or a step of a procedure ended the way its receipt says.
///
/// Each reason has a code that never changes its meaning. A code that this version doesn't know is kept as it is, so
/// that the log of a newer version can still be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptReason {
    /// No rule has judged the call yet.
    NotJudged,
    /// The arguments don't fit the tool, or there is no such tool.
    BadArguments,
    /// The operator said no.
    OperatorRefused,
    /// The call needs an approval, and no operator was available.
    NoOperator,
    /// The emergency stop was active.
    Estop,
    /// The operator cancelled the turn.
    Cancelled,
    /// The tool ran and reported an error.
    ToolFailed,
    /// The intent to run the call could not be written.
    NoIntent,
    /// The machine had no descriptor or thread left for the call.
    OutOfResources,
    /// The call was rejected because too many others waited.
    TooManyCalls,
    /// The process died before it could write the receipt.
    Interrupted,
    /// The intent of an interrupted call could not be read.
    Unknown,
    /// The model answered in a step of a procedure.
    Answered,
    /// The model of a step gave no answer, and none of its calls was attempted.
    NoAnswer,
    /// A call that the model of a step asked for was denied.
    CallDenied,
    /// The model of a step made calls, and the step failed afterwards.
    StepFailed,
    /// A step needs the output of another step that has no output.
    MissingInput,
    /// The operator took a decision about a run.
    Decided,
    /// A code of the gate, or of a newer version.
    #[serde(untagged)]
    Other(String),
}

impl ReceiptReason {
    /// Returns the code that receipts, events and JSON output have for this reason.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::NotJudged => "not-judged",
            Self::BadArguments => "bad-arguments",
            Self::OperatorRefused => "operator-refused",
            Self::NoOperator => "no-operator",
            Self::Estop => "estop",
            Self::Cancelled => "cancelled",
            Self::ToolFailed => "tool-failed",
            Self::NoIntent => "no-intent",
            Self::OutOfResources => "out-of-resources",
            Self::TooManyCalls => "too-many-calls",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
            Self::Answered => "answered",
            Self::NoAnswer => "no-answer",
            Self::CallDenied => "call-denied",
            Self::StepFailed => "step-failed",
            Self::MissingInput => "missing-input",
            Self::Decided => "decided",
            Self::Other(code) => code,
        }
    }
}

impl From<&str> for ReceiptReason {
    fn from(code: &str) -> Self {
        let known = Self::deserialize(StrDeserializer::<serde::de::value::Error>::new(code));
        known.unwrap_or_else(|_| Self::Other(code.to_owned()))
    }
}

impl From<&GateVerdict> for ReceiptReason {
    /// Takes the first reason of the gate, which is the strictest.
    fn from(verdict: &GateVerdict) -> Self {
        verdict.reasons.first().map_or(Self::NotJudged, |first| Self::from(first.code()))
    }
}

impl From<CancelReason> for ReceiptReason {
    fn from(stopped_by: CancelReason) -> Self {
        match stopped_by {
            CancelReason::Estop => Self::Estop,
            CancelReason::Operator => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes as they stand in the logs of people. Never change one.
    const CODES: [(ReceiptReason, &str); 18] = [
        (ReceiptReason::TooManyCalls, "too-many-calls"),
        (ReceiptReason::NotJudged, "not-judged"),
        (ReceiptReason::BadArguments, "bad-arguments"),
        (ReceiptReason::OperatorRefused, "operator-refused"),
        (ReceiptReason::NoOperator, "no-operator"),
        (ReceiptReason::Estop, "estop"),
        (ReceiptReason::Cancelled, "cancelled"),
        (ReceiptReason::ToolFailed, "tool-failed"),
        (ReceiptReason::NoIntent, "no-intent"),
        (ReceiptReason::OutOfResources, "out-of-resources"),
        (ReceiptReason::Interrupted, "interrupted"),
        (ReceiptReason::Unknown, "unknown"),
        (ReceiptReason::Answered, "answered"),
        (ReceiptReason::NoAnswer, "no-answer"),
        (ReceiptReason::CallDenied, "call-denied"),
        (ReceiptReason::StepFailed, "step-failed"),
        (ReceiptReason::MissingInput, "missing-input"),
        (ReceiptReason::Decided, "decided"),
    ];

    #[test]
    fn every_reason_has_the_code_that_receipts_have_always_had() {
        for (reason, code) in &CODES {
            assert_eq!(reason.code(), *code);
            assert_eq!(&ReceiptReason::from(*code), reason);
            assert_eq!(serde_json::to_string(reason).unwrap(), format!("\"{code}\""));
            assert_eq!(&serde_json::from_str::<ReceiptReason>(&format!("\"{code}\"")).unwrap(), reason);
        }
    }

    #[test]
    fn a_code_of_the_gate_or_of_a_newer_version_is_kept_as_it_is() {
        for code in ["writes-inside", "forbidden-path", "a-code-of-next-year", ""] {
            let reason = ReceiptReason::from(code);
            assert_eq!((reason.code(), &reason), (code, &ReceiptReason::Other(code.into())));
            assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{code}\""));
        }
    }

    #[test]
    fn what_stopped_a_call_is_the_reason_in_its_receipt() {
        assert_eq!(ReceiptReason::from(CancelReason::Estop), ReceiptReason::Estop);
        assert_eq!(ReceiptReason::from(CancelReason::Operator), ReceiptReason::Cancelled);
    }
}
