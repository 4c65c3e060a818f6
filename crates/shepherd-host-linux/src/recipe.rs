//! From an entry to a command line, and to the ways to ask it to end (S6.6).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use shepherd_api::EntryKind;
use shepherd_core::policy::{Driver, Library};
use ward_process::StopCommand;

use crate::ask::Ask;
use crate::start::{Fault, find};

mod arguments;
mod custom;
mod files;
mod media;
mod qemu;
mod vm;

pub(crate) use media::MPV;
pub(crate) use qemu::QEMU;

/// What the policy says once for all entries.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) libraries: BTreeMap<String, Library>,
    pub(crate) drivers: BTreeMap<String, Driver>,
}

/// How an entry is run.
pub(crate) struct Recipe {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<PathBuf>,
    /// For its standard input.
    pub(crate) input: Option<Vec<u8>>,
    /// In this order.
    pub(crate) asks: Vec<Ask>,
    /// Whether it is to listen in the folder for control sockets.
    pub(crate) needs_sockets: bool,
    /// What is known beforehand not to work, in sentences.
    pub(crate) shortcomings: Vec<String>,
    /// The name of a program that takes over what it is to run if it runs already, outside of any session.
    pub(crate) rival: Option<&'static str>,
}

/// Where recipes are made, and from what.
pub(crate) struct Kitchen<'a> {
    pub(crate) catalogue: &'a Catalogue,
    /// What every program gets.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder for control sockets, which is made if the recipe needs it.
    pub(crate) sockets: &'a Path,
}

impl Kitchen<'_> {
    pub(crate) fn recipe(&self, kind: &EntryKind) -> Result<Recipe, Fault> {
        match kind {
            EntryKind::Process { argv, env, cwd } => {
                let mut recipe = self.command(argv);
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
    fn command(&self, argv: impl IntoIterator<Item = impl Into<OsString>>) -> Recipe {
        Recipe {
            argv: argv.into_iter().map(Into::into).collect(),
            environment: self.environment.clone(),
            directory: None,
            input: None,
            asks: vec![Ask::Signal],
            needs_sockets: false,
            shortcomings: Vec::new(),
            rival: None,
        }
    }
}

impl Recipe {
    fn add_environment(&mut self, env: &BTreeMap<String, String>) {
        for (name, value) in env {
            self.environment.retain(|(known, _)| known != name.as_str());
            self.environment.push((name.into(), value.into()));
        }
    }

    /// A command that asks the program to end, in the program's own environment.
    fn stop_command(&self, argv: &[OsString]) -> Result<Ask, Fault> {
        let (name, args) =
            argv.split_first().ok_or_else(|| Fault::new("its `stop` names no program", "name one"))?;
        let program = find(name, &self.environment)?;
        Ok(Ask::Run(StopCommand { program, args: args.to_vec(), env: self.environment.clone() }))
    }
}
