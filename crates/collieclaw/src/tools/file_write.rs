//! `file_write`: makes or replaces a text file, as a whole or not at all.

use collieclaw_gate::{Call, absolute};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{BadArguments, Context, Prepared, Tool, ToolResult, read, schema};
use crate::runtime::Granted;
use crate::security::Written;

/// See the module.
pub(super) struct FileWrite;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace. Folders that are missing on the way are made.
    path: String,
    /// The whole text of the file.
    content: String,
}

impl Tool for FileWrite {
    fn name(&self) -> &'static str {
        "file_write"
    }

    fn description(&self) -> &'static str {
        "Writes a text file (UTF-8), replacing what it held before."
    }

    fn parameters_schema(&self) -> Value {
        schema::<Arguments>()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn Prepared>, BadArguments> {
        Ok(Box::new(read::<Arguments>(self.name(), arguments)?))
    }
}

impl Prepared for Arguments {
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
