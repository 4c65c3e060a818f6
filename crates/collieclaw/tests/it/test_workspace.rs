//! A workspace with its surroundings: a home with secrets, a forbidden folder, and CollieClaw's own home.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use collieclaw_agent::events::{EventFormat, EventLevel, EventSink};
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::memory::ConversationMemory;
use collieclaw_agent::receipts::ReceiptLog;
use collieclaw_agent::runtime::{
    ApprovalAnswer, ApprovalPrompt, CallGrant, CallRules, Operator, OperatorQuestion, OperatorReply,
    ToolGateway, ToolOffer, ToolRequest, TurnControl,
};
use collieclaw_agent::security::{FileAccess, SystemFacts, WorkspaceHandle};
use collieclaw_agent::tools::{
    BadArguments, PreparedCall, Tool, ToolBounds, ToolContext, ToolResult, ToolchainAccess,
};
use collieclaw_gate::{
    AutonomyLevel, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS, GatePolicy,
    GateRequest, PathBounds,
};
use collieclaw_providers::cancel::CancelFlag;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct TestWorkspace {
    _folder: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) workspace: WorkspaceHandle,
    pub(crate) policy: GatePolicy,
    pub(crate) toolchain: ToolchainAccess,
}

pub(crate) const SECRET: &str = "the secret outside";

impl TestWorkspace {
    pub(crate) fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    pub(crate) fn new_in(parent: &Path) -> Self {
        let folder = tempfile::tempdir_in(parent).unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        let path = home.join("workspace");
        for made in ["workspace", ".ssh", ".collieclaw", "other"] {
            std::fs::create_dir_all(home.join(made)).unwrap();
        }
        for secret in [".ssh/id", ".collieclaw/config.toml", "other/diary", "secret"] {
            std::fs::write(home.join(secret), SECRET).unwrap();
        }
        let workspace = WorkspaceHandle::open(&path).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let policy = GatePolicy {
            autonomy: AutonomyLevel::Supervised,
            workspace: path.clone(),
            bounds: PathBounds::Workspace,
            user_home: home.clone(),
            own_home: home.join(".collieclaw"),
            own_files: Vec::new(),
            forbidden_paths: DEFAULT_FORBIDDEN_PATHS
                .iter()
                .map(|path| match path.strip_prefix("~/") {
                    Some(below) => home.join(below),
                    None => path.into(),
                })
                .collect(),
            forbidden_commands: names(DEFAULT_FORBIDDEN_COMMANDS),
            allowed_commands: names(DEFAULT_ALLOWED_COMMANDS),
            allowed_domains: Vec::new(),
            command_network: Default::default(),
            pinned_programs: Default::default(),
            allowed_scripts: Default::default(),
            project_programs: Default::default(),
            command_cache: None,
        };
        Self { _folder: folder, home, path, workspace, policy, toolchain: ToolchainAccess::default() }
    }

    pub(crate) fn access(&self) -> FileAccess<'_> {
        self.workspace.access_under(&self.policy)
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let place = self.path.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, text).unwrap();
        place
    }

    pub(crate) fn link(&self, to: impl AsRef<Path>, at: &str) -> PathBuf {
        std::os::unix::fs::symlink(to, self.path.join(at)).unwrap();
        self.path.join(at)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path.join(path)).unwrap()
    }
}

/// The tool gateway of a test workspace, which also keeps the original result of the tool.
pub(crate) struct TestToolGateway {
    tool_gateway: ToolGateway,
    last: Rc<RefCell<Option<ToolResult>>>,
    pub(crate) cancel: CancelFlag,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct TestCallResult {
    /// The code of the outcome.
    pub(crate) status: &'static str,
    /// The result of the tool, or `None` if it did not run.
    pub(crate) result: Option<ToolResult>,
    pub(crate) text: String,
}

impl TestCallResult {
    pub(crate) fn output(&self) -> &str {
        self.result.as_ref().map_or_else(|| panic!("it did not run: {}", self.text), |result| &result.output)
    }

