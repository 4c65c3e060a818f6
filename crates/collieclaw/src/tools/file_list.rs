//! `file_list`: what a folder holds.

use std::fmt::Write;

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;

use super::in_time::with_files;
use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::runtime::Granted;
use crate::security::{Access, Depth, Entry, FileError, Kind};

/// Entries in one answer: more than a model can make use of.
const MOST_ENTRIES: usize = 10_000;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileList {
    /// The folder, relative to the workspace; `.` is the workspace itself.
    #[serde(default = "workspace_itself")]
    path: String,
    /// Whether the folders in it are listed, too.
    #[serde(default)]
    recursive: bool,
}

fn workspace_itself() -> String {
    ".".to_owned()
}

impl BuiltIn for FileList {
    const NAME: &'static str = "file_list";
    const DESCRIPTION: &'static str = "Lists a folder: names, kinds and sizes in bytes, sorted.";
}

impl Prepared for FileList {
    fn call(&self) -> Call<'_> {
        Call::FileList(&self.path)
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let (path, most) = (self.path.clone(), context.bounds.max_response_bytes);
        with_files(context, &path, move |access| self.list(access, most))
    }
}

impl FileList {
    fn list(&self, access: Access<'_>, most: usize) -> Result<ToolResult, FileError> {
        let depth = if self.recursive { Depth::All } else { Depth::This };
        let listing = access.list(&access.place(&self.path)?, depth, MOST_ENTRIES)?;
        let mut output = String::new();
        let mut shown = 0_usize;
        for line in listing.entries.iter().map(line) {
            if output.len() + line.len() > most {
                break;
            }
            output.push_str(&line);
            shown += 1;
        }
        let left_out = listing.left_out || shown < listing.entries.len();
        Ok(ToolResult::done(output).with("entries", shown).with("truncated", left_out))
    }
}

/// One line for an entry. A name can hold anything, a line break too; it is shown so that it stays one line.
fn line(entry: &Entry) -> String {
    let mut line = shown(&entry.path);
    // Writing to a text can't fail.
    let _ = match &entry.kind {
        Kind::File { bytes } => writeln!(line, "\t{bytes}"),
        Kind::Folder => writeln!(line, "/"),
        Kind::Link { to } => writeln!(line, " -> {}", shown(to)),
        Kind::Special => writeln!(line, "\t(neither a file nor a folder)"),
    };
    line
}

fn shown(path: &std::path::Path) -> String {
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
    fn a_name_stays_on_its_line_and_writes_nothing_to_a_terminal() {
        let entry = Entry { path: "a\nb\u{1b}[2J\u{9b}ä".into(), kind: Kind::File { bytes: 7 } };
        assert_eq!(line(&entry), "a\\nb\\u{1b}[2J\\u{9b}ä\t7\n");
        let link = Entry { path: "l".into(), kind: Kind::Link { to: "x\ny".into() } };
        assert_eq!(line(&link), "l -> x\\ny\n");
    }
}
