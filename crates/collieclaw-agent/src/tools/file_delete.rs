//! The tool `file_delete`, which moves a file, a folder or a symlink into the trash in the agent's home.

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::file_move::kind_name;
use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::home::AgentHome;
use crate::runtime::CallGrant;
use crate::security::FileError;
use crate::trash::{TrashError, TrashStore};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDeleteCall {
    /// The file or folder, relative to the workspace. A symlink is removed itself, not its target.
    path: String,
}

impl BuiltInTool for FileDeleteCall {
    const NAME: &'static str = "file_delete";
    const DESCRIPTION: &'static str =
        "Deletes a file, or a folder with its content. The operator can restore it from the trash.";
}

impl PreparedCall for FileDeleteCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileDelete(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let trash = TrashStore::new(&AgentHome::new(&context.policy.own_home));
        let (path, workspace) = (self.path.clone(), context.workspace.path().to_owned());
        let result = run_with_files(context, &path, move |access| {
            let target = access.absolute_path(&self.path)?;
            match trash.put(access, &workspace, &target) {
                Ok((item, kind)) => {
                    let output = format!("moved the {} `{}` into the trash", kind_name(kind), self.path);
                    Ok(ToolResult::done(output).with_metadata("trash_id", item.id))
                }
                Err(TrashError::Entry { source: FileError::TooLarge, .. }) => {
                    Ok(ToolResult::failed(format!(
                        "`{}` is too large for the trash, which is on another file system; delete parts of it, or ask the \
                     operator to remove it by hand",
                        self.path
                    )))
                }
                Err(TrashError::Entry { source: FileError::PartlyRemoved(errno), .. }) => {
                    Ok(ToolResult::failed(format!(
                        "`{}` is in the trash, but a part of it could not be removed from the workspace: {errno}",
                        self.path
                    )))
                }
                Err(TrashError::Entry { source, .. }) => Err(source),
                Err(error) => Ok(ToolResult::failed(ward_diag::ErrorChain(&error).to_string())),
            }
        });
        result.warn_if_left_behind("the file may have been deleted or not: look before you delete it again")
    }
}
