//! The tool `file_write`, which creates a text file or replaces it atomically.

use std::path::Path;

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::shell::guard_repositories;
use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{FileAccess, FileError, WriteOutcome};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileWriteCall {
    /// The file, relative to the workspace. Missing folders are created.
    path: String,
    /// The complete new text of the file.
    content: String,
}

impl BuiltInTool for FileWriteCall {
    const NAME: &'static str = "file_write";
    const DESCRIPTION: &'static str = "Writes a text file (UTF-8). An existing file is replaced.";
}

impl PreparedCall for FileWriteCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileWrite(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let path = self.path.clone();
        let result = run_with_files(context, &path, move |access| self.write(access));
        result
            .warn_if_left_behind("the file may have been replaced or not: read it before you write it again")
    }
}

impl FileWriteCall {
    fn write(&self, access: FileAccess<'_>) -> Result<ToolResult, FileError> {
        let place = access.absolute_path(&self.path)?;
        guard_repositories(access, &place, || self.replace(access, &place))
    }

    fn replace(&self, access: FileAccess<'_>, place: &Path) -> Result<ToolResult, FileError> {
        let written = access.replace(place, self.content.as_bytes())?;
        let (word, created) = match written {
            WriteOutcome::Created => ("created", true),
            WriteOutcome::Replaced => ("replaced", false),
        };
        let bytes = self.content.len();
        let result = ToolResult::done(format!("{word} `{}`, {bytes} bytes", self.path));
        Ok(result.with_metadata("bytes", bytes).with_metadata("created", created))
    }
}
