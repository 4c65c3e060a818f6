//! The operator at a terminal: sees what the agent does, and approves calls that need an approval (C7.7).

mod spinner;

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use collieclaw_providers::cancel::CancelFlag;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;

use collieclaw_agent::runtime::{
    AllowAnswer, AllowPrompt, ApprovalAnswer, ApprovalPrompt, CallOutcome, Operator, OperatorQuestion,
    OperatorReply, PermanentApproval, ProgressNotice,
};
use collieclaw_agent::tools::truncate_text;
use spinner::Spinner;
pub use spinner::SpinnerAwareWriter;
use ward_terminal::{TextTone, escape_line, escape_lines, paint};

/// The operator at a terminal. Everything is written to `out`, which is standard error or the terminal itself; standard
/// output is reserved for the answer.
pub struct TerminalOperator {
    out: Box<dyn Write>,
    cancel: CancelFlag,
    verbosity: TerminalVerbosity,
    spinner: Option<Spinner>,
}

/// The amount of progress output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalVerbosity {
    /// Only questions.
    QuestionsOnly,
    /// Tool calls as they happen, and the spinner while the model thinks.
    Everything,
}

/// The maximum length of an answer to an approval question; anything longer than `yes` counts as no.
const MAX_ANSWER_BYTES: usize = 256;

/// The maximum length of an answer to a question of the model, which is also the limit of a terminal line.
const MAX_REPLY_BYTES: usize = 4096;

/// The maximum length of arguments in progress output. Arguments in an approval question are never cut.
const MAX_ARGUMENTS_SHOWN: usize = 120;

/// The maximum length of an error in progress output. The model gets the whole error, and `policy explain` shows it.
const MAX_REASONS_SHOWN: usize = 600;

impl TerminalOperator {
    /// Creates an operator that asks on `out` and reads from standard input. If `cancel` is raised, the answer is no.
    #[must_use]
    pub fn new(out: Box<dyn Write>, cancel: CancelFlag, detail: TerminalVerbosity) -> Self {
        Self { out, cancel, verbosity: detail, spinner: None }
    }

    fn print_line(&mut self, text: &str) {
        // A failed write to the terminal is ignored: the turn continues without it.
        let _ = writeln!(self.out, "{text}");
    }

    /// Shows programs that a refused call needs, and asks about them.
    fn show_allow_question(&mut self, asked: &AllowPrompt<'_>) -> std::io::Result<()> {
        let tool = escape_line(asked.tool);
        let mut text = format!("\n{} wants to run:\n", paint(TextTone::Strong, &tool));
        text.push_str(&format_arguments(asked.arguments));
        for program in asked.programs {
            text.push_str(&format!(
                "`{}` isn't on the list of allowed commands ({}).\n",
                escape_line(&program.name),
                escape_line(&program.path.to_string_lossy())
            ));
        }
        self.out.write_all(text.as_bytes())?;
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        let names: Vec<String> =
            asked.programs.iter().map(|program| format!("`{}`", escape_line(&program.name))).collect();
        write!(self.out, "allow {} in this workspace? [y/N] ", names.join(", "))?;
        self.out.flush()
    }

    /// Shows the complete call that needs an approval. If writing fails, the question counts as not asked.
    fn show_approval(&mut self, asked: &ApprovalPrompt<'_>) -> std::io::Result<()> {
        let tool = escape_line(asked.tool);
        let mut text = format!("\n{} wants to run:\n", paint(TextTone::Strong, &tool));
        text.push_str(&format_arguments(asked.arguments));
        if let Some(preview) = asked.preview {
            text.push_str("Effect:\n");
            text.extend(preview.lines().map(preview_line));
        }
        let risk = paint(TextTone::Strong, &asked.verdict.risk.to_string());
        text.push_str(&format!("Risk: {risk}, tool: {tool}\n"));
        for reason in &asked.verdict.reasons {
            text.push_str(&format!("  - {}\n", escape_line(&reason.detail())));
        }
        self.out.write_all(text.as_bytes())?;
        // Discards input typed before the question was visible, so that it can't approve the call.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        self.out.write_all(match asked.permanent_approval {
            PermanentApproval::Offered => {
                b"Approve? [y/N/a] (a: always allow exactly this, in this workspace) "
            }
            PermanentApproval::NotOffered => b"Approve? [y/N] ".as_slice(),
        })?;
        self.out.flush()
    }

    /// Shows a question of the model. Every line starts with a bar, so that the model can't imitate our own prompts.
    fn show_question(&mut self, question: &OperatorQuestion<'_>) -> std::io::Result<()> {
        let bar = |text: &str| format!("  | {}\n", escape_lines(text).replace('\n', "\n  | "));
        let mut text =
            format!("\nThe model asks you (your answer approves nothing):\n{}", bar(question.text));
        for (number, choice) in (1..).zip(question.choices) {
            text.push_str(&bar(&format!("{number}) {choice}")));
        }
        self.out.write_all(text.as_bytes())?;
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        self.out.write_all(b"Your answer: ")?;
        self.out.flush()
    }

    /// Reads one line from standard input. Returns nothing at the end of the input or if the turn is cancelled.
    fn read_line(&self, cancel: &CancelFlag, longest: usize) -> Option<String> {
        let stdin = std::io::stdin();
        let mut line = Vec::new();
        while line.len() < longest {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(cancel, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Err(Errno::INTR) => continue,
                Err(_) => return None,
                Ok(_) => {}
            }
            let [_, cancelled] = &waiting;
            if !cancelled.revents().is_empty() {
                return None;
            }
            // Reads single bytes without a buffer, because input after the line belongs to a later reader.
            let mut byte = [0];
            match rustix::io::read(stdin.as_fd(), &mut byte) {
                Ok(1) if byte == *b"\n" => return String::from_utf8(line).ok(),
                Ok(1) => line.extend(byte),
                _ => return None,
            }
        }
        // Discards the rest of an overlong line, so that it isn't sent to the model as a message.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        None
    }
}

