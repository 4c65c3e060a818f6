//! Examples in a policy: tests for its rules, written by parents (`"sat 10:00 tuxmath: allow 30m"`).
//!
//! An example is asked of a fresh engine: nobody has used anything, nothing runs, the host can do everything.
//! A day of the week stands for an ordinary one: without an exception, in the household's usual mode.

mod parse;
mod runner;

use std::fmt;
use std::time::Duration;

use shepherd_core::policy::{Day, MinuteOfDay, Policy};
use shepherd_util::format_duration;
use ward_diag::{ConfigFault, FaultCollector, Spanned, TomlValue};

use crate::raw::SpannedName;
use crate::read::limit_elements;

/// Each is asked of an engine, whenever the policy is loaded.
const MAX_EXAMPLES: usize = 500;

/// One example.
#[derive(Clone, Debug)]
pub(crate) struct PolicyExample {
    pub(crate) day: ExampleDay,
    pub(crate) time: MinuteOfDay,
    /// A mode other than the calendar's.
    pub(crate) mode: Option<SpannedName>,
    /// `None` is whoever may use the entry.
    pub(crate) profile: Option<SpannedName>,
    pub(crate) entry: SpannedName,
    pub(crate) outcome: ExpectedOutcome,
}

/// On which day.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExampleDay {
    /// An ordinary day of the week; 0 is Monday.
    Weekday(usize),
    /// This very day.
    Date(Day),
}

/// What should come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedOutcome {
    /// Yes, for however long.
    Allow,
    /// Yes, for exactly so long; `None` is without end.
    AllowFor(Option<Duration>),
    /// No, for whatever reason.
    Deny,
    /// No, and this is among the reasons.
    DenyFor(&'static str),
}

/// Reads `expect = [ … ]`.
pub(crate) fn read_examples(value: TomlValue<'_>) -> Option<Vec<Spanned<PolicyExample>>> {
    let read = |element: TomlValue<'_>| {
        let span = element.span();
        element.parse(|text| parse::parse_example(text, span)).map(|example| element.spanned(example))
    };
    let elements = limit_elements(value.elements()?, MAX_EXAMPLES, "examples", "keep those that matter most");
    Some(elements.into_iter().filter_map(read).collect())
}

/// Asks them all and records each that comes out otherwise.
pub(crate) fn check_examples(examples: &[Spanned<PolicyExample>], policy: &Policy, faults: &FaultCollector) {
    let mut examiner = runner::ExampleRunner::new(policy, examples);
    for Spanned { value: example, span } in examples {
        let Some((answer, asked)) = examiner.run_example(example) else {
            let message = "this example can't be asked: there is no such day";
            faults.push(
                ConfigFault::new("failed-example", *span, message).help("write a date, such as 2026-12-24"),
            );
            continue;
        };
        if answer.matches(example.outcome) {
            continue;
        }
        let message =
            format!("this comes out as `{}`, not as `{}`", answer.as_example_text(), example.outcome);
        let help = format!("{asked}{}. Change the rules or the example", answer.explanation());
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
