//! A workspace with something around it: a home with secrets, a folder that is forbidden, CollieClaw's own home.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use collieclaw::cancel::Cancel;
use collieclaw::events::{Events, Form, Level};
use collieclaw::home::Home;
use collieclaw::memory::Memory;
use collieclaw::receipts::Receipts;
use collieclaw::runtime::{
    Answer, Asked, Attended, Door, Fate, Granted, Offer, Operator, Posed, Reply, Rules, Wish,
};
use collieclaw::security::{Access, SystemFacts, Workspace};
use collieclaw::tools::{BadArguments, Context, Prepared, Tool, ToolBounds, ToolResult};
use collieclaw_gate::{
    Autonomy, Bounds, Call, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS,
    GatePolicy,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Workshop {
    _folder: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) workspace: Workspace,
    pub(crate) policy: GatePolicy,
}

pub(crate) const SECRET: &str = "the secret outside";

impl Workshop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        let path = home.join("workspace");
        for made in ["workspace", ".ssh", ".collieclaw", "other"] {
            std::fs::create_dir_all(home.join(made)).unwrap();
        }
        for secret in [".ssh/id", ".collieclaw/config.toml", "other/diary", "secret"] {
            std::fs::write(home.join(secret), SECRET).unwrap();
        }
        let workspace = Workspace::open(&path).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let policy = GatePolicy {
            autonomy: Autonomy::Supervised,
            workspace: path.clone(),
            bounds: Bounds::Workspace,
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
        };
        Self { _folder: folder, home, path, workspace, policy }
    }

    pub(crate) fn access(&self) -> Access<'_> {
        self.workspace.under(&self.policy)
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

/// The door of a workshop, with a tool's own result kept beside what the model is told.
pub(crate) struct Desk {
    door: Door,
    last: Rc<RefCell<Option<ToolResult>>>,
    pub(crate) cancel: Cancel,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) fate: Fate,
    /// `None` if it did not run.
    pub(crate) result: Option<ToolResult>,
    pub(crate) text: String,
}

impl Came {
    pub(crate) fn output(&self) -> &str {
        self.result.as_ref().map_or_else(|| panic!("it did not run: {}", self.text), |result| &result.output)
    }

    pub(crate) fn fact(&self, name: &str) -> Value {
        let result = self.result.as_ref().unwrap_or_else(|| panic!("it did not run: {}", self.text));
        result.metadata.get(name).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn code(&self) -> i64 {
        self.fact("exit_code").as_i64().unwrap_or_else(|| panic!("no exit code: {self:?}"))
    }
}

impl Workshop {
    pub(crate) fn desk(&self) -> Desk {
        self.desk_with(Duration::from_secs(30), 1 << 20)
    }

    pub(crate) fn desk_with(&self, shell_timeout: Duration, max_response_bytes: usize) -> Desk {
        let long = Duration::from_secs(60);
        self.desk_within(ToolBounds {
            tool_timeout: long,
            shell_timeout,
            http_timeout: long,
            max_response_bytes,
        })
    }

    pub(crate) fn desk_within(&self, bounds: ToolBounds) -> Desk {
        let last = Rc::new(RefCell::new(None));
        let overhear = |tool| Box::new(Overheard { tool, last: Rc::clone(&last) }) as Box<dyn Tool>;
        let rules = Rules {
            tools: collieclaw::tools::built_in().into_iter().map(overhear).collect(),
            policy: self.policy.clone(),
            policy_hash: String::new(),
            facts: Box::new(SystemFacts),
        };
        let door = Door {
            rules,
            workspace: Workspace::open(&self.path).unwrap(),
            memory: Memory::open(&self.home.join(".collieclaw/memory.db")).unwrap(),
            search: None,
            bounds,
            home: Home::new(self.home.join(".collieclaw")),
            receipts: RefCell::new(Receipts::off()),
            events: Events::new(Form::Human, Level::Off, Box::new(std::io::sink())).into(),
        };
        Desk { door, last, cancel: Cancel::new().unwrap() }
    }
}

impl Desk {
    /// Calls a tool; whoever is asked says yes.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Came {
        let wish = Wish { conversation_id: "test", tool, arguments, offer: Offer::Listed };
        self.last.borrow_mut().take();
        let mut attended = Attended { operator: &mut SaysYes, cancel: &self.cancel };
        let outcome = self.door.call(wish, &mut attended).unwrap();
        Came { fate: outcome.fate, result: self.last.borrow_mut().take(), text: outcome.text }
    }

    pub(crate) fn shell(&self, line: &str) -> Came {
        self.call("shell", &json!({ "command": line }))
    }
}

struct SaysYes;

impl Operator for SaysYes {
    fn ask(&mut self, _: &Asked<'_>) -> Answer {
        Answer::Yes
    }

    fn question(&mut self, _: &Posed<'_>) -> Reply {
        Reply::Nobody
    }
}

struct Overheard {
    tool: Box<dyn Tool>,
    last: Rc<RefCell<Option<ToolResult>>>,
}

struct OverheardCall {
    prepared: Box<dyn Prepared>,
    last: Rc<RefCell<Option<ToolResult>>>,
}

impl Tool for Overheard {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn parameters_schema(&self) -> Value {
        self.tool.parameters_schema()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn Prepared>, BadArguments> {
        Ok(Box::new(OverheardCall { prepared: self.tool.prepare(arguments)?, last: Rc::clone(&self.last) }))
    }
}

impl Prepared for OverheardCall {
    fn call(&self) -> Call<'_> {
        self.prepared.call()
    }

    fn invoke(self: Box<Self>, granted: Granted, context: &Context<'_>) -> ToolResult {
        let result = self.prepared.invoke(granted, context);
        *self.last.borrow_mut() = Some(result.clone());
        result
    }
}
