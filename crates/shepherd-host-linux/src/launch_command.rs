//! Turns an entry into a command line and into the methods that stop its program (S6.6).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use shepherd_api::EntryKind;
use shepherd_core::policy::{CustomDriver, MediaLibrary};
use ward_process::StopCommand;

use crate::launch_error::LaunchError;
use crate::start_job::resolve_program;
use crate::stop_method::StopMethod;

mod arguments;
mod custom;
mod media;
mod media_files;
mod qemu;
mod vm;

pub(crate) use media::MPV;
pub(crate) use qemu::QEMU;

/// The parts of a policy that several entries share.
#[derive(Debug, Default)]
pub(crate) struct LaunchResources {
    pub(crate) libraries: BTreeMap<String, MediaLibrary>,
    pub(crate) drivers: BTreeMap<String, CustomDriver>,
}

/// A command line for an entry, with everything that its start and its stop need.
pub(crate) struct LaunchCommand {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<PathBuf>,
    /// The text for the standard input.
    pub(crate) input: Option<Vec<u8>>,
    /// The methods that stop the program, in the order in which they are tried.
    pub(crate) stop_methods: Vec<StopMethod>,
    pub(crate) needs_socket_folder: bool,
    /// Known limitations of this command, in sentences for people.
    pub(crate) shortcomings: Vec<String>,
    /// The name of a program that would take over the launch if it is already running outside of any session.
    pub(crate) conflicting_program: Option<&'static str>,
}

pub(crate) struct LaunchCommandBuilder<'a> {
    pub(crate) resources: &'a LaunchResources,
    /// The variables that every program gets.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder for control sockets, which is created only if the command needs it.
    pub(crate) socket_folder: &'a Path,
}

impl LaunchCommandBuilder<'_> {
    pub(crate) fn build(&self, kind: &EntryKind) -> Result<LaunchCommand, LaunchError> {
        match kind {
            EntryKind::Process { argv, env, cwd } => {
                let mut command = self.plain_command(argv);
                command.add_environment(env);
                command.directory = cwd.as_ref().map(PathBuf::from);
                Ok(command)
            }
            EntryKind::Vm { driver, args } => self.virtual_machine(driver, args),
            EntryKind::Media { library_id, args } => self.media(library_id, args),
            EntryKind::Custom { type_name, payload } => self.custom(type_name, payload),
        }
    }

    /// Returns a command that is stopped by a signal.
    fn plain_command(&self, argv: impl IntoIterator<Item = impl Into<OsString>>) -> LaunchCommand {
        LaunchCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            environment: self.environment.clone(),
            directory: None,
            input: None,
            stop_methods: vec![StopMethod::Signal],
            needs_socket_folder: false,
            shortcomings: Vec::new(),
            conflicting_program: None,
        }
    }
}

impl LaunchCommand {
    fn add_environment(&mut self, env: &BTreeMap<String, String>) {
        for (name, value) in env {
            self.environment.retain(|(known, _)| known != name.as_str());
            self.environment.push((name.into(), value.into()));
        }
    }

    /// Returns a stop method that runs a command in the environment of the program.
    fn stop_command(&self, argv: &[OsString]) -> Result<StopMethod, LaunchError> {
        let (name, args) =
            argv.split_first().ok_or_else(|| LaunchError::new("`stop` is empty", "name a program"))?;
        let program = resolve_program(name, &self.environment)?;
        Ok(StopMethod::Run(StopCommand { program, args: args.to_vec(), env: self.environment.clone() }))
    }
}
