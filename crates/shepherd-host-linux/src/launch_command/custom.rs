//! Custom entries: `flatpak`, `snap` and `steam` are built in; for every other type the policy names a driver.
//!
//! | type | payload | runs |
//! | --- | --- | --- |
//! | `flatpak` | `{ app, args }`, or the app alone | `flatpak run APP ARGS…` |
//! | `snap` | `{ app, args }`, or the app alone | `snap run APP ARGS…` |
//! | `steam` | `{ app, args }`, or the number alone | `steam -applaunch NUMBER ARGS…` |
//! | other | any value that the driver accepts | the driver's `argv`, with the payload as JSON on its standard input |
//!
//! A helper with root rights sets up snaps, which `no_new_privs` (S6.5) forbids. A snap may therefore fail to start
//! unless its entry runs as root, and the start reports that. Steam hands a game to a client that is already running,
//! which is then outside of the tree. A Steam entry is not started while its user has such a client.

use std::ffi::OsString;

use serde_json::Value;

use super::arguments::{DriverArguments, text_or_number};
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::launch_error::LaunchError;
use crate::stop_method::StopMethod;

const SNAP_PRIVILEGE_NOTE: &str = "Snaps need a helper that gains root rights, and programs that Shepherd starts \
                                   can't gain rights. The snap may not start unless it runs as root.";

const STEAM_HANDOVER_NOTE: &str = "Steam hands a game to a client that is already running, so games that the user \
                                   starts by hand are not contained. Let nothing else start Steam, neither a menu nor \
                                   the login.";

struct PackagedApp {
    name: String,
    args: Vec<String>,
}

impl LaunchCommandBuilder<'_> {
    pub(super) fn custom(&self, type_name: &str, payload: &Value) -> Result<LaunchCommand, LaunchError> {
        match type_name {
            "flatpak" => {
                let app = PackagedApp::parse("type `flatpak`", payload)?;
                let mut command = self.app_command(&["flatpak", "run"], &app);
                // Flatpak can start processes outside of the tree. `flatpak kill` ends them, after the signal.
                let kill = [OsString::from("flatpak"), "kill".into(), app.name.into()];
                command.stop_methods = vec![StopMethod::Signal, command.stop_command(&kill)?];
                Ok(command)
            }
            "snap" => {
                let mut command =
                    self.app_command(&["snap", "run"], &PackagedApp::parse("type `snap`", payload)?);
                command.shortcomings.push(SNAP_PRIVILEGE_NOTE.to_owned());
                Ok(command)
            }
            "steam" => {
                let app = PackagedApp::parse("type `steam`", payload)?;
                if app.name.is_empty() || !app.name.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(LaunchError::new(
                        format!("`{}` is not a Steam app number", app.name),
                        "give the number of the app",
                    ));
                }
                let mut command = self.app_command(&["steam", "-applaunch"], &app);
                let shutdown = [OsString::from("steam"), "-shutdown".into()];
                command.stop_methods = vec![command.stop_command(&shutdown)?, StopMethod::Signal];
                command.conflicting_program = Some("steam");
                command.shortcomings.push(STEAM_HANDOVER_NOTE.to_owned());
                Ok(command)
            }
            _ => self.driver_command(type_name, payload),
        }
    }

    fn app_command(&self, launcher: &[&str], app: &PackagedApp) -> LaunchCommand {
        let words = launcher.iter().copied().chain([app.name.as_str()]);
        self.plain_command(words.chain(app.args.iter().map(String::as_str)))
    }

    fn driver_command(&self, type_name: &str, payload: &Value) -> Result<LaunchCommand, LaunchError> {
        let driver = self.resources.drivers.get(type_name).ok_or_else(|| {
            LaunchError::new(
                format!("no driver for entries of type `{type_name}`"),
                "use `flatpak`, `snap` or `steam`, or name a program under `[drivers]`",
            )
        })?;
        let mut command = self.plain_command(&driver.argv);
        command.input = Some(payload.to_string().into_bytes());
        Ok(command)
    }
}

impl PackagedApp {
    fn parse(driver: &str, payload: &Value) -> Result<Self, LaunchError> {
        let app = if let Value::Object(table) = payload {
            let mut arguments = DriverArguments::new(driver, table);
            let name = arguments.take("app", text_or_number, "the name of the app")?;
            let name = arguments.require("app", name)?;
            let args = arguments.texts("args")?;
            arguments.reject_unknown("`app` and `args`")?;
            Self { name, args }
        } else {
            let name = text_or_number(payload).ok_or_else(|| {
                LaunchError::new(
                    format!("invalid payload {payload} for {driver}"),
                    "give the name of the app",
                )
            })?;
            Self { name, args: Vec::new() }
        };
        if app.name.starts_with('-') || app.name.is_empty() {
            return Err(LaunchError::new(format!("`{}` is not an app name", app.name), "correct it"));
        }
        Ok(app)
    }
}
