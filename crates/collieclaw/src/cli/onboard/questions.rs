//! The questions of `onboard`, and the validation of the answers.

use std::io::{BufRead, Write};
use std::path::Path;

use collieclaw_agent::config::{SetupChoices, config_template};
use collieclaw_gate::AutonomyLevel;
use ward_diag::{ConfigFault, FaultReport};
use ward_terminal::escape_lines;

use crate::cli::environment::CliEnvironment;
use crate::cli::failure::CommandFailure;
use crate::cli::output::OutputPrinter;
use crate::cli::wiring;

/// A setting that is answered with free text.
#[derive(Clone, Copy)]
pub(super) enum SetupKey {
    Workspace,
    BaseUrl,
    Model,
    ApiKeyEnv,
}

impl SetupKey {
    /// Returns the key in the configuration file.
    fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace_dir",
            Self::BaseUrl => "base_url",
            Self::Model => "model",
            Self::ApiKeyEnv => "api_key_env",
        }
    }
}

pub(super) fn choice_mut(choices: &mut SetupChoices, key: SetupKey) -> &mut String {
    match key {
        SetupKey::Workspace => &mut choices.workspace_dir,
        SetupKey::BaseUrl => &mut choices.base_url,
        SetupKey::Model => &mut choices.model,
        SetupKey::ApiKeyEnv => &mut choices.api_key_env,
    }
}

pub(super) struct SetupQuestions<'a> {
    pub(super) interactive: bool,
    pub(super) screen: &'a OutputPrinter,
    pub(super) environment: &'a CliEnvironment,
}

impl SetupQuestions<'_> {
    pub(super) fn ask_may_write(&self, autonomy: AutonomyLevel) -> Result<bool, CommandFailure> {
        let question = match autonomy {
            // At `readonly` the model could never write.
            AutonomyLevel::ReadOnly => return Ok(false),
            AutonomyLevel::Supervised => "May the model write files? You are asked before each write",
            AutonomyLevel::Full => {
                "May the model write files in that folder? At the level `full` you are not asked"
            }
        };
        Ok(self.interactive && self.ask_choice(&None, question, &["yes", "no"], "no")? == "yes")
    }

    /// Asks until the answer is valid in a configuration, so that a typo doesn't restart the whole set-up.
    pub(super) fn ask_text(
        &self,
        given: &Option<String>,
        question: &str,
        choices: &mut SetupChoices,
        key: SetupKey,
    ) -> Result<(), CommandFailure> {
        let usual = choice_mut(choices, key).clone();
        loop {
            *choice_mut(choices, key) = self.read_answer(given, question, &usual)?;
            match self.validate_key(choices, key) {
                Err(faults) if self.interactive && given.is_none() => self.screen.print_remark(&faults),
                _ => return Ok(()),
            }
        }
    }

    /// Returns the errors that a configuration with these choices would have at this key.
    pub(super) fn validate_key(&self, choices: &SetupChoices, key: SetupKey) -> Result<(), String> {
        let text = config_template(choices);
        let path = self.environment.home.config();
        let is_at_key = |report: &FaultReport, fault: &ConfigFault| {
            let line = report.source().position(fault.span().start).line;
            text.lines().nth(line - 1).is_some_and(|line| line.starts_with(key.name()))
        };
        let describe = |fault: &ConfigFault| match fault.help_text() {
            Some(cure) => format!("{}: {cure}", fault.message()),
            None => fault.message().to_owned(),
        };
        let faults = match (wiring::parse_setup(&path, text.as_bytes(), self.environment), key) {
            (Err(CommandFailure::Config { report }), _) => {
                report.faults().iter().filter(|fault| is_at_key(&report, fault)).map(describe).collect()
            }
            (Ok(setup), SetupKey::Workspace) => {
                not_a_folder_error(&setup.config.workspace_dir).into_iter().collect()
            }
            _ => Vec::new(),
        };
        if faults.is_empty() { Ok(()) } else { Err(escape_lines(&faults.join("\n"))) }
    }

    fn read_answer(
        &self,
        given: &Option<String>,
        question: &str,
        usual: &str,
    ) -> Result<String, CommandFailure> {
        match given {
            Some(given) => Ok(given.clone()),
            None if !self.interactive => Ok(usual.to_owned()),
            None => {
                let _ = write!(anstream::stderr().lock(), "{question}\n  [{usual}] ");
                let mut line = String::new();
                let read = std::io::stdin()
                    .lock()
                    .read_line(&mut line)
                    .map_err(CommandFailure::io("read the answer"))?;
                if read == 0 {
                    return Err(CommandFailure::InvalidInput {
                        what: "the input ended before all questions were answered".to_owned(),
                        cure: "nothing was changed",
                    });
                }
                let answer = line.trim();
                Ok(if answer.is_empty() { usual.to_owned() } else { answer.to_owned() })
            }
        }
    }

    /// Asks for one of `words`; a unique prefix is enough.
    pub(super) fn ask_choice(
        &self,
        given: &Option<String>,
        question: &str,
        words: &[&str],
        usual: &str,
    ) -> Result<String, CommandFailure> {
        loop {
            let answer = self.read_answer(given, question, usual)?.to_lowercase();
            let mut meant = words.iter().filter(|word| word.starts_with(&answer));
            match (meant.next(), meant.next()) {
                (Some(word), None) => return Ok((*word).to_owned()),
                _ => self.screen.print_remark(&format!("choose {}", words.join(" or "))),
            }
        }
    }
}

fn not_a_folder_error(path: &Path) -> Option<String> {
    (path.exists() && !path.is_dir()).then(|| format!("{} is not a folder: choose another", path.display()))
}
