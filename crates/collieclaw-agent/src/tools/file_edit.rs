//! The tool `file_edit`, which replaces exact pieces of text in a file. All edits of a call are made, or none.

mod replacement;
mod text_diff;

use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use ward_ledger::Sha256Hash;

use super::shell::guard_repositories;
use super::timeout::run_with_files;
use super::{BuiltInTool, CallPreview, PreparedCall, ToolContext, ToolEnd, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{FileAccess, FileError};
use replacement::apply_edits;
use text_diff::unified_diff;

/// The maximum size of a file that can be edited.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The maximum number of edits in one call.
const MAX_EDITS: usize = 200;

/// The maximum length of the diff that the operator sees. The arguments of the call are always shown completely.
const MAX_PREVIEW_BYTES: usize = 64 * 1024;

/// The maximum length of the diff that the model gets.
const MAX_DIFF_BYTES: usize = 8 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEditCall {
    /// The file, relative to the workspace.
    path: String,
    /// The edits, made one after the other. If one of them can't be made, the file is not changed.
    edits: Vec<TextEdit>,
    /// The hash of the text for which the diff was shown to the operator.
    #[serde(skip)]
    shown_text: OnceLock<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct TextEdit {
    /// The text to replace, exactly as it is in the file. It must occur only once, so include the lines around it.
    old_text: String,
    /// The new text.
    new_text: String,
    /// If true, every occurrence is replaced.
    #[serde(default)]
    replace_all: bool,
}

/// The text of a file before and after the edits.
struct EditedText {
    before: String,
    after: String,
    replacements: usize,
}

impl BuiltInTool for FileEditCall {
    const NAME: &'static str = "file_edit";
    const DESCRIPTION: &'static str = "Replaces exact pieces of text in a text file (UTF-8), and returns the diff. Read the file first: each `old_text` \
     must be in it exactly once.";

    fn validate(&self) -> Result<(), String> {
        if self.edits.is_empty() || self.edits.len() > MAX_EDITS {
            return Err(format!("`edits` must have between 1 and {MAX_EDITS} elements"));
        }
        for (number, edit) in (1..).zip(&self.edits) {
            if edit.old_text.is_empty() {
                return Err(format!(
                    "`old_text` of edit {number} is empty; to create a file, use `file_write`"
                ));
            }
            if edit.old_text == edit.new_text {
                return Err(format!("`old_text` and `new_text` of edit {number} are the same"));
            }
        }
        Ok(())
    }
}

impl PreparedCall for FileEditCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileWrite(&self.path)
    }

    fn preview(&self, context: &ToolContext<'_>) -> CallPreview {
        let (path, edits) = (self.path.clone(), self.edits.iter().map(TextEdit::copy).collect::<Vec<_>>());
        let shown = run_with_files(context, &self.path, move |access| {
            Ok(match edit_text(access, &path, &edits)? {
                Err(error) => ToolResult::failed(error),
                Ok(edited) => {
                    let diff = unified_diff(&path, &edited.before, &edited.after, MAX_PREVIEW_BYTES);
                    ToolResult::done(diff).with_metadata("text", hash_text(&edited.before))
                }
            })
        });
        match shown.end {
            ToolEnd::Done => {
                let hash = shown.metadata.get("text").and_then(|hash| hash.as_str()).unwrap_or_default();
                // A call is shown once, so the value is not set yet.
                let _ = self.shown_text.set(hash.to_owned());
                CallPreview::Shown(shown.output)
            }
            ToolEnd::Failed(error) => CallPreview::WouldFail(error),
            ToolEnd::Cancelled => CallPreview::None,
        }
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let path = self.path.clone();
        let result = run_with_files(context, &path, move |access| self.edit(access));
        result.warn_if_left_behind("the file may have been edited or not: read it before you edit it again")
    }
}

impl FileEditCall {
    fn edit(&self, access: FileAccess<'_>) -> Result<ToolResult, FileError> {
        let edited = match edit_text(access, &self.path, &self.edits)? {
            Ok(edited) => edited,
            Err(error) => return Ok(ToolResult::failed(error)),
        };
        // The operator has approved the diff of another text.
        if self.shown_text.get().is_some_and(|shown| *shown != hash_text(&edited.before)) {
            let error =
                format!("`{}` has changed since the diff was shown; read it and try again", self.path);
            return Ok(ToolResult::failed(error));
        }
        let place = access.absolute_path(&self.path)?;
        guard_repositories(access, &place, || {
            access.replace(&place, edited.after.as_bytes())?;
            let diff = unified_diff(&self.path, &edited.before, &edited.after, MAX_DIFF_BYTES);
            let count = edited.replacements;
            let word = if count == 1 { "replacement" } else { "replacements" };
            let output = format!("edited `{}`, {count} {word}\n{diff}", self.path);
            Ok(ToolResult::done(output).with_metadata("replacements", count))
        })
    }
}

impl TextEdit {
    fn copy(&self) -> Self {
        Self {
            old_text: self.old_text.clone(),
            new_text: self.new_text.clone(),
            replace_all: self.replace_all,
        }
    }
}

/// Reads a file and makes the edits in memory. The inner error says why an edit can't be made.
fn edit_text(
    access: FileAccess<'_>,
    path: &str,
    edits: &[TextEdit],
) -> Result<Result<EditedText, String>, FileError> {
    let file = File::from(access.open_for_reading(&access.absolute_path(path)?)?);
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let limit = MAX_FILE_BYTES >> 20;
        return Ok(Err(format!("`{path}` is larger than {limit} MB, the limit for edits")));
    }
    let before = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let byte = error.utf8_error().valid_up_to();
            return Ok(Err(format!("`{path}` is not UTF-8 text (byte {byte})")));
        }
    };
    Ok(match apply_edits(&before, edits) {
        Ok((after, replacements)) => Ok(EditedText { before, after, replacements }),
        Err(fault) => Err(format!("`{path}` was not changed: {fault}")),
    })
}

fn hash_text(text: &str) -> String {
    Sha256Hash::of(&[text.as_bytes()]).to_string()
}
