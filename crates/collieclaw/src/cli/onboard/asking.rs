//! The questions of `onboard`, and whether an answer can be used.

use std::io::{BufRead, Write};
use std::path::Path;

use collieclaw::channels::visible_lines;
use collieclaw::config::{Choices, template};
use collieclaw_gate::Autonomy;
use ward_diag::{Fault, Report};

use crate::cli::environment::Environment;
use crate::cli::failure::Failure;
use crate::cli::open;
use crate::cli::screen::Screen;

/// What is answered in the person's own words.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Workspace,
    BaseUrl,
    Model,
    ApiKeyEnv,
}

impl Key {
    /// As it stands in the file.
    fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace_dir",
            Self::BaseUrl => "base_url",
            Self::Model => "model",
            Self::ApiKeyEnv => "api_key_env",
        }
    }
}

pub(super) fn written(choices: &mut Choices, key: Key) -> &mut String {
    match key {
        Key::Workspace => &mut choices.workspace_dir,
        Key::BaseUrl => &mut choices.base_url,
        Key::Model => &mut choices.model,
        Key::ApiKeyEnv => &mut choices.api_key_env,
    }
}

pub(super) struct Asking<'a> {
    pub(super) asked: bool,
    pub(super) screen: &'a Screen,
    pub(super) environment: &'a Environment,
}

impl Asking<'_> {
    pub(super) fn may_write(&self, autonomy: Autonomy) -> Result<bool, Failure> {
        let question = match autonomy {
            // It never would.
            Autonomy::ReadOnly => return Ok(false),
            Autonomy::Supervised => "May the model ask to write files? You are asked before each",
            Autonomy::Full => "May the model write files in that folder? At this level you are not asked",
        };
        Ok(self.asked && self.choice(&None, question, &["yes", "no"], "no")? == "yes")
    }

    /// Asks until the answer can be part of a configuration: nobody has to answer everything again for one slip.
    pub(super) fn field(
        &self,
        given: &Option<String>,
        question: &str,
        choices: &mut Choices,
        key: Key,
    ) -> Result<(), Failure> {
        let usual = written(choices, key).clone();
        loop {
            *written(choices, key) = self.text(given, question, &usual)?;
            match self.tried(choices, key) {
                Err(faults) if self.asked && given.is_none() => self.screen.remark(&faults),
                _ => return Ok(()),
            }
        }
    }

    /// What would be wrong with this key in a configuration of these choices, in sentences.
    pub(super) fn tried(&self, choices: &Choices, key: Key) -> Result<(), String> {
        let text = template(choices);
        let path = self.environment.home.config();
        let is_at_key = |report: &Report, fault: &Fault| {
            let line = report.source().position(fault.span().start).line;
            text.lines().nth(line - 1).is_some_and(|line| line.starts_with(key.name()))
        };
        let told = |fault: &Fault| match fault.cure() {
            Some(cure) => format!("{}: {cure}", fault.message()),
            None => fault.message().to_owned(),
        };
        let faults = match (open::read(&path, text.as_bytes(), self.environment), key) {
            (Err(Failure::Config { report }), _) => {
                report.faults().iter().filter(|fault| is_at_key(&report, fault)).map(told).collect()
            }
            (Ok(setup), Key::Workspace) => is_no_folder(&setup.config.workspace_dir).into_iter().collect(),
            _ => Vec::new(),
        };
        if faults.is_empty() { Ok(()) } else { Err(visible_lines(&faults.join("\n"))) }
    }

    fn text(&self, given: &Option<String>, question: &str, usual: &str) -> Result<String, Failure> {
        match given {
            Some(given) => Ok(given.clone()),
            None if !self.asked => Ok(usual.to_owned()),
            None => {
                let _ = write!(anstream::stderr().lock(), "{question}\n  [{usual}] ");
                let mut line = String::new();
                let read =
                    std::io::stdin().lock().read_line(&mut line).map_err(Failure::io("read the answer"))?;
                if read == 0 {
                    return Err(Failure::Wrong {
                        what: "there was no answer".to_owned(),
                        cure: "nothing was changed",
                    });
                }
                let answer = line.trim();
                Ok(if answer.is_empty() { usual.to_owned() } else { answer.to_owned() })
            }
        }
    }

    /// One of the words, or the beginning of one.
    pub(super) fn choice(
        &self,
        given: &Option<String>,
        question: &str,
        words: &[&str],
        usual: &str,
    ) -> Result<String, Failure> {
        loop {
            let answer = self.text(given, question, usual)?.to_lowercase();
            let mut meant = words.iter().filter(|word| word.starts_with(&answer));
            match (meant.next(), meant.next()) {
                (Some(word), None) => return Ok((*word).to_owned()),
                _ => self.screen.remark(&format!("it can be {}", words.join(" or "))),
            }
        }
    }
}

fn is_no_folder(path: &Path) -> Option<String> {
    (path.exists() && !path.is_dir()).then(|| format!("{} is no folder: choose another", path.display()))
}
