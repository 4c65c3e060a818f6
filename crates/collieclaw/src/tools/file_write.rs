//! `file_write`: makes or replaces a text file, as a whole or not at all.

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;

use super::in_time::with_files;
use super::{BuiltIn, Context, End, Prepared, ToolResult};
use crate::runtime::Granted;
use crate::security::{Access, FileError, Written};

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileWrite {
    /// The file, relative to the workspace. Folders that are missing on the way are made.
    path: String,
    /// The whole text of the file.
    content: String,
}

impl BuiltIn for FileWrite {
    const NAME: &'static str = "file_write";
    const DESCRIPTION: &'static str = "Writes a text file (UTF-8), replacing what it held before.";
}

impl Prepared for FileWrite {
    fn call(&self) -> Call<'_> {
        Call::FileWrite(&self.path)
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let path = self.path.clone();
        let result = with_files(context, &path, move |access| self.write(access));
        if result.end == End::Cancelled || result.metadata.contains_key("timed_out") {
            // The file may have got its new content just before nobody waited any more.
            let output =
                "whether the file was replaced is not known: read it before you write it again".to_owned();
            return ToolResult { output, ..result };
        }
        result
    }
}

impl FileWrite {
    fn write(&self, access: Access<'_>) -> Result<ToolResult, FileError> {
        let written = access.replace(&access.place(&self.path)?, self.content.as_bytes())?;
        let (word, created) = match written {
            Written::Created => ("created", true),
            Written::Replaced => ("replaced", false),
        };
        let bytes = self.content.len();
        let told = ToolResult::done(format!("{word} `{}`, {bytes} bytes", self.path));
        Ok(told.with("bytes", bytes).with("created", created))
    }
}
