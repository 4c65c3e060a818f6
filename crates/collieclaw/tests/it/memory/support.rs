//! A memory in a temporary folder, with helpers to fill it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use collieclaw_agent::memory::{ConversationExchange, ConversationMemory, ConversationTurn};
use collieclaw_providers::ChatRole;
use jiff::Timestamp;
use serde_json::Map;
use tempfile::TempDir;

pub(super) struct MemoryFolder {
    folder: TempDir,
}

impl MemoryFolder {
    pub(super) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("memory.db")
    }

    pub(super) fn open(&self) -> ConversationMemory {
        ConversationMemory::open(&self.file()).unwrap()
    }

    /// Returns the error of opening the memory.
    pub(super) fn open_error(&self) -> String {
        ConversationMemory::open(&self.file()).unwrap_err().to_string()
    }

    /// Returns all files of the memory.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            bytes.extend(fs::read(entry.unwrap().path()).unwrap());
        }
        bytes
    }
}

/// Creates a memory with a conversation for each of these texts, `c0` first.
pub(super) fn memory_with(said: &[&str]) -> (MemoryFolder, ConversationMemory) {
    let place = MemoryFolder::new();
    let memory = place.open();
    for (number, content) in said.iter().enumerate() {
        memory.persist(&single_turn_exchange(&format!("c{number}"), number, content)).unwrap();
    }
    (place, memory)
}

/// Returns the conversations with matches, best first.
pub(super) fn search_excerpts(memory: &ConversationMemory, query: &str) -> Vec<String> {
    memory.search(query, 20).unwrap().into_iter().map(|found| found.conversation_id).collect()
}

pub(super) fn single_turn_exchange(conversation: &str, number: usize, content: &str) -> ConversationExchange {
    ConversationExchange { turns: vec![turn(conversation, number, ChatRole::User, content)] }
}

pub(super) fn turn(conversation: &str, number: usize, role: ChatRole, content: &str) -> ConversationTurn {
    ConversationTurn {
        conversation_id: conversation.to_owned(),
        turn_id: format!("turn-{number}"),
        timestamp: Timestamp::from_second(1_800_000_000 + i64::try_from(number).unwrap()).unwrap(),
        role,
        content: content.to_owned(),
        tool_calls: Vec::new(),
        tool_results: Vec::new(),
        provider: "local".to_owned(),
        model: "mock".to_owned(),
        metadata: Map::new(),
    }
}

/// Returns the helper that stores exchanges in its own process.
pub(super) fn rememberer_program() -> PathBuf {
    ["NEXTEST_BIN_EXE_fake-rememberer", "NEXTEST_BIN_EXE_fake_rememberer"]
        .iter()
        .find_map(std::env::var_os)
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_fake-rememberer")), PathBuf::from)
}

pub(super) fn rememberer_command(file: &Path, conversation: &str, count: &str) -> Command {
    let mut command = Command::new(rememberer_program());
    command.arg(file).arg(conversation).arg(count);
    command
}

/// Checks that a conversation of the helper has only complete exchanges, in order, and returns their number.
pub(super) fn whole_exchanges(memory: &ConversationMemory, conversation: &str) -> usize {
    let turns = memory.conversation(conversation).unwrap();
    let mut rest = turns.as_slice();
    let mut number = 0;
    while let Some(first) = rest.first() {
        let length = usize::try_from(first.metadata["turns"].as_u64().unwrap()).unwrap();
        let ids: Vec<&str> = rest.iter().take(length).map(|turn| turn.turn_id.as_str()).collect();
        let expected: Vec<String> = (0..length).map(|place| format!("{number}-{place}")).collect();
        assert_eq!(ids, expected);
        rest = &rest[length..];
        number += 1;
    }
    number
}

/// A pseudo-random sequence, the same in every run (xorshift64).
pub(super) struct MemoryRandom(u64);

impl MemoryRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next_below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}
