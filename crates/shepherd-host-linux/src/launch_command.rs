//! From an entry to a command line, and to the ways to ask it to end (S6.6).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use shepherd_api::EntryKind;
use shepherd_core::policy::{CustomDriver, MediaLibrary};
use ward_process::StopCommand;

use crate::start_job::{LaunchError, resolve_program};
use crate::stop_method::StopMethod;

mod arguments;
mod custom;
mod media;
mod media_files;
mod qemu;
mod vm;

pub(crate) use media::MPV;
pub(crate) use qemu::QEMU;

/// What the policy says once for all entries.
#[derive(Debug, Default)]
pub(crate) struct LaunchResources {
    pub(crate) libraries: BTreeMap<String, MediaLibrary>,
    pub(crate) drivers: BTreeMap<String, CustomDriver>,
}

/// How an entry is run.
pub(crate) struct LaunchCommand {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<PathBuf>,
    /// For its standard input.
    pub(crate) input: Option<Vec<u8>>,
    /// In this order.
    pub(crate) stop_methods: Vec<StopMethod>,
    /// Whether it is to listen in the folder for control sockets.
    pub(crate) needs_socket_folder: bool,
    /// What is known beforehand not to work, in sentences.
    pub(crate) shortcomings: Vec<String>,
    /// The name of a program that takes over what it is to run if it runs already, outside of any session.
    pub(crate) conflicting_program: Option<&'static str>,
}

/// Where recipes are made, and from what.
pub(crate) struct LaunchCommandBuilder<'a> {
    pub(crate) resources: &'a LaunchResources,
    /// What every program gets.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder for control sockets, which is made if the recipe needs it.
    pub(crate) socket_folder: &'a Path,
}

impl LaunchCommandBuilder<'_> {
    pub(crate) fn build(&self, kind: &EntryKind) -> Result<LaunchCommand, LaunchError> {
        match kind {
            EntryKind::Process { argv, env, cwd } => {
                let mut recipe = self.plain_command(argv);
                recipe.add_environment(env);
                recipe.directory = cwd.as_ref().map(PathBuf::from);
                Ok(recipe)
            }
            EntryKind::Vm { driver, args } => self.virtual_machine(driver, args),
            EntryKind::Media { library_id, args } => self.media(library_id, args),
            EntryKind::Custom { type_name, payload } => self.custom(type_name, payload),
        }
    }

    /// A command line that is ended by signals.
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

    /// A command that asks the program to end, in the program's own environment.
    fn stop_command(&self, argv: &[OsString]) -> Result<StopMethod, LaunchError> {
        let (name, args) =
            argv.split_first().ok_or_else(|| LaunchError::new("its `stop` names no program", "name one"))?;
        let program = resolve_program(name, &self.environment)?;
        Ok(StopMethod::Run(StopCommand { program, args: args.to_vec(), env: self.environment.clone() }))
    }
}
