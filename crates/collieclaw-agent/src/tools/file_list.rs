//! The tool `file_list`, which lists the content of a folder.

use std::fmt::Write;

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{FileAccess, FileError, ListingDepth, ListingEntry, ListingKind};

/// The maximum number of entries in one result.
const MAX_ENTRIES: usize = 10_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileListCall {
    /// The folder, relative to the workspace; `.` is the workspace itself.
    #[serde(default = "default_path")]
    path: String,
    /// If true, subfolders are listed as well.
    #[serde(default)]
    recursive: bool,
}

fn default_path() -> String {
    ".".to_owned()
}

impl BuiltInTool for FileListCall {
    const NAME: &'static str = "file_list";
    const DESCRIPTION: &'static str =
        "Lists the files and folders in a folder, sorted by name, with their kinds and sizes in bytes.";
}

impl PreparedCall for FileListCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileList(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let (path, max_bytes) = (self.path.clone(), context.bounds.max_output_bytes);
        run_with_files(context, &path, move |access| self.list(access, max_bytes))
    }
}

impl FileListCall {
    fn list(&self, access: FileAccess<'_>, max_bytes: usize) -> Result<ToolResult, FileError> {
        let depth = if self.recursive { ListingDepth::Recursive } else { ListingDepth::Shallow };
        let listing = access.list(&access.absolute_path(&self.path)?, depth, MAX_ENTRIES)?;
        let mut output = String::new();
        let mut shown = 0_usize;
        for line in listing.entries.iter().map(format_entry) {
            if output.len() + line.len() > max_bytes {
                break;
            }
            output.push_str(&line);
            shown += 1;
        }
        let left_out = listing.truncated || shown < listing.entries.len();
        let result =
            ToolResult::done(output).with_metadata("entries", shown).with_metadata("truncated", left_out);
        let rest = "for the rest, list a subfolder, or find files with `file_glob`";
        Ok(if left_out { result.with_metadata("rest", rest) } else { result })
    }
}

/// Formats an entry as one line. File names may contain any character, so control characters are escaped.
fn format_entry(entry: &ListingEntry) -> String {
    let mut line = escape_path(&entry.path);
    // Writing to a `String` can't fail.
    let _ = match &entry.kind {
        ListingKind::File { bytes } => writeln!(line, "\t{bytes}"),
        ListingKind::Folder => writeln!(line, "/"),
        ListingKind::Link { to } => writeln!(line, " -> {}", escape_path(to)),
        ListingKind::Special => writeln!(line, "\t(neither a file nor a folder)"),
    };
    line
}

pub(super) fn escape_path(path: &std::path::Path) -> String {
    let mut shown = String::new();
    for letter in path.to_string_lossy().chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_names_are_escaped() {
        let entry =
            ListingEntry { path: "a\nb\u{1b}[2J\u{9b}ä".into(), kind: ListingKind::File { bytes: 7 } };
        assert_eq!(format_entry(&entry), "a\\nb\\u{1b}[2J\\u{9b}ä\t7\n");
        let link = ListingEntry { path: "l".into(), kind: ListingKind::Link { to: "x\ny".into() } };
        assert_eq!(format_entry(&link), "l -> x\\ny\n");
    }
}
