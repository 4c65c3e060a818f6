//! What the model may ask for. A tool says what it takes and what it would do; it runs only with a grant of the door.

mod ask_user;
mod file_list;
mod file_read;
mod file_write;
mod foreign;
mod http;
mod memory_search;
mod pdf_extract;
pub(crate) mod schema;
pub(crate) mod shell;
mod time;
mod timeout;
pub(crate) mod tool_sandbox;
mod web_search;

pub use foreign::ForeignTool;
pub use shell::{SandboxProbe, next_tree_id, sandbox_level};
pub use tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};

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
use crate::runtime::{CallGrant, QuestionChannel};
use crate::security::WorkspaceHandle;

/// A tool (C6.1).
pub trait Tool {
    /// What the model calls it.
    fn name(&self) -> &str;
    /// What it is for, in a sentence for the model.
    fn description(&self) -> &str;
    /// Its arguments, as JSON Schema.
    fn parameters_schema(&self) -> Value;
    /// Checks arguments against the schema, before anything else happens.
    ///
    /// # Errors
    /// With what doesn't fit.
    fn prepare(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, BadArguments>;
}

/// A call whose arguments fit: one value is judged and run, so that nothing can come between.
pub trait PreparedCall {
    /// What the gate is to judge. The risk follows from it.
    fn call(&self) -> GateRequest<'_>;
    /// Runs it.
    fn invoke(self: Box<Self>, granted: CallGrant, context: &ToolContext<'_>) -> ToolResult;
}

/// Arguments that don't fit the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments of `{tool}` don't fit: {fault}")]
pub struct BadArguments {
    /// The tool.
    pub tool: String,
    /// What doesn't fit.
    pub fault: String,
}

impl BadArguments {
    /// Of this tool; the fault is cut where it gets too long.
    #[must_use]
    pub fn new(tool: &str, fault: &str) -> Self {
        Self { tool: tool.to_owned(), fault: truncate_text(fault, MAX_FAULT_BYTES) }
    }
}

/// What a tool may use.
pub struct ToolContext<'a> {
    /// The rules: a tool that opens something looks again at what it opened.
    pub policy: &'a GatePolicy,
    /// The only way to files.
    pub workspace: &'a WorkspaceHandle,
    /// Earlier conversations.
    pub memory: &'a ConversationMemory,
    /// Who is asked what the web knows.
    pub search: Option<&'a SearchService>,
    /// Raised when the work is to end at once.
    pub cancel: &'a CancelFlag,
    /// Whoever can be asked for words.
    pub questioner: &'a dyn QuestionChannel,
    /// How long and how much.
    pub bounds: ToolBounds,
}

/// The limits of C9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolBounds {
    /// Of any tool.
    pub tool_timeout: Duration,
    /// Of a shell line.
    pub shell_timeout: Duration,
    /// Of a request.
    pub http_timeout: Duration,
    /// Of what a tool returns.
    pub max_response_bytes: usize,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// How it ended.
    pub end: ToolEnd,
    /// What goes back to the model.
    pub output: String,
    /// Facts about it, such as an exit code. Goes into the memory and to the model.
    pub metadata: serde_json::Map<String, Value>,
    /// What of the sandbox was in force, if there was one; goes into the receipt.
    pub sandbox: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEnd {
    /// As it should.
    Done,
    /// It didn't work, for this reason.
    Failed(String),
    /// It was ended by the emergency stop or by the operator.
    Cancelled,
}

impl ToolResult {
    /// It worked.
    #[must_use]
    pub fn done(output: impl Into<String>) -> Self {
        Self { end: ToolEnd::Done, output: output.into(), metadata: serde_json::Map::new(), sandbox: None }
    }

    /// It didn't.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { end: ToolEnd::Failed(error.into()), ..Self::done("") }
    }

    /// Somebody said stop.
    #[must_use]
    pub fn cancelled() -> Self {
        Self { end: ToolEnd::Cancelled, ..Self::done("") }
    }

    /// With one more fact.
    #[must_use]
    pub fn with_metadata(mut self, fact: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(fact.to_owned(), value.into());
        self
    }
}

/// A fault quotes what the model wrote.
const MAX_FAULT_BYTES: usize = 300;

/// Why arguments can't be checked with a schema, if so.
#[must_use]
pub fn schema_fault(schema: &Value) -> Option<String> {
    schema::check_schema(schema).err()
}

/// Whether servers of the common protocol take this as the name of a tool.
#[must_use]
pub fn is_tool_name(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    (1..=MAX_TOOL_NAME_BYTES).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(letters)
}

/// What they take at most.
const MAX_TOOL_NAME_BYTES: usize = 64;

/// A tool of ours. Its arguments are a type: schema and check follow from it and can't drift apart.
trait BuiltInTool: PreparedCall + DeserializeOwned + JsonSchema + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    /// What the types can't say of the arguments.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A tool that is known by its arguments.
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
        for of_no_use_to_a_model in ["$schema", "title", "description"] {
            schema.remove(of_no_use_to_a_model);
        }
        schema.to_value()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, BadArguments> {
        let bad = |fault: String| BadArguments::new(T::NAME, &fault);
        // A list would fit the type as well, and be shown to nobody by its names.
        if !arguments.is_object() {
            return Err(bad("they must be an object, such as {\"name\": \"value\"}".to_owned()));
        }
        let fitting = T::deserialize(arguments).map_err(|fault| bad(fault.to_string()))?;
        fitting.validate().map_err(bad)?;
        Ok(Box::new(fitting))
    }
}

/// Every tool that is built in.
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
        boxed_tool::<shell::ShellCall>(),
        boxed_tool::<http::HttpCall>(),
        boxed_tool::<memory_search::MemorySearchCall>(),
        boxed_tool::<ask_user::AskUserCall>(),
        boxed_tool::<pdf_extract::PdfExtractCall>(),
        boxed_tool::<web_search::WebSearchCall>(),
    ]
}
