//! `file_write`: makes or replaces a text file, as a whole or not at all.

use collieclaw_gate::{Call, absolute};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::runtime::Granted;
use crate::security::Written;

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
        let path = &self.path;
        let place = match absolute(path, context.policy) {
            Ok(place) => place,
            Err(reason) => return ToolResult::failed(reason.detail()),
        };
        let bytes = self.content.len();
        match context.workspace.under(context.policy).replace(&place, self.content.as_bytes()) {
            Ok(Written::Created) => ToolResult::done(format!("created `{path}`, {bytes} bytes"))
                .with("bytes", bytes)
                .with("created", true),
            Ok(Written::Replaced) => ToolResult::done(format!("replaced `{path}`, {bytes} bytes"))
                .with("bytes", bytes)
                .with("created", false),
            Err(error) => ToolResult::failed(format!("`{path}` {error}")),
        }
    }
}
