//! Media: the files of a library, and what plays them.

use std::ffi::OsString;
use std::path::Path;

use super::media_files;
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::start_job::LaunchError;
use crate::stop_method::StopMethod;

/// The player of a library that names none.
pub(crate) const MPV: &str = "mpv";

impl LaunchCommandBuilder<'_> {
    pub(super) fn media(&self, library_id: &str, args: &[String]) -> Result<LaunchCommand, LaunchError> {
        let library = self.resources.libraries.get(library_id).ok_or_else(|| {
            LaunchError::new(format!("there is no library `{library_id}`"), "add it to `[libraries]`")
        })?;
        let files = media_files::library_files(library_id, &library.paths)?;
        let player = library.player.as_deref().unwrap_or(MPV);
        let mut argv: Vec<OsString> = vec![player.into()];
        let is_mpv = Path::new(player).file_name().is_some_and(|name| name == MPV);
        let socket = self.socket_folder.join(MPV);
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
        let mut recipe = self.plain_command(argv);
        if is_mpv {
            recipe.needs_socket_folder = true;
            recipe.stop_methods.insert(0, StopMethod::QuitPlayer { socket });
        }
        Ok(recipe)
    }
}
