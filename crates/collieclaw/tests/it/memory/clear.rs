//! Cleared conversations are gone from every byte on disk.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use collieclaw_agent::memory::{ClearedCounts, ConversationExchange, MemoryError};
use collieclaw_providers::{ChatRole, ToolCall};
use rusqlite::Connection;
use serde_json::{Map, json};

use super::support::{MemoryFolder, rememberer_command, single_turn_exchange, turn};

/// The letters of this text occur nowhere else, so that even a fragment can be recognised.
const CANARY: &str = "qzxjkvwq";

fn canaries(place: &MemoryFolder) -> usize {
    let bytes = place.bytes();
    let whole = bytes.windows(CANARY.len()).filter(|window| *window == CANARY.as_bytes()).count();
    // The trigram index stores fragments one after the other in alphabetical order.
    let pieces = bytes.windows(3).filter(|window| *window == b"qzx" || *window == b"xjk").count();
    whole + pieces
}

fn fill(place: &MemoryFolder) -> ClearedCounts {
    let memory = place.open();
    for number in 0..40 {
        let mut asked = turn(&format!("{CANARY}-{number}"), 1, ChatRole::Assistant, &format!("say {CANARY}"));
        asked.tool_calls =
            vec![ToolCall { id: CANARY.into(), name: "shell".into(), arguments: json!({ "a": CANARY }) }];
        asked.metadata = Map::from_iter([(CANARY.to_owned(), json!(CANARY))]);
        // Long texts have pages of their own.
        let long = format!("{CANARY} ").repeat(number * 100);
        let said = turn(&format!("{CANARY}-{number}"), 0, ChatRole::User, &long);
        memory.persist(&ConversationExchange { turns: vec![said, asked] }).unwrap();
    }
    assert!(canaries(place) > 100);
    ClearedCounts { turns: 80, conversations: 40 }
}

// C10: clearing removes the content, also from the index and the free pages.
#[test]
fn clearing_leaves_nothing_on_disk_and_the_memory_stays_usable() {
    let place = MemoryFolder::new();
    let expected = fill(&place);
    let memory = place.open();
    assert!(!memory.search(CANARY, 5).unwrap().is_empty());
    assert_eq!(memory.clear().unwrap(), expected);
    assert_eq!(canaries(&place), 0);
    assert!(memory.search(CANARY, 5).unwrap().is_empty());
    assert_eq!((memory.turn_count().unwrap(), memory.latest_conversation().unwrap()), (0, None));
    memory.persist(&single_turn_exchange("after", 0, "a new beginning")).unwrap();
    assert_eq!(memory.search("begin", 5).unwrap()[0].conversation_id, "after");
    drop(memory);
    assert_eq!(place.open().turn_count().unwrap(), 1);
    assert_eq!(canaries(&place), 0);
}

#[test]
fn an_empty_memory_is_cleared_as_well() {
    let place = MemoryFolder::new();
    let nothing = ClearedCounts { turns: 0, conversations: 0 };
    assert_eq!(place.open().clear().unwrap(), nothing);
    assert_eq!(place.open().clear().unwrap(), nothing);
}

/// The process dies after the rows are removed and before their pages are.
#[test]
fn a_clearing_that_was_interrupted_is_finished_by_the_next() {
    let place = MemoryFolder::new();
    fill(&place);
    let connection = Connection::open(place.file()).unwrap();
    connection
        .execute_batch(
            "PRAGMA secure_delete = OFF; DELETE FROM turn; DELETE FROM conversation;
             INSERT INTO turn_words (turn_words) VALUES ('delete-all');
             INSERT INTO turn_grams (turn_grams) VALUES ('delete-all');",
        )
        .unwrap();
    drop(connection);
    assert!(canaries(&place) > 0);
    place.open().clear().unwrap();
    assert_eq!(canaries(&place), 0);
}

#[test]
fn another_process_that_has_it_open_does_not_keep_anything_alive() {
    let place = MemoryFolder::new();
    let expected = fill(&place);
    let mut other = rememberer_command(&place.file(), &format!("{CANARY}-1"), "hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    assert_eq!(place.open().clear().unwrap(), expected);
    assert_eq!(canaries(&place), 0);
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    assert_eq!(canaries(&place), 0);
}

#[test]
fn clearing_during_a_read_is_an_error_that_names_the_rest() {
    let place = MemoryFolder::new();
    fill(&place);
    let reader = Connection::open(place.file()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen: i64 = reader.query_row("SELECT count(*) FROM turn", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 80);
    let memory = place.open();
    let refused = memory.clear().unwrap_err();
    assert!(matches!(refused, MemoryError::TracesRemain { .. }), "{refused:?}");
    assert!(refused.to_string().ends_with("close that program and clear again"), "{refused}");
    assert_eq!(memory.turn_count().unwrap(), 0);
    drop(reader);
    memory.clear().unwrap();
    assert_eq!(canaries(&place), 0);
}

#[test]
fn the_file_is_small_again() {
    let place = MemoryFolder::new();
    fill(&place);
    let memory = place.open();
    memory.clear().unwrap();
    let size = |name: &str| fs::metadata(place.folder().join(name)).map_or(0, |found| found.len());
    assert!(size("memory.db") < 200_000, "{}", size("memory.db"));
    assert_eq!(size("memory.db-wal"), 0);
}
