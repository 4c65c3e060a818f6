//! Memory files that are damaged or of another kind.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use collieclaw_agent::memory::{ConversationMemory, MemoryError};
use rusqlite::Connection;

use super::support::{MemoryFolder, MemoryRandom, search_excerpts, single_turn_exchange};

fn filled_memory() -> MemoryFolder {
    let place = MemoryFolder::new();
    let memory = place.open();
    for number in 0..60 {
        let content = format!("talk number {number} about the weather and the harvest ").repeat(20);
        memory.persist(&single_turn_exchange("c", number, &content)).unwrap();
    }
    drop(memory);
    // Move everything into one file, so that nothing can be restored from the write-ahead log.
    let connection = Connection::open(place.file()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    place
}

/// Calls every operation.
fn run_all_queries(place: &MemoryFolder) -> Result<(), MemoryError> {
    let memory = ConversationMemory::open(&place.file())?;
    memory.conversation("c")?;
    memory.recent("c", 10)?;
    memory.conversations(10)?;
    for query in ["weather", "arves", "ke", "7"] {
        memory.search(query, 10)?;
    }
    memory.persist(&single_turn_exchange("new", 1_000, "more talk"))
}

#[test]
fn a_file_that_is_no_database_is_refused_and_unchanged() {
    let place = MemoryFolder::new();
    let text = "this is a shopping list: milk, bread, ".repeat(200);
    fs::write(place.file(), &text).unwrap();
    let refusal = place.open_error();
    let file = place.file();
    assert_eq!(
        refusal,
        format!(
            "{} is damaged (file is not a database); move it and the files whose names start with its name \
             away to start with a new one",
            file.display()
        )
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_database_of_another_program_is_refused_and_unchanged() {
    for sql in ["CREATE TABLE theirs (a)", "PRAGMA user_version = 7", "PRAGMA application_id = 1234"] {
        let place = MemoryFolder::new();
        Connection::open(place.file()).unwrap().execute_batch(sql).unwrap();
        let before = place.bytes();
        let refused = ConversationMemory::open(&place.file()).unwrap_err();
        assert!(matches!(refused, MemoryError::Foreign { .. }), "{sql}: {refused:?}");
        assert!(refused.to_string().ends_with("choose another `path` in `[memory]`"), "{refused}");
        assert_eq!(place.bytes(), before, "{sql}");
    }
}

#[test]
fn a_memory_of_another_version_is_refused_with_advice() {
    for version in [3, 99, 0, -1] {
        let place = filled_memory();
        let connection = Connection::open(place.file()).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        let refusal = place.open_error();
        let expected =
            format!("has version {version}, but this program supports versions up to 2 only; install");
        assert!(refusal.contains(&expected), "{refusal}");
    }
}

#[test]
fn changed_bytes_are_harmless_or_an_error_and_never_a_crash() {
    let original = fs::read(filled_memory().file()).unwrap();
    let mut random = MemoryRandom::new(3);
    let mut refused = 0;
    for _ in 0..150 {
        let mut bytes = original.clone();
        let start = random.next_below(bytes.len());
        let length = 1 + random.next_below(600);
        for byte in bytes.iter_mut().skip(start).take(length) {
            *byte = u8::try_from(random.next_below(256)).unwrap();
        }
        let place = MemoryFolder::new();
        fs::write(place.file(), &bytes).unwrap();
        if let Err(error) = run_all_queries(&place) {
            assert!(error.to_string().contains("memory.db"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_truncated_file_is_an_error() {
    let original = fs::read(filled_memory().file()).unwrap();
    for length in [1, 50, 100, 4_000, 4_096, 10_000, original.len() / 2, original.len() - 4_096] {
        let place = MemoryFolder::new();
        fs::write(place.file(), &original[..length]).unwrap();
        let error = run_all_queries(&place).unwrap_err();
        assert!(matches!(error, MemoryError::Damaged { .. }), "{length}: {error:?}");
    }
}

#[test]
fn an_empty_file_becomes_a_memory() {
    let place = MemoryFolder::new();
    fs::write(place.file(), "").unwrap();
    run_all_queries(&place).unwrap();
}

#[test]
fn symlinks_and_folders_are_refused() {
    let elsewhere = filled_memory();
    let place = MemoryFolder::new();
    symlink(elsewhere.file(), place.file()).unwrap();
    let refused = ConversationMemory::open(&place.file()).unwrap_err();
    assert!(matches!(refused, MemoryError::Link { .. }), "{refused:?}");
    // A dangling symlink would create a file somewhere else.
    let place = MemoryFolder::new();
    symlink(place.folder().join("nowhere"), place.file()).unwrap();
    assert!(matches!(ConversationMemory::open(&place.file()).unwrap_err(), MemoryError::Link { .. }));
    assert!(!place.folder().join("nowhere").exists());
    let place = MemoryFolder::new();
    fs::create_dir(place.file()).unwrap();
    assert!(place.open_error().contains("is not a regular file"));
    for path in ["", "/", ".."] {
        assert!(ConversationMemory::open(path.as_ref()).is_err(), "{path}");
    }
}

#[test]
fn a_home_behind_a_symlink_is_used() {
    let place = filled_memory();
    let links = MemoryFolder::new();
    symlink(place.folder(), links.folder().join("home")).unwrap();
    let memory = ConversationMemory::open(&links.folder().join("home/memory.db")).unwrap();
    assert_eq!(memory.turn_count().unwrap(), 60);
}

#[test]
fn only_the_owner_can_read_the_files() {
    let place = MemoryFolder::new();
    let memory = place.open();
    memory.persist(&single_turn_exchange("c", 0, "secret")).unwrap();
    let modes = || -> Vec<u32> {
        let entries = fs::read_dir(place.folder()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o7777).collect()
    };
    assert_eq!(modes(), [0o600; 3]);
    drop(memory);
    // The permissions of a copy that is too open are restricted again.
    fs::set_permissions(place.file(), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(search_excerpts(&place.open(), "secret"), ["c"]);
    assert_eq!(modes(), [0o600; 3]);
}