    pub(crate) fn metadata(&self, name: &str) -> Value {
        let result = self.result.as_ref().unwrap_or_else(|| panic!("it did not run: {}", self.text));
        result.metadata.get(name).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn exit_code(&self) -> i64 {
        self.metadata("exit_code").as_i64().unwrap_or_else(|| panic!("no exit code: {self:?}"))
    }
}

impl TestWorkspace {
    pub(crate) fn gateway(&self) -> TestToolGateway {
        self.gateway_with_shell_limits(Duration::from_secs(30), 1 << 20)
    }

    pub(crate) fn gateway_with_shell_limits(
        &self,
        shell_timeout: Duration,
        max_response_bytes: usize,
    ) -> TestToolGateway {
        let long = Duration::from_secs(60);
        self.gateway_with_bounds(ToolBounds {
            tool_timeout: long,
            shell_timeout,
            http_timeout: long,
            max_response_bytes,
            max_output_bytes: max_response_bytes,
        })
    }

    pub(crate) fn gateway_with_bounds(&self, bounds: ToolBounds) -> TestToolGateway {
        let last = Rc::new(RefCell::new(None));
        let overhear = |tool| Box::new(RecordingTool { tool, last: Rc::clone(&last) }) as Box<dyn Tool>;
        let rules = CallRules {
            tools: collieclaw_agent::tools::built_in_tools().into_iter().map(overhear).collect(),
            policy: self.policy.clone(),
            policy_hash: String::new(),
            facts: Box::new(SystemFacts),
        };
        let tool_gateway = ToolGateway {
            rules,
            workspace: WorkspaceHandle::open(&self.path).unwrap(),
            memory: ConversationMemory::open(&self.home.join(".collieclaw/memory.db")).unwrap(),
            search: None,
            bounds,
            toolchain: self.toolchain.clone(),
            rule_updates: Default::default(),
            home: AgentHome::new(self.home.join(".collieclaw")),
            receipts: RefCell::new(ReceiptLog::disabled()),
            events: EventSink::new(EventFormat::Human, EventLevel::Off, Box::new(std::io::sink())).into(),
        };
        TestToolGateway { tool_gateway, last, cancel: CancelFlag::new().unwrap() }
    }
}

impl TestToolGateway {
    /// Calls a tool and approves it if needed.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> TestCallResult {
        let request = ToolRequest { conversation_id: "test", tool, arguments, offer: ToolOffer::Listed };
        self.last.borrow_mut().take();
        let mut control = TurnControl { operator: &mut ApprovingOperator, cancel: &self.cancel };
        let finished = self.tool_gateway.call(request, &mut control).unwrap();
        let result = self.last.borrow_mut().take();
        assert_eq!(result.is_some(), finished.outcome.tool_run().is_some(), "{finished:?}");
        TestCallResult { status: finished.outcome.code(), result, text: finished.text }
    }

    pub(crate) fn shell(&self, line: &str) -> TestCallResult {
        self.call("shell", &json!({ "command": line }))
    }
}

struct ApprovingOperator;

impl Operator for ApprovingOperator {
    fn ask_approval(&mut self, _: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Yes
    }

    fn ask_question(&mut self, _: &OperatorQuestion<'_>) -> OperatorReply {
        OperatorReply::Unavailable
    }
}

struct RecordingTool {
    tool: Box<dyn Tool>,
    last: Rc<RefCell<Option<ToolResult>>>,
}

struct RecordingCall {
    prepared: Box<dyn PreparedCall>,
    last: Rc<RefCell<Option<ToolResult>>>,
}

impl Tool for RecordingTool {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn parameters_schema(&self) -> Value {
        self.tool.parameters_schema()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, BadArguments> {
        Ok(Box::new(RecordingCall { prepared: self.tool.prepare(arguments)?, last: Rc::clone(&self.last) }))
    }
}

impl PreparedCall for RecordingCall {
    fn call(&self) -> GateRequest<'_> {
        self.prepared.call()
    }

    fn invoke(self: Box<Self>, granted: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let result = self.prepared.invoke(granted, context);
        *self.last.borrow_mut() = Some(result.clone());
        result
    }
}
