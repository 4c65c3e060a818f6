//! The tool `file_move`, which gives a file, a folder or a symlink another path.

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::shell::guard_repositories;
use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{EntryKind, ExistingTarget, FileAccess, FileError};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileMoveCall {
    /// The file or folder, relative to the workspace. A symlink is moved itself, not its target.
    from: String,
    /// The complete new path, relative to the workspace. Missing folders are created.
    to: String,
    /// If true, an existing file at the new path is replaced. A folder is never replaced.
    #[serde(default)]
    overwrite: bool,
}

impl BuiltInTool for FileMoveCall {
    const NAME: &'static str = "file_move";
    const DESCRIPTION: &'static str =
        "Moves or renames a file or folder. An existing file is replaced only if `overwrite` is true.";
}

impl PreparedCall for FileMoveCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileMove { from: &self.from, to: &self.to }
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let path = self.from.clone();
        let result = run_with_files(context, &path, move |access| self.move_entry(access));
        result.warn_if_left_behind("the file may have been moved or not: look before you move it again")
    }
}

impl FileMoveCall {
    fn move_entry(&self, access: FileAccess<'_>) -> Result<ToolResult, FileError> {
        let existing = if self.overwrite { ExistingTarget::Replace } else { ExistingTarget::Keep };
        let (from, to) = (access.absolute_path(&self.from)?, access.absolute_path(&self.to)?);
        guard_repositories(access, &to, || self.report_move(access.move_entry(&from, &to, existing)))
    }

    fn report_move(&self, moved: Result<EntryKind, FileError>) -> Result<ToolResult, FileError> {
        match moved {
            Ok(kind) => {
                let output = format!("moved the {} `{}` to `{}`", kind_name(kind), self.from, self.to);
                Ok(ToolResult::done(output))
            }
            Err(FileError::Exists) => Ok(ToolResult::failed(format!(
                "`{}` exists already; choose another path, or set `overwrite` to true to replace a file",
                self.to
            ))),
            Err(FileError::IsAFolder) => Ok(ToolResult::failed(format!(
                "a folder can't be replaced and can't replace anything: `{}` is taken; name the complete new path",
                self.to
            ))),
            Err(error) => Err(error),
        }
    }
}

/// Returns the word for the kind of an entry.
pub(super) fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Folder => "folder",
        EntryKind::Link => "symlink",
    }
}
