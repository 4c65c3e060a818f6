//! What was typed at the prompt, in a file.
//!
//! A history that is not there yet, or can't be kept, keeps nobody from talking.

use std::fs;
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::LineEditor;

pub(super) struct HistoryFile {
    file: PathBuf,
    /// As it was when it was last read or written here.
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

    /// At once: whoever kills the program has not lost what was typed.
    pub(super) fn append(&mut self, line: &str, editor: &mut LineEditor) {
        // What comes through a pipe was not typed.
        if !std::io::stdin().is_terminal() {
            return;
        }
        if self.was_cleared() {
            // The editor would write all that it remembers again.
            let _ = editor.clear_history();
            let _ = editor.load_history(&self.file);
        }
        let _ = editor.add_history_entry(line);
        let _ = editor.append_history(&self.file);
        self.last_seen = HistoryFileStamp::read(&self.file);
    }

    /// Whether somebody removed the file, or took something out of it.
    fn was_cleared(&self) -> bool {
        let Some(known) = self.last_seen else { return false };
        HistoryFileStamp::read(&self.file)
            .is_none_or(|now| now.inode != known.inode || now.length < known.length)
    }
}
