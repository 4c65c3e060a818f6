//! Virtual machines: driver `qemu`, and driver `command` for every other program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

use super::arguments::DriverArguments;
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::launch_error::LaunchError;

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
                format!("no such driver `{driver}` for virtual machines"),
                "use `qemu` or `command`",
            )),
        }
    }

    /// Reads `argv`, `cwd`, and `stop`, a command that powers the machine down.
    fn command_machine(&self, args: &BTreeMap<String, Value>) -> Result<LaunchCommand, LaunchError> {
        let mut arguments = DriverArguments::new("driver `command`", args);
        let argv = arguments.texts("argv")?;
        let directory = arguments.text("cwd")?;
        let stop: Vec<OsString> = arguments.texts("stop")?.into_iter().map(Into::into).collect();
        let argv = arguments.require("argv", (!argv.is_empty()).then_some(argv))?;
        arguments.reject_unknown("`argv`, `cwd` and `stop`")?;
        let mut command = self.plain_command(argv);
        command.directory = directory.map(PathBuf::from);
        if !stop.is_empty() {
            command.stop_methods.insert(0, command.stop_command(&stop)?);
        }
        Ok(command)
    }
}
