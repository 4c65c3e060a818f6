//! The only module that writes answers: text for people, JSON for programs.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use collieclaw::channels::visible_lines;
use collieclaw::events::{Event, Events, Form, Level};
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;
use ward_diag::{Chain, Report, Style};

use super::arguments::OutputFormat;
use super::environment;
use super::failure::Failure;
use super::open;

#[derive(Clone, Copy)]
pub(crate) struct Screen {
    format: OutputFormat,
    log: Form,
}

/// Whether a program has its answer: there is one standard output.
static HAS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// Why an answer is not, or not all, where it should be.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

impl Screen {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format, log: environment::form_of_log() }
    }

    pub(crate) fn logs_for_programs(&self) -> bool {
        self.log == Form::Json
    }

    pub(crate) fn is_for_programs(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// One answer: `text` for people, `value` for programs.
    pub(crate) fn answer(&self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let told = match self.format {
            OutputFormat::Text => text(),
            OutputFormat::Json => serde_json::to_string_pretty(value)
                .unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string()),
        };
        HAS_ANSWERED.store(true, Ordering::Relaxed);
        if !told.is_empty() {
            self.line(&told);
        }
    }

    pub(crate) fn line(&self, text: &str) {
        // `anstream` takes the colours out where nobody would see them.
        let mut out = anstream::stdout().lock();
        note(writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()));
    }

    /// Whether all answers have arrived. A command that has failed says so anyway.
    pub(crate) fn arrived(&self) -> Result<(), Failure> {
        let lost = LOST.lock().ok().and_then(|mut lost| lost.take());
        lost.map_or(Ok(()), |error| Err(Failure::io("write the answer")(error)))
    }

    /// What a model or a tool said: as it is for a pipe, made harmless for a terminal.
    pub(crate) fn foreign(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let mut shown = if out.is_terminal() { visible_lines(text) } else { text.to_owned() };
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        out.write_all(shown.as_bytes()).and_then(|()| out.flush()).map_err(Failure::io("write the answer"))
    }

    /// Bytes for a file or a pipe, as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        note(out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// Something beside the answer, where it does not get into a pipe.
    pub(crate) fn remark(&self, text: &str) {
        match self.log {
            Form::Json => events().tell(Event::Remark { what: text.trim_end() }),
            Form::Human => drop(writeln!(anstream::stderr().lock(), "{text}")),
        }
    }

    /// A program that has no answer yet gets this as one.
    pub(crate) fn failure(&self, failure: &Failure) {
        let report = match failure {
            Failure::Config { report } | Failure::Sop { report } | Failure::Manifest { report } => {
                Some(&**report)
            }
            _ => None,
        };
        if let Some(report) = report.filter(|_| self.is_for_programs()) {
            self.answer(report, String::new);
        }
        if self.is_for_programs() && !HAS_ANSWERED.load(Ordering::Relaxed) {
            let mut error = json!({ "code": failure.word(), "message": Chain(failure).to_string() });
            if let (Some(cure), Value::Object(members)) = (failure.cure(), &mut error) {
                members.insert("help".to_owned(), cure.into());
            }
            self.answer(&json!({ "error": error }), String::new);
        }
        match self.log {
            Form::Json => log_failure(failure, report),
            Form::Human => show_failure(failure, report),
        }
    }
}

fn show_failure(failure: &Failure, report: Option<&Report>) {
    let mut err = anstream::stderr().lock();
    if let Some(report) = report {
        let style = if io::stderr().is_terminal() { Style::Coloured } else { Style::Plain };
        let _ = writeln!(err, "{}", report.render(style));
    }
    let _ = writeln!(err, "\x1b[31merror\x1b[0m: {}", visible_lines(&Chain(failure).to_string()));
    if let Some(cure) = failure.cure() {
        let _ = writeln!(err, "\x1b[1mhelp\x1b[0m: {cure}");
    }
}

fn log_failure(failure: &Failure, report: Option<&Report>) {
    let events = events();
    for what in report.map(Report::lines).unwrap_or_default() {
        events.tell(Event::Trouble { what: &what });
    }
    let error = Chain(failure).to_string();
    events.tell(Event::CommandFailed { code: failure.word(), error: &error, help: failure.cure() });
}

/// For programs that read standard error.
fn events() -> Events {
    Events::new(Form::Json, Level::Info, open::stderr())
}

/// A reader that has gone away has what it wanted.
fn note(written: io::Result<()>) {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if let Ok(mut lost) = LOST.lock() {
                lost.get_or_insert(error);
            }
        }
        _ => {}
    }
}

/// Rows whose columns are as wide as what is in them; the last one is as long as it is.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A moment for people, in UTC: seconds are enough.
pub(crate) fn moment(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `1 receipt`, `2 receipts`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
