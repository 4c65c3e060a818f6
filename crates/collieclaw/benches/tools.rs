//! The overhead of the shell tool: `true` in its sandbox, by the tool alone and through the whole tool gateway, compared
//! with `true` started directly.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::process::Command;
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
use collieclaw_agent::security::{SystemFacts, WorkspaceHandle};
use collieclaw_agent::tools::{
    BadArguments, PreparedCall, Tool, ToolBounds, ToolContext, ToolResult, ToolchainAccess, built_in_tools,
};
use collieclaw_gate::{AutonomyLevel, DEFAULT_ALLOWED_COMMANDS, GatePolicy, GateRequest, PathBounds};
use collieclaw_providers::cancel::CancelFlag;
use serde_json::{Value, json};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};

const ROUNDS: usize = 300;

/// The promised limit for every command of an agent: less than a person can notice.
const BAR_MS: f64 = 3.0;

/// The promised limit for judging a program where it is executed.
const JUDGED_PROGRAM_MS: f64 = 0.2;

/// The number of programs in the loop of [`judged_program_cost`].
const LOOP_PROGRAMS: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let took = Rc::new(Cell::new(Duration::ZERO));
    let gateway = open_tool_gateway(folder.path(), &took)?;
    // The first call probes the capabilities of the machine, once per process.
    call_through_gateway(&gateway)?;
    let (mut bare, mut tool, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (status, without) = timed(|| Command::new("/bin/true").status());
        if !status?.success() {
            return Err("`true` was not true".into());
        }
        let (result, with) = timed(|| call_through_gateway(&gateway));
        result?;
        bare.push(millis(without));
        tool.push(millis(took.get()) - millis(without));
        whole.push(millis(with) - millis(without));
    }
    let bare = median(&mut bare);
    report(&BenchmarkRow {
        bench: "tools: a judged program of a shell line, in a loop of 200".into(),
        unit: "ms".into(),
        figure: judged_program_cost(&gateway)?,
        baseline: None,
        bar: BenchmarkLimit::AtMost(JUDGED_PROGRAM_MS),
    })?;
    for (bench, figure) in [
        ("tools: time that the shell tool adds to `true`, in its sandbox", median(&mut tool)),
        (
            "tools: the same through the tool gateway: judged, approved, watched for a stop",
            median(&mut whole),
        ),
    ] {
        report(&BenchmarkRow {
            bench: bench.into(),
            unit: "ms".into(),
            figure,
            baseline: Some(BenchmarkBaseline { name: "`true` started bare".into(), figure: bare }),
            bar: BenchmarkLimit::AtMost(BAR_MS),
        })?;
    }
    Ok(())
}

/// Returns the time that judging adds to each program of a loop, compared with the same loop in a bare bash.
fn judged_program_cost(gateway: &ToolGateway) -> Result<f64, Box<dyn Error>> {
    const LOOP_ROUNDS: usize = 9;
    let line = format!("for i in $(seq {LOOP_PROGRAMS}); do /usr/bin/true; done");
    let (mut bare, mut judged) = (Vec::new(), Vec::new());
    for _ in 0..LOOP_ROUNDS {
        let (status, without) = timed(|| Command::new("bash").args(["-c", &line]).status());
        if !status?.success() {
            return Err("the loop failed".into());
        }
        let (result, with) = timed(|| call_with_line(gateway, &line));
        result?;
        bare.push(millis(without));
        judged.push(millis(with));
    }
    Ok((median(&mut judged) - median(&mut bare)) / f64::from(LOOP_PROGRAMS))
}

fn call_through_gateway(gateway: &ToolGateway) -> Result<(), Box<dyn Error>> {
    call_with_line(gateway, "true")
}

fn call_with_line(gateway: &ToolGateway, line: &str) -> Result<(), Box<dyn Error>> {
    let arguments = json!({ "command": line });
    let request = ToolRequest {
        conversation_id: "bench",
        tool: "shell",
        arguments: &arguments,
        offer: ToolOffer::Listed,
    };
    let mut control = TurnControl { operator: &mut BenchApprover, cancel: &CancelFlag::new()? };
    let finished = gateway.call(request, &mut control)?;
    if finished.outcome.is_completed() { Ok(()) } else { Err(finished.text.into()) }
}

/// Builds a gateway without receipts, which have their own benchmark: their disk writes would dominate here.
fn open_tool_gateway(
    folder: &std::path::Path,
    took: &Rc<Cell<Duration>>,
) -> Result<ToolGateway, Box<dyn Error>> {
    let folder = folder.canonicalize()?;
    let [workspace, home] = ["workspace", "home"].map(|name| folder.join(name));
    std::fs::create_dir(&workspace)?;
    std::fs::create_dir(&home)?;
    let policy = GatePolicy {
        autonomy: AutonomyLevel::Supervised,
        workspace: workspace.clone(),
        bounds: PathBounds::Workspace,
        user_home: folder.clone(),
        own_home: home.clone(),
        own_files: Vec::new(),
        forbidden_paths: ["/etc", "/sys", "/boot"].map(Into::into).into(),
        forbidden_commands: ["rm".to_owned()].into(),
        allowed_commands: DEFAULT_ALLOWED_COMMANDS.iter().map(|name| (*name).to_owned()).collect(),
        allowed_domains: Vec::new(),
        command_network: Default::default(),
        pinned_programs: Default::default(),
        allowed_scripts: Default::default(),
        project_programs: Default::default(),
        command_cache: None,
    };
    let time = Duration::from_secs(15);
    let timed = |tool| Box::new(TimedTool { tool, took: Rc::clone(took) }) as Box<dyn Tool>;
    let tools = built_in_tools().into_iter().map(timed).collect();
    Ok(ToolGateway {
        rules: CallRules { tools, policy, policy_hash: String::new(), facts: Box::new(SystemFacts) },
        workspace: WorkspaceHandle::open(&workspace)?,
        memory: ConversationMemory::open(&home.join("memory.db"))?,
        search: None,
        bounds: ToolBounds {
            tool_timeout: time,
            shell_timeout: time,
            http_timeout: time,
            max_response_bytes: 1 << 20,
            max_output_bytes: 32 << 10,
        },
        toolchain: ToolchainAccess::default(),
        rule_updates: Default::default(),
        home: AgentHome::new(home),
        receipts: RefCell::new(ReceiptLog::disabled()),
        events: EventSink::new(EventFormat::Human, EventLevel::Off, Box::new(std::io::sink())).into(),
    })
}

struct BenchApprover;

impl Operator for BenchApprover {
    fn ask_approval(&mut self, _: &ApprovalPrompt<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Yes
    }

    fn ask_question(&mut self, _: &OperatorQuestion<'_>) -> OperatorReply {
        OperatorReply::Unavailable
    }
}

/// A tool that reports how long it took.
struct TimedTool {
    tool: Box<dyn Tool>,
    took: Rc<Cell<Duration>>,
}

struct TimedCall {
    prepared: Box<dyn PreparedCall>,
    took: Rc<Cell<Duration>>,
}

impl Tool for TimedTool {
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
        Ok(Box::new(TimedCall { prepared: self.tool.prepare(arguments)?, took: Rc::clone(&self.took) }))
    }
}

impl PreparedCall for TimedCall {
    fn call(&self) -> GateRequest<'_> {
        self.prepared.call()
    }

    fn invoke(self: Box<Self>, granted: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let Self { prepared, took } = *self;
        let (result, time) = timed(|| prepared.invoke(granted, context));
        took.set(time);
        result
    }
}
