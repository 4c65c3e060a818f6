//! Examples in a policy (`"sat 10:00 tuxmath: allow 30m"`): tests for its rules, written by parents.
//!
//! An example runs on a fresh engine: no time is used, nothing runs, and the host supports everything. A weekday means an
//! ordinary day: without exceptions and in the household's usual mode.

mod parse;
mod runner;

use std::fmt;
use std::time::Duration;

use shepherd_core::policy::{Day, MinuteOfDay, Policy};
use shepherd_util::format_duration;
use ward_diag::{ConfigFault, FaultCollector, Spanned, TomlValue};

use crate::raw::SpannedName;
use crate::read::limit_elements;

/// Limit on examples, because each one runs whenever the policy is loaded.
const MAX_EXAMPLES: usize = 500;

#[derive(Clone, Debug)]
pub(crate) struct PolicyExample {
    pub(crate) day: ExampleDay,
    pub(crate) time: MinuteOfDay,
    /// The mode given in the example, instead of the calendar's.
    pub(crate) mode: Option<SpannedName>,
    /// `None` means any profile that may use the entry.
    pub(crate) profile: Option<SpannedName>,
    pub(crate) entry: SpannedName,
    pub(crate) outcome: ExpectedOutcome,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ExampleDay {
    /// An ordinary day of the week; 0 is Monday.
    Weekday(usize),
    Date(Day),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedOutcome {
    /// Allowed for any time.
    Allow,
    /// Allowed for exactly this time; `None` means no time limit.
    AllowFor(Option<Duration>),
    /// Denied for any reason.
    Deny,
    /// Denied, with this code among the reasons.
    DenyFor(&'static str),
}

/// Reads `expect = [ … ]`.
pub(crate) fn read_examples(value: TomlValue<'_>) -> Option<Vec<Spanned<PolicyExample>>> {
    let read = |element: TomlValue<'_>| {
        let span = element.span();
        element.parse(|text| parse::parse_example(text, span)).map(|example| element.spanned(example))
    };
    let elements =
        limit_elements(value.elements()?, MAX_EXAMPLES, "examples", "keep the most important ones");
    Some(elements.into_iter().filter_map(read).collect())
}

/// Runs all examples and records each one with another result than expected.
pub(crate) fn check_examples(examples: &[Spanned<PolicyExample>], policy: &Policy, faults: &FaultCollector) {
    let mut runner = runner::ExampleRunner::new(policy, examples);
    for Spanned { value: example, span } in examples {
        let Some((result, context)) = runner.run_example(example) else {
            let message = "this example can't be run: there is no such day";
            faults.push(
                ConfigFault::new("failed-example", *span, message).help("write a date such as 2026-12-24"),
            );
            continue;
        };
        if result.matches(example.outcome) {
            continue;
        }
        let message = format!("the result is `{}`, not `{}`", result.as_example_text(), example.outcome);
        let help = format!("{context}{}. Change the rules or the example", result.explanation());
        faults.push(ConfigFault::new("failed-example", *span, message).help(help));
    }
}

impl fmt::Display for ExpectedOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => formatter.write_str("allow"),
            Self::AllowFor(None) => formatter.write_str("allow unlimited"),
            Self::AllowFor(Some(length)) => write!(formatter, "allow {}", format_duration(*length)),
            Self::Deny => formatter.write_str("deny"),
            Self::DenyFor(code) => formatter.write_str(code),
        }
    }
}
