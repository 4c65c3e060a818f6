//! Creates a database. It is built under another name and renamed when it is complete, so that a crash never leaves
//! half a database.

use std::fs::{self, File};
use std::io;

use ward_sqlite::{checkpoint_on_close, enable_wal};

use super::fault::SqliteFault;
use super::schema::{self, MIGRATIONS};
use super::state::{self, DatabaseState};
use crate::audit::AuditAnchor;
use crate::error::StoreOpenError;
use crate::folder::{StoreFolder, StoreFolderContents, private_open_options, sync_folder};

/// Creates an empty database whose audit log continues after `audit`.
pub(super) fn create_database(
    folder: &StoreFolder,
    contents: &StoreFolderContents,
    audit: AuditAnchor,
) -> Result<(), StoreOpenError> {
    let path = folder.unfinished_database_path();
    let file_error = |step| {
        let path = path.clone();
        move |source: io::Error| StoreOpenError::File { step, path, source }
    };
    for name in &contents.unfinished {
        fs::remove_file(folder.path().join(name)).map_err(file_error("remove"))?;
    }
    private_open_options().write(true).create_new(true).open(&path).map_err(file_error("create"))?;
    initialize_database(folder, audit).map_err(|trouble| trouble.into_store_error("create", &path))?;
    let finish = || {
        File::open(&path)?.sync_all()?;
        fs::rename(&path, folder.database_path())?;
        sync_folder(folder.path())
    };
    finish().map_err(file_error("finish"))
}

fn initialize_database(folder: &StoreFolder, audit: AuditAnchor) -> Result<(), SqliteFault> {
    let mut connection = schema::connect(&folder.unfinished_database_path())?;
    schema::migrate(&mut connection, MIGRATIONS)?;
    let state_row = DatabaseState { audit, ..state::read_state(&connection)? };
    state::write_state(&connection, &state_row)?;
    // This comes last, so that everything is in the one file.
    enable_wal(&connection)?;
    checkpoint_on_close(&connection)?;
    connection.close().map_err(|(_, error)| SqliteFault::from(error))
}
