//! A command that runs beside other steps. Its output is shown when it is waited for, so that it isn't mixed with theirs.

use std::io::{self, Seek};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::describe;

/// A command that was started and is waited for later.
pub(crate) struct BackgroundCommand {
    shown: String,
    child: Child,
    output: std::fs::File,
    started: Instant,
}

impl BackgroundCommand {
    /// Starts a command. Its output goes to a temporary file.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let shown = describe(command);
        let output = tempfile::tempfile().context("could not create a temporary file")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
            .with_context(|| format!("could not start `{shown}`"))?;
        Ok(Self { shown, child, output, started: Instant::now() })
    }

    /// Waits for the command and prints its output. Returns its result, and how long it took or was waited for.
    pub(crate) fn finish(mut self) -> (Result<()>, Duration) {
        let result = self.wait();
        (result, self.started.elapsed())
    }

    fn wait(&mut self) -> Result<()> {
        let status = self.child.wait()?;
        self.output.rewind()?;
        io::copy(&mut self.output, &mut io::stdout())?;
        if !status.success() {
            bail!("`{}` failed ({status})", self.shown);
        }
        Ok(())
    }
}
