//! All faults of one source, for people and for programs.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::places::Places;
use crate::render::{self, Style};
use crate::{Fault, Faults, Position, Source};

/// Why a document was refused: every fault, in source order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    // Boxed, so that a `Result` with a report in it stays small.
    source: Box<Source>,
    faults: Vec<Fault>,
    more: usize,
    hidden: Places,
}

impl Report {
    pub(crate) fn new(source: Source, faults: Faults) -> Self {
        let (mut faults, more, hidden) = faults.into_parts();
        for fault in &mut faults {
            fault.span = source.clamp(fault.span);
            for related in &mut fault.related {
                related.span = source.clamp(related.span);
            }
        }
        Self { source: Box::new(source), faults, more, hidden }
    }

    /// The faults that were kept.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many more there are.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    /// The text that was read.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Each fault on a line of its own: place, fault and cure, for a log.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |fault: &Fault| {
            let Position { line, column } = self.source.position(fault.span.start);
            let cure = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            format!("{}:{line}:{column}: {}{cure}", self.source.name(), fault.message)
        };
        self.faults.iter().map(line).collect()
    }

    /// The report for people. Whether it may have colours, the caller knows.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        render::render(&self.source, &self.faults, self.more, &self.hidden, style)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(Style::Plain))
    }
}

impl std::error::Error for Report {}

/// `{ "faults": [...], "more": 0 }`; the text itself is not part of it.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let faults: Vec<FaultRecord<'_>> = self.faults.iter().map(|fault| self.record(fault)).collect();
        let mut report = serializer.serialize_struct("Report", 2)?;
        report.serialize_field("faults", &faults)?;
        report.serialize_field("more", &self.more)?;
        report.end()
    }
}

#[derive(serde::Serialize)]
struct FaultRecord<'r> {
    file: &'r str,
    line: usize,
    column: usize,
    end: Position,
    code: &'static str,
    fault: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'r str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<RelatedRecord<'r>>,
}

#[derive(serde::Serialize)]
struct RelatedRecord<'r> {
    line: usize,
    column: usize,
    end: Position,
    note: &'r str,
}

impl Report {
    fn record<'r>(&'r self, fault: &'r Fault) -> FaultRecord<'r> {
        let Position { line, column } = self.source.position(fault.span.start);
        FaultRecord {
            file: self.source.name(),
            line,
            column,
            end: self.source.position(fault.span.end),
            code: fault.code,
            fault: &fault.message,
            help: fault.help.as_deref(),
            related: fault
                .related
                .iter()
                .map(|related| {
                    let Position { line, column } = self.source.position(related.span.start);
                    RelatedRecord {
                        line,
                        column,
                        end: self.source.position(related.span.end),
                        note: &related.note,
                    }
                })
                .collect(),
        }
    }
}
