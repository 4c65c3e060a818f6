//! Custom entries: `flatpak`, `snap` and `steam`, and a program of the policy's for every other type.
//!
//! | type | payload | runs |
//! | --- | --- | --- |
//! | `flatpak` | `{ app, args }`, or the app alone | `flatpak run APP ARGS…` |
//! | `snap` | `{ app, args }`, or the app alone | `snap run APP ARGS…` |
//! | `steam` | `{ app, args }`, or the number alone | `steam -applaunch NUMBER ARGS…` |
//! | other | whatever its driver wants | the driver's `argv`, with the payload as JSON on its standard input |
//!
//! Snaps are set up by a helper that gains root's rights, which `no_new_privs` (S6.5) forbids: unless an entry runs as
//! root, its snap may not start, and this is said with its start. Steam hands a game to a client that runs already, which
//! is then outside of the tree: while the user has one outside of a session, nothing is started.

use std::ffi::OsString;

use serde_json::Value;

use super::arguments::{DriverArguments, text_or_number};
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::start_job::LaunchError;
use crate::stop_method::StopMethod;

const SNAP_PRIVILEGE_NOTE: &str = "Snaps are set up by a helper that gains root's rights, and nothing that is started here \
                                 gains rights: unless it runs as root, it may not start.";

const STEAM_HANDOVER_NOTE: &str = "Steam gives a game to a client that runs already: what the user starts by hand while this runs \
                                is not held. Let nothing else start Steam, neither a menu nor the login.";

struct PackagedApp {
    name: String,
    args: Vec<String>,
}

impl LaunchCommandBuilder<'_> {
    pub(super) fn custom(&self, type_name: &str, payload: &Value) -> Result<LaunchCommand, LaunchError> {
        match type_name {
            "flatpak" => {
                let app = PackagedApp::parse("type `flatpak`", payload)?;
                let mut recipe = self.app_command(&["flatpak", "run"], &app);
                // The hard way of Flatpak's own, for what it started outside of our tree: after the signal.
                let kill = [OsString::from("flatpak"), "kill".into(), app.name.into()];
                recipe.stop_methods = vec![StopMethod::Signal, recipe.stop_command(&kill)?];
                Ok(recipe)
            }
            "snap" => {
                let mut recipe =
                    self.app_command(&["snap", "run"], &PackagedApp::parse("type `snap`", payload)?);
                recipe.shortcomings.push(SNAP_PRIVILEGE_NOTE.to_owned());
                Ok(recipe)
            }
            "steam" => {
                let app = PackagedApp::parse("type `steam`", payload)?;
                if app.name.is_empty() || !app.name.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(LaunchError::new(
                        format!("`{}` is no app of Steam's", app.name),
                        "give its number",
                    ));
                }
                let mut recipe = self.app_command(&["steam", "-applaunch"], &app);
                let shutdown = [OsString::from("steam"), "-shutdown".into()];
                recipe.stop_methods = vec![recipe.stop_command(&shutdown)?, StopMethod::Signal];
                recipe.conflicting_program = Some("steam");
                recipe.shortcomings.push(STEAM_HANDOVER_NOTE.to_owned());
                Ok(recipe)
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
                format!("nothing here runs entries of type `{type_name}`"),
                "it is `flatpak`, `snap` or `steam`, or the policy's `[drivers]` names a program for it",
            )
        })?;
        let mut recipe = self.plain_command(&driver.argv);
        recipe.input = Some(payload.to_string().into_bytes());
        Ok(recipe)
    }
}

impl PackagedApp {
    fn parse(of: &str, payload: &Value) -> Result<Self, LaunchError> {
        let app = if let Value::Object(table) = payload {
            let mut arguments = DriverArguments::new(of, table);
            let name = arguments.take("app", text_or_number, "the name of the app")?;
            let name = arguments.require("app", name)?;
            let args = arguments.texts("args")?;
            arguments.reject_unknown("`app` and `args`")?;
            Self { name, args }
        } else {
            let name = text_or_number(payload).ok_or_else(|| {
                LaunchError::new(format!("{of} does not understand {payload}"), "give the name of the app")
            })?;
            Self { name, args: Vec::new() }
        };
        if app.name.starts_with('-') || app.name.is_empty() {
            return Err(LaunchError::new(format!("`{}` is no name of an app", app.name), "correct it"));
        }
        Ok(app)
    }
}
