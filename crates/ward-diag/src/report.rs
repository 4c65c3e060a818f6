//! The report of all faults in a source, for people and for programs.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::render::{self, ReportStyle};
use crate::span_set::SpanSet;
use crate::{ConfigFault, FaultCollector, SourcePosition, SourceText};

/// The error for a document with faults: the faults in source order, and the source to quote from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultReport {
    // Boxed to keep a `Result` with a report small.
    source: Box<SourceText>,
    faults: Vec<ConfigFault>,
    more: usize,
    hidden: SpanSet,
    incomplete: bool,
}

impl FaultReport {
    pub(crate) fn new(source: SourceText, faults: FaultCollector) -> Self {
        let incomplete = faults.is_incomplete();
        let (mut faults, more, hidden) = faults.into_parts();
        for fault in &mut faults {
            fault.span = source.clamp(fault.span);
            for related in &mut fault.related {
                related.span = source.clamp(related.span);
            }
        }
        Self { source: Box::new(source), faults, more, hidden, incomplete }
    }

    /// Returns the first faults in source order, at most [`MAX_FAULTS`](crate::MAX_FAULTS).
    #[must_use]
    pub fn faults(&self) -> &[ConfigFault] {
        &self.faults
    }

    /// Returns the number of faults that are not listed.
    #[must_use]
    pub fn omitted_count(&self) -> usize {
        self.more
    }

    /// Returns true if syntax errors kept parts of the file from being read, so that these parts may have more faults.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns the source that was read.
    #[must_use]
    pub fn source(&self) -> &SourceText {
        &self.source
    }

    /// Returns one line per fault with its place, message and help text, for a log.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |fault: &ConfigFault| {
            let SourcePosition { line, column } = self.source.position(fault.span.start);
            let help = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            format!("{}:{line}:{column}: {}{help}", self.source.name(), fault.message)
        };
        self.faults.iter().map(line).collect()
    }

    /// Renders the report for people. The caller decides about colours, since it knows where the report is
    /// printed.
    #[must_use]
    pub fn render(&self, style: ReportStyle) -> String {
        render::render(&self.source, &self.faults, self.more, &self.hidden, style)
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(ReportStyle::Plain))
    }
}

impl std::error::Error for FaultReport {}

/// Serialises the report as `{ "faults": [...], "more": 0 }`, without the source text.
impl Serialize for FaultReport {
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
    end: SourcePosition,
    code: &'static str,
    fault: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'r str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<RelatedPlaceRecord<'r>>,
}

#[derive(serde::Serialize)]
struct RelatedPlaceRecord<'r> {
    line: usize,
    column: usize,
    end: SourcePosition,
    note: &'r str,
}

impl FaultReport {
    fn record<'r>(&'r self, fault: &'r ConfigFault) -> FaultRecord<'r> {
        let SourcePosition { line, column } = self.source.position(fault.span.start);
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
                    let SourcePosition { line, column } = self.source.position(related.span.start);
                    RelatedPlaceRecord {
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
