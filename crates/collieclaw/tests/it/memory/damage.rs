//! Files that are not what they should be.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use collieclaw::memory::{Memory, MemoryError};
use rusqlite::Connection;

use super::support::{Dice, Place, found_in, said_once};

fn filled() -> Place {
    let place = Place::new();
    let memory = place.open();
    for number in 0..60 {
        let content = format!("talk number {number} about the weather and the harvest ").repeat(20);
        memory.persist(&said_once("c", number, &content)).unwrap();
    }
    drop(memory);
    // All of it in one file, so that there is nothing to repair it from.
    let connection = Connection::open(place.file()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    place
}

/// Whatever can be asked of it.
fn use_all(place: &Place) -> Result<(), MemoryError> {
    let memory = Memory::open(&place.file())?;
    memory.conversation("c")?;
    memory.recent("c", 10)?;
    memory.conversations(10)?;
    for query in ["weather", "arves", "ke", "7"] {
        memory.search(query, 10)?;
    }
    memory.persist(&said_once("new", 1_000, "more talk"))
}

#[test]
fn a_file_that_is_no_database_is_refused_and_stays_as_it_is() {
    let place = Place::new();
    let text = "this is a shopping list: milk, bread, ".repeat(200);
    fs::write(place.file(), &text).unwrap();
    let refusal = place.refusal();
    let file = place.file();
    assert_eq!(
        refusal,
        format!(
            "{} is damaged (file is not a database); move it and the files that begin with its name away, and a \
             new one is made",
            file.display()
        )
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_database_of_another_program_is_refused_and_stays_as_it_is() {
    for sql in ["CREATE TABLE theirs (a)", "PRAGMA user_version = 7", "PRAGMA application_id = 1234"] {
        let place = Place::new();
        Connection::open(place.file()).unwrap().execute_batch(sql).unwrap();
        let before = place.bytes();
        let refused = Memory::open(&place.file()).unwrap_err();
        assert!(matches!(refused, MemoryError::Foreign { .. }), "{sql}: {refused:?}");
        assert!(refused.to_string().ends_with("choose another `path` in `[memory]`"), "{refused}");
        assert_eq!(place.bytes(), before, "{sql}");
    }
}

#[test]
fn a_memory_of_a_later_version_is_refused_in_words() {
    for version in [2, 99, 0, -1] {
        let place = filled();
        let connection = Connection::open(place.file()).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        let refusal = place.refusal();
        let expected = format!("has version {version}, and this program knows versions up to 1; use a newer");
        assert!(refusal.contains(&expected), "{refusal}");
    }
}

#[test]
fn bytes_that_were_changed_are_an_error_or_harmless_and_never_a_crash() {
    let original = fs::read(filled().file()).unwrap();
    let mut dice = Dice::new(3);
    let mut refused = 0;
    for _ in 0..150 {
        let mut bytes = original.clone();
        let start = dice.below(bytes.len());
        let length = 1 + dice.below(600);
        for byte in bytes.iter_mut().skip(start).take(length) {
            *byte = u8::try_from(dice.below(256)).unwrap();
        }
        let place = Place::new();
        fs::write(place.file(), &bytes).unwrap();
        if let Err(error) = use_all(&place) {
            assert!(error.to_string().contains("memory.db"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_file_that_was_cut_is_an_error() {
    let original = fs::read(filled().file()).unwrap();
    for length in [1, 50, 100, 4_000, 4_096, 10_000, original.len() / 2, original.len() - 4_096] {
        let place = Place::new();
        fs::write(place.file(), &original[..length]).unwrap();
        let error = use_all(&place).unwrap_err();
        assert!(matches!(error, MemoryError::Damaged { .. }), "{length}: {error:?}");
    }
}

#[test]
fn an_empty_file_becomes_a_memory() {
    let place = Place::new();
    fs::write(place.file(), "").unwrap();
    use_all(&place).unwrap();
}

#[test]
fn a_link_is_not_followed_and_a_folder_is_no_file() {
    let elsewhere = filled();
    let place = Place::new();
    symlink(elsewhere.file(), place.file()).unwrap();
    let refused = Memory::open(&place.file()).unwrap_err();
    assert!(matches!(refused, MemoryError::Link { .. }), "{refused:?}");
    // A link to nothing would be made into a file somewhere else.
    let place = Place::new();
    symlink(place.folder().join("nowhere"), place.file()).unwrap();
    assert!(matches!(Memory::open(&place.file()).unwrap_err(), MemoryError::Link { .. }));
    assert!(!place.folder().join("nowhere").exists());
    let place = Place::new();
    fs::create_dir(place.file()).unwrap();
    assert!(place.refusal().contains("is not a regular file"));
    for path in ["", "/", ".."] {
        assert!(Memory::open(path.as_ref()).is_err(), "{path}");
    }
}

#[test]
fn a_home_behind_a_link_is_used() {
    let place = filled();
    let links = Place::new();
    symlink(place.folder(), links.folder().join("home")).unwrap();
    let memory = Memory::open(&links.folder().join("home/memory.db")).unwrap();
    assert_eq!(memory.turn_count().unwrap(), 60);
}

#[test]
fn its_files_are_for_their_owner_alone() {
    let place = Place::new();
    let memory = place.open();
    memory.persist(&said_once("c", 0, "secret")).unwrap();
    let modes = || -> Vec<u32> {
        let entries = fs::read_dir(place.folder()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o7777).collect()
    };
    assert_eq!(modes(), [0o600; 3]);
    drop(memory);
    // A copy that somebody made too open is closed again.
    fs::set_permissions(place.file(), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(found_in(&place.open(), "secret"), ["c"]);
    assert_eq!(modes(), [0o600; 3]);
}
