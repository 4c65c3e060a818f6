//! Runs cargo in the copy, and reads its errors and programs.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The outcome of a build.
pub(crate) struct BuildOutcome {
    pub(crate) is_built: bool,
    pub(crate) errors: Vec<CompileError>,
    /// Cargo's own messages.
    pub(crate) messages: String,
    /// The programs that contain tests.
    pub(crate) test_programs: Vec<PathBuf>,
}

/// An error of the compiler.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CompileError {
    level: String,
    spans: Vec<ErrorSpan>,
    #[serde(default)]
    children: Vec<CompileError>,
    /// The whole message as the compiler prints it.
    pub(crate) rendered: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct ErrorSpan {
    file_name: PathBuf,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

impl CompileError {
    /// Returns the places that the error is about: first the main places, then all others.
    pub(crate) fn places(&self) -> [Vec<(&Path, Range<usize>)>; 2] {
        let mut places = [Vec::new(), Vec::new()];
        let others = self.children.iter().flat_map(|child| &child.spans);
        for (span, is_main) in
            self.spans.iter().map(|span| (span, span.is_primary)).chain(others.map(|span| (span, false)))
        {
            let [main, other] = &mut places;
            let list = if is_main { main } else { other };
            list.push((span.file_name.as_path(), span.byte_start..span.byte_end));
        }
        places
    }
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum CargoMessage {
    CompilerMessage {
        message: CompileError,
    },
    CompilerArtifact {
        profile: ArtifactProfile,
        executable: Option<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct ArtifactProfile {
    test: bool,
}

/// Runs a cargo command with messages as JSON.
pub(crate) fn build(command: &mut Command) -> Result<BuildOutcome> {
    let output = command
        .arg("--message-format=json")
        .stdin(Stdio::null())
        .output()
        .context("could not start cargo")?;
    let mut outcome = BuildOutcome {
        is_built: output.status.success(),
        errors: Vec::new(),
        messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        test_programs: Vec::new(),
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match serde_json::from_str(line) {
            Ok(CargoMessage::CompilerMessage { message }) if message.level == "error" => {
                outcome.errors.push(message);
            }
            Ok(CargoMessage::CompilerArtifact { profile: ArtifactProfile { test: true }, executable }) => {
                outcome.test_programs.extend(executable);
            }
            _ => {}
        }
    }
    Ok(outcome)
}
