//! Making a database. It is made under another name and takes its own when it is whole, so that a crash never leaves
//! half of one.

use std::fs::{self, File};
use std::io;

use super::schema::{self, APPLICATION_ID, MIGRATIONS};
use super::state::{self, State};
use super::trouble::Trouble;
use crate::audit::Anchor;
use crate::error::OpenError;
use crate::folder::{Contents, Folder, private, sync_folder};

/// Makes an empty database whose audit log goes on after `audit`.
pub(super) fn create(folder: &Folder, contents: &Contents, audit: Anchor) -> Result<(), OpenError> {
    let path = folder.unfinished();
    let file_error = |step| {
        let path = path.clone();
        move |source: io::Error| OpenError::File { step, path, source }
    };
    for name in &contents.unfinished {
        fs::remove_file(folder.path().join(name)).map_err(file_error("remove"))?;
    }
    private().write(true).create_new(true).open(&path).map_err(file_error("create"))?;
    fill(folder, audit).map_err(|trouble| trouble.at("create", &path))?;
    let finish = || {
        File::open(&path)?.sync_all()?;
        fs::rename(&path, folder.database())?;
        sync_folder(folder.path())
    };
    finish().map_err(file_error("finish"))
}

fn fill(folder: &Folder, audit: Anchor) -> Result<(), Trouble> {
    let mut connection = schema::connect(&folder.unfinished())?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    schema::migrate(&mut connection, MIGRATIONS)?;
    let begun = State { audit, ..state::read(&connection)? };
    state::write(&connection, &begun)?;
    // At the end, so that everything is in the one file.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    schema::keep_log_on_close(&connection, false)?;
    connection.close().map_err(|(_, error)| Trouble::from(error))
}
