//! The outcome of a line or a program, before it becomes the result of a tool.

use super::super::{ToolEnd, ToolResult};
use super::output_capture::CapturedStream;
use super::report::{LineEnd, format_end, format_output};
use crate::receipts::ExecutedCommands;

/// The outcome of a line or a program.
pub(crate) struct ExecutionOutput {
    /// The end of the line, or the reason why it could not be run safely.
    pub(crate) end: Result<LineEnd, String>,
    pub(crate) stdout: CapturedStream,
    pub(crate) stderr: CapturedStream,
    /// The level of the sandbox.
    pub(crate) sandbox: Option<String>,
    /// The connections through the proxy.
    pub(crate) network: Option<serde_json::Value>,
    /// The refusal of a command that ended the line.
    pub(super) refusal: Option<String>,
    pub(super) commands: ExecutedCommands,
}

impl ExecutionOutput {
    /// Returns the result with the output that was printed until the end, however the line ended.
    pub(super) fn into_tool_result(self, max_bytes: usize) -> ToolResult {
        let result = match self.end {
            Ok(end) => format_end(end),
            Err(why) => ToolResult::failed(why),
        };
        let result = match self.network {
            Some(network) => result.with_metadata("network", network),
            None => result,
        };
        let end = match self.refusal {
            Some(refusal) if result.end != ToolEnd::Cancelled => ToolEnd::Failed(refusal),
            _ => result.end,
        };
        let (output, truncated) = format_output(&self.stdout, &self.stderr, max_bytes);
        ToolResult { end, output, sandbox: self.sandbox, commands: self.commands, ..result }
            .with_metadata("stdout_bytes", self.stdout.total)
            .with_metadata("stderr_bytes", self.stderr.total)
            .with_metadata("truncated", truncated)
    }
}
