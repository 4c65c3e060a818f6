//! Virtual machines: driver `qemu`, and `command` for every other one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

use super::arguments::Arguments;
use super::{Kitchen, Recipe};
use crate::start::Fault;

impl Kitchen<'_> {
    pub(super) fn virtual_machine(
        &self,
        driver: &str,
        args: &BTreeMap<String, Value>,
    ) -> Result<Recipe, Fault> {
        match driver {
            "qemu" => self.qemu(args),
            "command" => self.any_machine(args),
            _ => Err(Fault::new(
                format!("there is no driver `{driver}` for virtual machines"),
                "it is `qemu` or `command`",
            )),
        }
    }

    /// `argv`, `cwd`, and `stop`: a command that powers the machine down.
    fn any_machine(&self, args: &BTreeMap<String, Value>) -> Result<Recipe, Fault> {
        let mut arguments = Arguments::new("driver `command`", args);
        let argv = arguments.texts("argv")?;
        let directory = arguments.text("cwd")?;
        let stop: Vec<OsString> = arguments.texts("stop")?.into_iter().map(Into::into).collect();
        let argv = arguments.needed("argv", (!argv.is_empty()).then_some(argv))?;
        arguments.finish("`argv`, `cwd` and `stop`")?;
        let mut recipe = self.command(argv);
        recipe.directory = directory.map(PathBuf::from);
        if !stop.is_empty() {
            recipe.asks.insert(0, recipe.stop_command(&stop)?);
        }
        Ok(recipe)
    }
}
