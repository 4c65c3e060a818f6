//! The person at the terminal: is told what goes on, and asked before anything that needs a yes (C7.7).

mod spinner;

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;

use super::visible::{visible, visible_lines};
use crate::cancel::Cancel;
use crate::runtime::{Answer, Asked, Fate, Lasting, Notice, Operator, Posed, Reply};
use crate::tools::shortened;
pub use spinner::BesideSpinner;
use spinner::Spinner;

/// Nobody is there: what needs a yes is denied.
pub struct Nobody;

impl Operator for Nobody {
    fn is_there(&self) -> bool {
        false
    }

    fn question(&mut self, _: &Posed<'_>) -> Reply {
        Reply::Nobody
    }

    fn ask(&mut self, _: &Asked<'_>) -> Answer {
        Answer::Nobody
    }
}

/// A person at a terminal. Everything is written to `out`, which is standard error or the terminal itself; standard
/// output is for the answer.
pub struct Terminal {
    out: Box<dyn Write>,
    cancel: Cancel,
    detail: Detail,
    spinner: Option<Spinner>,
}

/// How much is told of what goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Questions alone.
    Questions,
    /// Tool calls as they happen, and that the model thinks.
    Everything,
}

/// Longer answers than `yes` are no yes.
const LONGEST_ANSWER: usize = 256;

/// Of an answer to a question of the model; a terminal's line holds no more.
const LONGEST_REPLY: usize = 4096;

/// Of the arguments of a call that is only told of; what is asked about is shown whole.
const ARGUMENTS_SHOWN: usize = 120;

/// Of why a call did not work; all of it is in the answer to the model, and `policy explain` tells it.
const REASONS_SHOWN: usize = 600;

impl Terminal {
    /// Asks on `out` and reads from standard input. A raised `cancel` is a no.
    #[must_use]
    pub fn new(out: Box<dyn Write>, cancel: Cancel, detail: Detail) -> Self {
        Self { out, cancel, detail, spinner: None }
    }

    fn say(&mut self, text: &str) {
        // Whoever can't be told isn't.
        let _ = writeln!(self.out, "{text}");
    }

    /// Everything that is asked about. What could not be shown is no question.
    fn show(&mut self, asked: &Asked<'_>) -> std::io::Result<()> {
        let tool = visible(asked.tool);
        let mut text = format!("\n\x1b[1m{tool}\x1b[0m wants to run:\n");
        match asked.arguments {
            Value::Object(arguments) => {
                for (name, value) in arguments {
                    let value = value.as_str().map_or_else(|| visible(&value.to_string()), visible_lines);
                    text.push_str(&format!("  {}: {}\n", visible(name), value.replace('\n', "\n    ")));
                }
            }
            other => text.push_str(&format!("  {}\n", visible(&other.to_string()))),
        }
        text.push_str(&format!("Risk: \x1b[1m{}\x1b[0m, tool: {tool}\n", asked.verdict.risk));
        for reason in &asked.verdict.reasons {
            text.push_str(&format!("  - {}\n", visible(&reason.detail())));
        }
        self.out.write_all(text.as_bytes())?;
        // What was typed before the question was shown is no answer to it.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        self.out.write_all(match asked.lasting {
            Lasting::Offered => b"Approve? [y/N/a] (a: always exactly this, in this workspace) ",
            Lasting::NotOffered => b"Approve? [y/N] ".as_slice(),
        })?;
        self.out.flush()
    }

    /// Every line of a model's question begins with a bar, so that none passes for one of ours.
    fn pose(&mut self, question: &Posed<'_>) -> std::io::Result<()> {
        let bar = |text: &str| format!("  | {}\n", visible_lines(text).replace('\n', "\n  | "));
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

    /// One line from standard input, or nothing at its end or when cancelled.
    fn line(&self, cancel: &Cancel, longest: usize) -> Option<String> {
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
            // Byte by byte, past the standard buffer: what follows the line is somebody else's.
            let mut byte = [0];
            match rustix::io::read(stdin.as_fd(), &mut byte) {
                Ok(1) if byte == *b"\n" => return String::from_utf8(line).ok(),
                Ok(1) => line.extend(byte),
                _ => return None,
            }
        }
        // The rest of so long a line must not become a message to the model.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        None
    }
}

impl Operator for Terminal {
    fn is_there(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    fn ask(&mut self, asked: &Asked<'_>) -> Answer {
        self.spinner = None;
        if !self.is_there() || self.show(asked).is_err() {
            return Answer::Nobody;
        }
        let Some(answer) = self.line(&self.cancel, LONGEST_ANSWER) else {
            self.say("");
            return Answer::No;
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "a" | "always" if asked.lasting == Lasting::Offered => Answer::Always,
            _ => Answer::No,
        }
    }

    fn question(&mut self, question: &Posed<'_>) -> Reply {
        self.spinner = None;
        if !self.is_there() || self.pose(question).is_err() {
            return Reply::Nobody;
        }
        match self.line(question.cancel, LONGEST_REPLY) {
            Some(reply) => Reply::Said(reply),
            None => {
                self.say("");
                Reply::Nothing
            }
        }
    }

    fn notice(&mut self, notice: Notice<'_>) {
        if self.detail == Detail::Questions {
            return;
        }
        match notice {
            Notice::Thinking => self.spinner = Spinner::start(),
            Notice::Thought => self.spinner = None,
            // Standard output is for the answer, and this may not become one.
            Notice::Draft(_) | Notice::DraftVoid => {}
            Notice::Says(text) => self.say(&visible_lines(text)),
            Notice::Calls { tool, arguments } => {
                let shown = shortened(&visible(&arguments.to_string()), ARGUMENTS_SHOWN);
                self.say(&format!("\x1b[2m→ {} {shown}\x1b[0m", visible(tool)));
            }
            Notice::Called { tool, outcome, .. } => {
                let took = outcome.took.as_millis();
                let tool = visible(tool);
                let line = match outcome.fate {
                    Fate::Done => format!("\x1b[32m✓\x1b[0m \x1b[2m{tool}, {took} ms\x1b[0m"),
                    _ => {
                        let why = visible(outcome.text.lines().next().unwrap_or_default());
                        let why = shortened(&why, REASONS_SHOWN);
                        format!("\x1b[31m✗\x1b[0m {tool}: {}", why.strip_prefix("error: ").unwrap_or(&why))
                    }
                };
                self.say(&line);
            }
        }
    }
}
