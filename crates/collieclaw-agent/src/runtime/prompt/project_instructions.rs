//! The instructions of a project: the file `AGENTS.md` in its folder.

use std::fs::File;
use std::io::Read;

use collieclaw_gate::GatePolicy;

use crate::security::{BlockingWorkers, FileError, WorkspaceHandle};
use crate::tools::truncate_text;

/// The name of the file, in the workspace itself.
const FILE_NAME: &str = "AGENTS.md";

/// The maximum length of the instructions. Every request to the model contains them.
const MAX_BYTES: usize = 16 * 1024;

/// The time after which the workspace counts as unreachable.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

static READ_WORKERS: BlockingWorkers = BlockingWorkers::new(8);

/// Returns the instructions of the workspace, each line with a mark in front of it, so that the text can't pretend to
/// end. `None` if there is no such file, or if it may not be read: a symlink could show the model any file.
pub(in crate::runtime) fn read_project_instructions(
    workspace: &WorkspaceHandle,
    policy: &GatePolicy,
) -> Option<String> {
    let (workspace, policy) = (workspace.try_clone().ok()?, policy.clone());
    let bytes = READ_WORKERS.run(READ_TIMEOUT, move || read_file(&workspace, &policy).ok())??;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| mark_lines(text, bytes.len() > MAX_BYTES))
}

fn read_file(workspace: &WorkspaceHandle, policy: &GatePolicy) -> Result<Vec<u8>, FileError> {
    let path = workspace.path().join(FILE_NAME);
    let file = File::from(workspace.access_under(policy).open_without_links(&path)?);
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn mark_lines(text: &str, is_cut: bool) -> String {
    let mut marked = String::new();
    for line in truncate_text(text, MAX_BYTES).lines() {
        let plain: String = line.chars().filter(|letter| !letter.is_control() || *letter == '\t').collect();
        marked.push_str("| ");
        marked.push_str(&plain);
        marked.push('\n');
    }
    if is_cut {
        marked.push_str(&format!(
            "The file is longer than {MAX_BYTES} bytes; read the rest with a tool if you need it.\n"
        ));
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_marked_and_has_no_control_characters() {
        assert_eq!(mark_lines("a\n\nb\u{1b}[2J\r\n\tc", false), "| a\n| \n| b[2J\n| \tc\n");
        assert_eq!(mark_lines("a\u{85}b\rc", false), "| abc\n");
    }
}
