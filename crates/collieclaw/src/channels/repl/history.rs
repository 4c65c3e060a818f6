//! The history file of the prompt.
//!
//! A missing or unwritable history file never prevents a session.

use std::fs;
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::LineEditor;

pub(super) struct HistoryFile {
    file: PathBuf,
    /// The state of the file when this process last read or wrote it.
    last_seen: Option<HistoryFileStamp>,
}

#[derive(Clone, Copy)]
struct HistoryFileStamp {
    inode: u64,
    length: u64,
}

impl HistoryFileStamp {
    fn read(file: &Path) -> Option<Self> {
        let found = fs::metadata(file).ok()?;
        Some(Self { inode: found.ino(), length: found.len() })
    }
}

impl HistoryFile {
    pub(super) fn load(file: &Path, editor: &mut LineEditor) -> Self {
        let _ = editor.load_history(file);
        Self { file: file.to_owned(), last_seen: HistoryFileStamp::read(file) }
    }

    /// Appends a line immediately, so that killing the program loses no history.
    pub(super) fn append(&mut self, line: &str, editor: &mut LineEditor) {
        // Input from a pipe is not part of the history.
        if !std::io::stdin().is_terminal() {
            return;
        }
        if self.was_cleared() {
            // Appends only the new line: the editor would rewrite its whole history.
            let _ = editor.clear_history();
            let _ = editor.load_history(&self.file);
        }
        let _ = editor.add_history_entry(line);
        let _ = editor.append_history(&self.file);
        self.last_seen = HistoryFileStamp::read(&self.file);
    }

    /// Returns whether another process removed or shortened the file.
    fn was_cleared(&self) -> bool {
        let Some(known) = self.last_seen else { return false };
        HistoryFileStamp::read(&self.file)
            .is_none_or(|now| now.inode != known.inode || now.length < known.length)
    }
}
