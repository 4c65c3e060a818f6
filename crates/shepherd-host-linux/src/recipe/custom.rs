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

use super::arguments::{Arguments, word};
use super::{Kitchen, Recipe};
use crate::ask::Ask;
use crate::start::Fault;

const SNAPS_GAIN_RIGHTS: &str = "Snaps are set up by a helper that gains root's rights, and nothing that is started here \
                                 gains rights: unless it runs as root, it may not start.";

const STEAM_HANDS_OVER: &str = "Steam gives a game to a client that runs already: what the user starts by hand while this runs \
                                is not held. Let nothing else start Steam, neither a menu nor the login.";

struct App {
    name: String,
    args: Vec<String>,
}

impl Kitchen<'_> {
    pub(super) fn custom(&self, type_name: &str, payload: &Value) -> Result<Recipe, Fault> {
        match type_name {
            "flatpak" => {
                let app = App::read("type `flatpak`", payload)?;
                let mut recipe = self.app(&["flatpak", "run"], &app);
                // The hard way of Flatpak's own, for what it started outside of our tree: after the signal.
                let kill = [OsString::from("flatpak"), "kill".into(), app.name.into()];
                recipe.asks = vec![Ask::Signal, recipe.stop_command(&kill)?];
                Ok(recipe)
            }
            "snap" => {
                let mut recipe = self.app(&["snap", "run"], &App::read("type `snap`", payload)?);
                recipe.shortcomings.push(SNAPS_GAIN_RIGHTS.to_owned());
                Ok(recipe)
            }
            "steam" => {
                let app = App::read("type `steam`", payload)?;
                if app.name.is_empty() || !app.name.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(Fault::new(
                        format!("`{}` is no app of Steam's", app.name),
                        "give its number",
                    ));
                }
                let mut recipe = self.app(&["steam", "-applaunch"], &app);
                let shutdown = [OsString::from("steam"), "-shutdown".into()];
                recipe.asks = vec![recipe.stop_command(&shutdown)?, Ask::Signal];
                recipe.rival = Some("steam");
                recipe.shortcomings.push(STEAM_HANDS_OVER.to_owned());
                Ok(recipe)
            }
            _ => self.driver(type_name, payload),
        }
    }

    fn app(&self, launcher: &[&str], app: &App) -> Recipe {
        let words = launcher.iter().copied().chain([app.name.as_str()]);
        self.command(words.chain(app.args.iter().map(String::as_str)))
    }

    fn driver(&self, type_name: &str, payload: &Value) -> Result<Recipe, Fault> {
        let driver = self.catalogue.drivers.get(type_name).ok_or_else(|| {
            Fault::new(
                format!("nothing here runs entries of type `{type_name}`"),
                "it is `flatpak`, `snap` or `steam`, or the policy's `[drivers]` names a program for it",
            )
        })?;
        let mut recipe = self.command(&driver.argv);
        recipe.input = Some(payload.to_string().into_bytes());
        Ok(recipe)
    }
}

impl App {
    fn read(of: &str, payload: &Value) -> Result<Self, Fault> {
        let app = if let Value::Object(table) = payload {
            let mut arguments = Arguments::new(of, table);
            let name = arguments.take("app", word, "the name of the app")?;
            let name = arguments.needed("app", name)?;
            let args = arguments.texts("args")?;
            arguments.finish("`app` and `args`")?;
            Self { name, args }
        } else {
            let name = word(payload).ok_or_else(|| {
                Fault::new(format!("{of} does not understand {payload}"), "give the name of the app")
            })?;
            Self { name, args: Vec::new() }
        };
        if app.name.starts_with('-') || app.name.is_empty() {
            return Err(Fault::new(format!("`{}` is no name of an app", app.name), "correct it"));
        }
        Ok(app)
    }
}
