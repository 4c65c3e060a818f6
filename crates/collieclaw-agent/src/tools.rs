//! Tools that the model may call. A tool describes its arguments and what a call would do; a call runs only
//! with a [`CallGrant`] of the gateway.

mod ask_user;
mod file_delete;
mod file_edit;
mod file_glob;
mod file_list;
mod file_move;
mod file_read;
mod file_search;
mod file_write;
mod foreign;
mod http;
mod line_proxy;
mod memory_search;
pub(crate) mod memory_watch;
mod output_limit;
mod page_text;
mod pdf_extract;
pub(crate) mod schema;
pub(crate) mod shell;
mod time;
mod timeout;
pub(crate) mod tool_sandbox;
mod toolchain_access;
mod web_search;

pub use foreign::ForeignTool;
pub use memory_watch::{describe_exceeded_memory, exceeds_memory, needs_memory_watch};
pub(crate) use output_limit::limit_output;
pub use shell::{SandboxProbe, next_tree_id, sandbox_level};
pub use tool_sandbox::{MAX_MEMORY, SandboxAccess, ToolSandbox, WorkspaceAccess};
pub use toolchain_access::ToolchainAccess;

use std::marker::PhantomData;
use std::time::Duration;

use collieclaw_gate::{GatePolicy, GateRequest};
use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::net::SearchService;
pub use collieclaw_providers::text::truncate_text;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::memory::ConversationMemory;
use crate::receipts::ExecutedCommands;
use crate::runtime::{CallGrant, QuestionChannel};
use crate::security::WorkspaceHandle;

/// A tool that the model may call (C6.1).
pub trait Tool {
    /// Returns the name by which the model calls the tool.
    fn name(&self) -> &str;
    /// Returns the description that the model reads.
    fn description(&self) -> &str;
    /// Returns the JSON Schema of the arguments.
    fn parameters_schema(&self) -> Value;
    /// Checks arguments against the schema before anything else happens.
    ///
    /// # Errors
    /// Fails with the reason why the arguments are invalid.
    fn prepare(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, BadArguments>;
}

/// A call with valid arguments. The gate judges the same value that is run, so nothing can change in between.
pub trait PreparedCall {
    /// Returns the request that the gate judges and takes the risk from.
    fn call(&self) -> GateRequest<'_>;
    /// Returns the effect of the call for the operator to see before an approval, such as a diff. It changes nothing.
    fn preview(&self, context: &ToolContext<'_>) -> CallPreview {
        let _ = context;
        CallPreview::None
    }
    /// Runs the call.
    fn invoke(self: Box<Self>, granted: CallGrant, context: &ToolContext<'_>) -> ToolResult;
}

/// The effect of a call before it has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallPreview {
    /// The arguments say everything.
    None,
    Shown(String),
    /// The call can't do its work, for this reason.
    WouldFail(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments for `{tool}`: {fault}")]
pub struct BadArguments {
    pub tool: String,
    pub fault: String,
}

impl BadArguments {
    /// Creates the error for a tool. A long fault is truncated.
    #[must_use]
    pub fn new(tool: &str, fault: &str) -> Self {
        Self { tool: tool.to_owned(), fault: truncate_text(fault, MAX_FAULT_BYTES) }
    }
}

/// The resources that a tool may use during a call.
pub struct ToolContext<'a> {
    /// The rules. A tool that opens a file checks them again for the opened file.
    pub policy: &'a GatePolicy,
    /// The only access to files.
    pub workspace: &'a WorkspaceHandle,
    pub memory: &'a ConversationMemory,
    /// The web search service, if one is configured.
    pub search: Option<&'a SearchService>,
    /// Raised when the tool has to stop at once.
    pub cancel: &'a CancelFlag,
    /// The channel for questions to the operator.
    pub questioner: &'a dyn QuestionChannel,
    pub bounds: ToolBounds,
    /// Toolchains of the workspace in the user's home.
    pub toolchain: &'a ToolchainAccess,
}

/// Limits on the time and the output of a tool (C9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolBounds {
    pub tool_timeout: Duration,
    pub shell_timeout: Duration,
    pub http_timeout: Duration,
    /// The maximum size of data that a tool reads or receives.
    pub max_response_bytes: usize,
    /// The maximum size of a result that the model gets. The model can ask for the rest.
    pub max_output_bytes: usize,
}

/// The report of a tool about its own run. The gateway makes a [`CallOutcome`](crate::runtime::CallOutcome) of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub end: ToolEnd,
    /// The output for the model.
    pub output: String,
    /// Facts about the run, such as an exit code, for the model and the memory.
    pub metadata: serde_json::Map<String, Value>,
    /// The parts of the sandbox that were in force, if the tool ran in one; for the receipt.
    pub sandbox: Option<String>,
    /// The programs that the tool ran and that were judged one by one; for the receipt.
    pub commands: ExecutedCommands,
}

