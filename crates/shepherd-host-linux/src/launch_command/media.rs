//! Media entries: plays the files of a library.

use std::ffi::OsString;
use std::path::Path;

use super::media_files;
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::launch_error::LaunchError;
use crate::stop_method::StopMethod;

/// The default player of a library.
pub(crate) const MPV: &str = "mpv";

impl LaunchCommandBuilder<'_> {
    pub(super) fn media(&self, library_id: &str, args: &[String]) -> Result<LaunchCommand, LaunchError> {
        let library = self.resources.libraries.get(library_id).ok_or_else(|| {
            LaunchError::new(format!("no such library `{library_id}`"), "add it to `[libraries]`")
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
        // The paths are absolute, so that no player can take one for an option.
        argv.extend(files.into_iter().map(Into::into));
        let mut command = self.plain_command(argv);
        if is_mpv {
            command.needs_socket_folder = true;
            command.stop_methods.insert(0, StopMethod::QuitPlayer { socket });
        }
        Ok(command)
    }
}
