//! The three streams of a command, led where the plan leads them.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use collieclaw_gate::plan::{PlannedRedirection, To};
use rustix::fs::{MemfdFlags, memfd_create};
use ward_process::{Input, Order, Output};

use crate::security::{self, Access, FileError};

/// Where a descriptor leads.
#[derive(Clone)]
pub(super) enum Stream {
    Nowhere,
    Open(Rc<OwnedFd>),
}

/// Standard input, output and error.
#[derive(Clone)]
pub(super) struct Streams([Stream; 3]);

/// A redirection that could not be carried out.
pub(super) struct Unopened {
    pub(super) what: String,
    pub(super) error: FileError,
}

impl From<Option<Rc<OwnedFd>>> for Stream {
    fn from(open: Option<Rc<OwnedFd>>) -> Self {
        open.map_or(Self::Nowhere, Self::Open)
    }
}

impl Streams {
    pub(super) fn new(input: Stream, output: Stream, error: Stream) -> Self {
        Self([input, output, error])
    }

    /// Carries out redirections, in order, as a shell does: each sees what those before it did.
    pub(super) fn redirect(
        &mut self,
        redirections: &[PlannedRedirection],
        folder: &Path,
        access: Access<'_>,
    ) -> Result<(), Unopened> {
        for redirection in redirections {
            let to = match &redirection.to {
                To::Null => Ok(Stream::Nowhere),
                To::Copy(number) => Ok(self.at(*number).cloned().unwrap_or(Stream::Nowhere)),
                To::Text(text) => text_to_read(text).map(opened),
                To::Read(path) => access.read(&folder.join(path)).map(opened),
                To::Write(path) => access.output(&folder.join(path), security::Output::Emptied).map(opened),
                To::Append(path) => access.output(&folder.join(path), security::Output::AddedTo).map(opened),
            };
            let to = to.map_err(|error| Unopened { what: name(&redirection.to), error })?;
            if let Some(place) = self.at_mut(redirection.descriptor) {
                *place = to;
            }
        }
        Ok(())
    }

    /// Gives them to a program.
    pub(super) fn give_to(&self, order: Order) -> std::io::Result<Order> {
        let Self([input, output, error]) = self;
        Ok(order.stdin(input.as_input()?).stdout(output.as_output()?).stderr(error.as_output()?))
    }

    fn at(&self, descriptor: u32) -> Option<&Stream> {
        self.0.get(usize::try_from(descriptor).ok()?)
    }

    fn at_mut(&mut self, descriptor: u32) -> Option<&mut Stream> {
        self.0.get_mut(usize::try_from(descriptor).ok()?)
    }
}

impl Stream {
    fn as_input(&self) -> std::io::Result<Input> {
        match self {
            Self::Nowhere => Ok(Input::Null),
            Self::Open(open) => open.try_clone().map(Input::From),
        }
    }

    fn as_output(&self) -> std::io::Result<Output> {
        match self {
            Self::Nowhere => Ok(Output::Null),
            Self::Open(open) => open.try_clone().map(Output::To),
        }
    }
}

fn opened(file: OwnedFd) -> Stream {
    Stream::Open(Rc::new(file))
}

/// A file without a name that holds the text: unlike a pipe it takes any length at once.
fn text_to_read(text: &str) -> Result<OwnedFd, FileError> {
    let mut file = std::fs::File::from(memfd_create(c"here", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file.into())
}

fn name(to: &To) -> String {
    match to {
        To::Read(path) | To::Write(path) | To::Append(path) => path.clone(),
        To::Text(_) => "a here-document".to_owned(),
        To::Copy(number) => number.to_string(),
        To::Null => "/dev/null".to_owned(),
    }
}