/// The end of a tool's run, as far as the tool knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEnd {
    /// The tool did its work.
    Done,
    /// The tool failed with this error.
    Failed(String),
    /// The tool's cancel flag was raised. The gateway knows the reason, the tool doesn't.
    Cancelled,
}

impl ToolResult {
    /// Creates the result of a tool that did its work.
    #[must_use]
    pub fn done(output: impl Into<String>) -> Self {
        Self {
            end: ToolEnd::Done,
            output: output.into(),
            metadata: serde_json::Map::new(),
            sandbox: None,
            commands: ExecutedCommands::default(),
        }
    }

    /// Creates the result of a tool that failed.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { end: ToolEnd::Failed(error.into()), ..Self::done("") }
    }

    /// Creates the result of a tool whose cancel flag was raised.
    #[must_use]
    pub fn cancelled() -> Self {
        Self { end: ToolEnd::Cancelled, ..Self::done("") }
    }

    /// Adds a warning for the model if the run was abandoned: the thread that was left behind may still finish its work.
    #[must_use]
    fn warn_if_left_behind(self, warning: &str) -> Self {
        match self.end == ToolEnd::Cancelled || self.metadata.contains_key("timed_out") {
            true => Self { output: warning.to_owned(), ..self },
            false => self,
        }
    }

    /// Adds a fact about the run.
    #[must_use]
    pub fn with_metadata(mut self, fact: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(fact.to_owned(), value.into());
        self
    }
}

/// The maximum length of a fault, which quotes what the model wrote.
const MAX_FAULT_BYTES: usize = 300;

/// Returns the fault of a schema that arguments can't be checked with, or `None` if it is valid.
#[must_use]
pub fn schema_fault(schema: &Value) -> Option<String> {
    schema::check_schema(schema).err()
}

/// Returns true if OpenAI-compatible servers accept this as the name of a tool.
#[must_use]
pub fn is_tool_name(text: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    (1..=MAX_TOOL_NAME_BYTES).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_allowed)
}

const MAX_TOOL_NAME_BYTES: usize = 64;

/// A built-in tool. The type describes the arguments, and the schema and the check are derived from it.
trait BuiltInTool: PreparedCall + DeserializeOwned + JsonSchema + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    /// Checks rules that the type of the arguments can't express.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Implements [`Tool`] for the argument type of a built-in tool.
struct BuiltInToolAdapter<T>(PhantomData<T>);

impl<T: BuiltInTool> Tool for BuiltInToolAdapter<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn description(&self) -> &str {
        T::DESCRIPTION
    }

    fn parameters_schema(&self) -> Value {
        let mut schema = schemars::schema_for!(T);
        for unused_key in ["$schema", "title", "description"] {
            schema.remove(unused_key);
        }
        schema.to_value()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, BadArguments> {
        let invalid = |fault: String| BadArguments::new(T::NAME, &fault);
        // Serde would also accept a list, whose values have no names when they are shown.
        if !arguments.is_object() {
            return Err(invalid("expected an object, such as {\"name\": \"value\"}".to_owned()));
        }
        let call = T::deserialize(arguments).map_err(|fault| invalid(fault.to_string()))?;
        call.validate().map_err(invalid)?;
        Ok(Box::new(call))
    }
}

/// Returns all built-in tools.
#[must_use]
pub fn built_in_tools() -> Vec<Box<dyn Tool>> {
    fn boxed_tool<T: BuiltInTool>() -> Box<dyn Tool> {
        Box::new(BuiltInToolAdapter::<T>(PhantomData))
    }
    vec![
        boxed_tool::<time::TimeCall>(),
        boxed_tool::<file_list::FileListCall>(),
        boxed_tool::<file_read::FileReadCall>(),
        boxed_tool::<file_write::FileWriteCall>(),
        boxed_tool::<file_edit::FileEditCall>(),
        boxed_tool::<file_search::FileSearchCall>(),
        boxed_tool::<file_glob::FileGlobCall>(),
        boxed_tool::<file_move::FileMoveCall>(),
        boxed_tool::<file_delete::FileDeleteCall>(),
        boxed_tool::<shell::ShellCall>(),
        boxed_tool::<http::HttpCall>(),
        boxed_tool::<memory_search::MemorySearchCall>(),
        boxed_tool::<ask_user::AskUserCall>(),
        boxed_tool::<pdf_extract::PdfExtractCall>(),
        boxed_tool::<web_search::WebSearchCall>(),
    ]
}
