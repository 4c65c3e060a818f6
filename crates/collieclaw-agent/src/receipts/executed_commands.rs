//! The programs that a shell line executed, each with the verdict on it (C17).

use serde::Serialize;
use serde_json::{Value, json};

use crate::tools::truncate_text;

/// The number of programs that a receipt lists. A build starts thousands.
const MAX_LISTED: usize = 64;

/// The number of refused programs that a receipt lists beyond the first programs, because they matter most.
const MAX_REFUSED: usize = 16;

/// The maximum length of a program's path in a receipt. A command can build longer paths with letters that JSON escapes,
/// and a receipt that is too long for the log could not be written at all.
const MAX_PROGRAM_BYTES: usize = 1024;

/// The programs that a call executed, in the order in which they started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutedCommands {
    listed: Vec<ExecutedCommand>,
    refused: usize,
    total: u64,
}

/// A program that was executed, or refused before its first instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExecutedCommand {
    /// The real path of the program, or the beginning of a very long one.
    pub program: String,
    /// The SHA-256 of the arguments, as a list in canonical JSON.
    pub argv_hash: String,
    /// `run`, or the code of the reason against the program.
    pub verdict: &'static str,
}

impl ExecutedCommand {
    /// The verdict on a program that ran.
    pub const RUN: &'static str = "run";

    /// Creates the entry for a program with its arguments, starting with `argv[0]`.
    #[must_use]
    pub fn new(program: &str, arguments: &[String], verdict: &'static str) -> Self {
        let argv_hash = super::hash_json(&json!(arguments)).unwrap_or_default();
        Self { program: truncate_text(program, MAX_PROGRAM_BYTES), argv_hash, verdict }
    }
}

impl ExecutedCommands {
    /// Returns true if another program that runs would be listed.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.listed.len() < MAX_LISTED
    }

    /// Counts a program that runs and isn't listed.
    pub fn count_unlisted(&mut self) {
        self.total += 1;
    }

    /// Adds a program, or only counts it if the list is full.
    pub fn add(&mut self, command: ExecutedCommand) {
        self.total += 1;
        let refused = command.verdict != ExecutedCommand::RUN;
        if self.has_room() || (refused && self.refused < MAX_REFUSED) {
            self.refused += usize::from(refused);
            self.listed.push(command);
        }
    }

    /// Returns the value of the field `commands` in a receipt, or `None` if no program was judged.
    pub(super) fn to_json(&self) -> Option<Value> {
        (self.total > 0).then(|| json!({ "total": self.total, "listed": self.listed }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_programs_leaves_room_in_a_receipt_whatever_their_names_are() {
        let longest = format!("/{}", "\u{1}".repeat(4095));
        let mut commands = ExecutedCommands::default();
        for verdict in [ExecutedCommand::RUN, "forbidden-command"] {
            for _ in 0..1_000 {
                commands.add(ExecutedCommand::new(&longest, &[], verdict));
            }
        }
        let record = commands.to_json().unwrap();
        assert_eq!(record["total"], 2_000);
        assert!(record.to_string().len() < ward_ledger::MAX_RECORD_BYTES * 3 / 4);
    }
}
