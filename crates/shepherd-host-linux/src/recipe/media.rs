//! Media: the files of a library, and what plays them.

use std::ffi::OsString;
use std::path::Path;

use super::files;
use super::{Kitchen, Recipe};
use crate::ask::Ask;
use crate::start::Fault;

/// The player of a library that names none.
pub(crate) const MPV: &str = "mpv";

impl Kitchen<'_> {
    pub(super) fn media(&self, library_id: &str, args: &[String]) -> Result<Recipe, Fault> {
        let library = self.catalogue.libraries.get(library_id).ok_or_else(|| {
            Fault::new(format!("there is no library `{library_id}`"), "add it to `[libraries]`")
        })?;
        let files = files::of_library(library_id, &library.paths)?;
        let player = library.player.as_deref().unwrap_or(MPV);
        let mut argv: Vec<OsString> = vec![player.into()];
        let is_mpv = Path::new(player).file_name().is_some_and(|name| name == MPV);
        let socket = self.sockets.join(MPV);
        if is_mpv {
            let mut option = OsString::from("--input-ipc-server=");
            option.push(&socket);
            argv.push(option);
        }
        argv.extend(args.iter().map(Into::into));
        if is_mpv {
            argv.push("--".into());
        }
        // Whole paths, so that no player can take one for an option.
        argv.extend(files.into_iter().map(Into::into));
        let mut recipe = self.command(argv);
        if is_mpv {
            recipe.needs_sockets = true;
            recipe.asks.insert(0, Ask::QuitPlayer { socket });
        }
        Ok(recipe)
    }
}
