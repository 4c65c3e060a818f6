//! The standard streams of a command, with the redirections of the plan.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use collieclaw_gate::plan::{PlannedRedirection, PlannedTarget};
use rustix::fs::{MemfdFlags, memfd_create};
use ward_process::{OutputTarget, ProcessSpec, StdinSource};

use crate::security::{self, FileAccess, FileError};

#[derive(Clone)]
pub(super) enum StreamTarget {
    Null,
    Open(Rc<OwnedFd>),
}

#[derive(Clone)]
pub(super) struct CommandStreams([StreamTarget; 3]);

/// A redirection that failed.
pub(super) struct RedirectionError {
    pub(super) what: String,
    pub(super) error: FileError,
}

impl From<Option<Rc<OwnedFd>>> for StreamTarget {
    fn from(open: Option<Rc<OwnedFd>>) -> Self {
        open.map_or(Self::Null, Self::Open)
    }
}

impl CommandStreams {
    pub(super) fn new(input: StreamTarget, output: StreamTarget, error: StreamTarget) -> Self {
        Self([input, output, error])
    }

    /// Applies redirections in order, like a shell. Each redirection sees the effect of the earlier ones.
    pub(super) fn redirect(
        &mut self,
        redirections: &[PlannedRedirection],
        folder: &Path,
        access: FileAccess<'_>,
    ) -> Result<(), RedirectionError> {
        for redirection in redirections {
            let target = match &redirection.target {
                PlannedTarget::Null => Ok(StreamTarget::Null),
                PlannedTarget::Duplicate(number) => {
                    Ok(self.stream(*number).cloned().unwrap_or(StreamTarget::Null))
                }
                PlannedTarget::Text(text) => here_document_file(text).map(open_target),
                PlannedTarget::Read(path) => access.open_for_reading(&folder.join(path)).map(open_target),
                PlannedTarget::Write(path) => access
                    .open_for_output(&folder.join(path), security::OutputMode::Truncate)
                    .map(open_target),
                PlannedTarget::Append(path) => {
                    access.open_for_output(&folder.join(path), security::OutputMode::Append).map(open_target)
                }
            };
            let target =
                target.map_err(|error| RedirectionError { what: target_name(&redirection.target), error })?;
            if let Some(stream) = self.stream_mut(redirection.descriptor) {
                *stream = target;
            }
        }
        Ok(())
    }

    /// Attaches the streams to a program.
    pub(super) fn attach_to(&self, spec: ProcessSpec) -> std::io::Result<ProcessSpec> {
        let Self([input, output, error]) = self;
        Ok(spec.stdin(input.as_input()?).stdout(output.as_output()?).stderr(error.as_output()?))
    }

    fn stream(&self, descriptor: u32) -> Option<&StreamTarget> {
        self.0.get(usize::try_from(descriptor).ok()?)
    }

    fn stream_mut(&mut self, descriptor: u32) -> Option<&mut StreamTarget> {
        self.0.get_mut(usize::try_from(descriptor).ok()?)
    }
}

impl StreamTarget {
    fn as_input(&self) -> std::io::Result<StdinSource> {
        match self {
            Self::Null => Ok(StdinSource::Null),
            Self::Open(open) => open.try_clone().map(StdinSource::FromFd),
        }
    }

    fn as_output(&self) -> std::io::Result<OutputTarget> {
        match self {
            Self::Null => Ok(OutputTarget::Null),
            Self::Open(open) => open.try_clone().map(OutputTarget::ToFd),
        }
    }
}

fn open_target(file: OwnedFd) -> StreamTarget {
    StreamTarget::Open(Rc::new(file))
}

/// Returns an anonymous file with the text. Unlike a pipe, it takes a text of any length at once.
fn here_document_file(text: &str) -> Result<OwnedFd, FileError> {
    let mut file = std::fs::File::from(memfd_create(c"here", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file.into())
}

fn target_name(to: &PlannedTarget) -> String {
    match to {
        PlannedTarget::Read(path) | PlannedTarget::Write(path) | PlannedTarget::Append(path) => path.clone(),
        PlannedTarget::Text(_) => "a here-document".to_owned(),
        PlannedTarget::Duplicate(number) => number.to_string(),
        PlannedTarget::Null => "/dev/null".to_owned(),
    }
}