/// Formats a line of a diff. Every line starts with spaces, so that a file can't imitate our own prompts.
fn preview_line(line: &str) -> String {
    let shown = escape_line(line);
    let shown = match line.bytes().next() {
        Some(b'+') => paint(TextTone::Good, &shown).to_string(),
        Some(b'-') => paint(TextTone::Bad, &shown).to_string(),
        _ => shown,
    };
    format!("  {shown}\n")
}

/// Returns all arguments of a call, one per line.
fn format_arguments(arguments: &Value) -> String {
    let Value::Object(arguments) = arguments else {
        return format!("  {}\n", escape_line(&arguments.to_string()));
    };
    let line = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| escape_line(&value.to_string()), escape_lines);
        format!("  {}: {}\n", escape_line(name), value.replace('\n', "\n    "))
    };
    arguments.iter().map(line).collect()
}

impl Operator for TerminalOperator {
    fn is_available(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    fn ask_approval(&mut self, asked: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        self.spinner = None;
        if !self.is_available() || self.show_approval(asked).is_err() {
            return ApprovalAnswer::Unavailable;
        }
        let Some(answer) = self.read_line(&self.cancel, MAX_ANSWER_BYTES) else {
            self.print_line("");
            return ApprovalAnswer::No;
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => ApprovalAnswer::Yes,
            "a" | "always" if asked.permanent_approval == PermanentApproval::Offered => {
                ApprovalAnswer::Always
            }
            _ => ApprovalAnswer::No,
        }
    }

    fn ask_allow(&mut self, asked: &AllowPrompt<'_>) -> AllowAnswer {
        self.spinner = None;
        if !self.is_available() || self.show_allow_question(asked).is_err() {
            return AllowAnswer::No;
        }
        let Some(answer) = self.read_line(&self.cancel, MAX_ANSWER_BYTES) else {
            self.print_line("");
            return AllowAnswer::No;
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => AllowAnswer::Yes,
            _ => AllowAnswer::No,
        }
    }

    fn ask_question(&mut self, question: &OperatorQuestion<'_>) -> OperatorReply {
        self.spinner = None;
        if !self.is_available() || self.show_question(question).is_err() {
            return OperatorReply::Unavailable;
        }
        match self.read_line(question.cancel, MAX_REPLY_BYTES) {
            Some(reply) => OperatorReply::Text(reply),
            None => {
                self.print_line("");
                OperatorReply::NoAnswer
            }
        }
    }

    fn notify(&mut self, notice: ProgressNotice<'_>) {
        if self.verbosity == TerminalVerbosity::QuestionsOnly {
            return;
        }
        match notice {
            ProgressNotice::Thinking => self.spinner = Spinner::start(),
            ProgressNotice::ThinkingEnded => self.spinner = None,
            // Progress goes to standard error, because standard output is for the answer.
            ProgressNotice::Draft(_) | ProgressNotice::DraftDiscarded => {}
            ProgressNotice::AssistantText(text) => self.print_line(&escape_lines(text)),
            ProgressNotice::CallStarted { tool, arguments } => {
                let shown = truncate_text(&escape_line(&arguments.to_string()), MAX_ARGUMENTS_SHOWN);
                self.print_line(&paint(TextTone::Faint, &format!("→ {} {shown}", escape_line(tool))));
            }
            ProgressNotice::CallEnded { tool, call, .. } => {
                let tool = escape_line(tool);
                let line = match &call.outcome {
                    CallOutcome::Completed { run, .. } => {
                        let milliseconds = run.elapsed.as_millis();
                        let what = paint(TextTone::Faint, &format!("{tool}, {milliseconds} ms"));
                        format!("{} {what}", paint(TextTone::Good, "✓"))
                    }
                    _ => {
                        let why = escape_line(call.text.lines().next().unwrap_or_default());
                        let why = truncate_text(&why, MAX_REASONS_SHOWN);
                        let mark = paint(TextTone::Bad, "✗");
                        format!("{mark} {tool}: {}", why.strip_prefix("error: ").unwrap_or(&why))
                    }
                };
                self.print_line(&line);
            }
        }
    }
}
