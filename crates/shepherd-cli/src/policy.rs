//! The policy file, from outside: is it valid, what does it say, what can be written in it (S7.4).

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use shepherd_config::{Loaded, json_schema, load_bytes, show};
use ward_diag::Style;

use crate::failure::Failure;
use crate::screen::{Screen, Tone};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Says whether a policy is valid, with every fault, its place and its cure. Exit code 1 if it is not.
    Check {
        /// The policy.
        file: PathBuf,
    },
    /// Says in plain sentences what a policy allows.
    Show {
        /// The policy.
        file: PathBuf,
    },
    /// Prints the JSON Schema of the format, for editors.
    Schema,
}

#[derive(Serialize)]
struct Checked {
    entries: usize,
    examples: usize,
}

#[derive(Serialize)]
struct Shown {
    policy: String,
}

pub(crate) fn run(command: &Command, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        Command::Check { file } => {
            let loaded = read(file, screen)?;
            let checked = Checked { entries: loaded.policy.entries().len(), examples: loaded.examples };
            screen.answer(&checked, |screen| {
                let (entries, examples) = (checked.entries, checked.examples);
                let told =
                    format!("{} is valid: {entries} entries, {examples} examples hold", file.display());
                screen.toned(Tone::Good, "✓", &told);
            });
            Ok(())
        }
        Command::Show { file } => {
            let text = show(&read(file, screen)?.policy);
            screen.answer(&Shown { policy: text.clone() }, |screen| screen.line(text.trim_end()));
            Ok(())
        }
        Command::Schema => {
            let schema = json_schema();
            screen.line(&serde_json::to_string_pretty(&schema).unwrap_or_default());
            Ok(())
        }
    }
}

fn read(file: &Path, screen: &mut Screen) -> Result<Loaded, Failure> {
    let bytes = std::fs::read(file).map_err(|source| Failure::Policy { file: file.to_owned(), source })?;
    load_bytes(&file.display().to_string(), &bytes).map_err(|report| {
        // The colours are taken out again where nobody would see them.
        screen.answer(&report, |screen| screen.line(report.render(Style::Coloured).trim_end()));
        let count = report.faults().len() + report.more();
        Failure::PolicyNotValid { count }
    })
}
