//! Virtual machines: driver `qemu`, and `command` for every other one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

use super::arguments::DriverArguments;
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::start_job::LaunchError;

impl LaunchCommandBuilder<'_> {
    pub(super) fn virtual_machine(
        &self,
        driver: &str,
        args: &BTreeMap<String, Value>,
    ) -> Result<LaunchCommand, LaunchError> {
        match driver {
            "qemu" => self.qemu(args),
            "command" => self.command_machine(args),
            _ => Err(LaunchError::new(
                format!("there is no driver `{driver}` for virtual machines"),
                "it is `qemu` or `command`",
            )),
        }
    }

    /// `argv`, `cwd`, and `stop`: a command that powers the machine down.
    fn command_machine(&self, args: &BTreeMap<String, Value>) -> Result<LaunchCommand, LaunchError> {
        let mut arguments = DriverArguments::new("driver `command`", args);
        let argv = arguments.texts("argv")?;
        let directory = arguments.text("cwd")?;
        let stop: Vec<OsString> = arguments.texts("stop")?.into_iter().map(Into::into).collect();
        let argv = arguments.require("argv", (!argv.is_empty()).then_some(argv))?;
        arguments.reject_unknown("`argv`, `cwd` and `stop`")?;
        let mut recipe = self.plain_command(argv);
        recipe.directory = directory.map(PathBuf::from);
        if !stop.is_empty() {
            recipe.stop_methods.insert(0, recipe.stop_command(&stop)?);
        }
        Ok(recipe)
    }
}
