//! The overhead of a procedure: a run of a hundred calls with its journal, compared with the same hundred calls made
//! directly through the tool gateway. Both write receipts.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use collieclaw_agent::config::{self, ConfigContext, SetupChoices, config_template};
use collieclaw_agent::events::{EventFormat, EventLevel, EventSink};
use collieclaw_agent::home::AgentHome;
use collieclaw_agent::memory::ConversationMemory;
use collieclaw_agent::receipts::{ReceiptLog, ReceiptSigning};
use collieclaw_agent::runtime::{
    AbsentOperator, AgentRuntime, CallRules, ToolGateway, ToolOffer, ToolRequest, TurnControl,
};
use collieclaw_agent::security::{SystemFacts, WorkspaceHandle};
use collieclaw_agent::sop::{self, OnInterrupted, SopEngine, SopRunHalt, SopRunState, SopRunStore};
use collieclaw_agent::tools::{ToolchainAccess, built_in_tools};
use collieclaw_providers::MockProvider;
use collieclaw_providers::cancel::CancelFlag;
use serde_json::json;
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};
use ward_diag::SourceText;

const ROUNDS: usize = 15;
const STEPS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path().canonicalize()?;
    let runtime = open_runtime(&folder)?;
    let text = procedure_text();
    let sop = sop::read_sop(SourceText::new("SOP.toml", &text), "hundred", &runtime.tool_gateway.rules.tools)
        .map_err(|report| report.render(ward_diag::ReportStyle::Plain))?;
    let runs = SopRunStore::new(folder.join("home/sop-runs"));
    let (mut ours, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (called, time) = timed(|| call_tools(&runtime));
        called?;
        alone.push(millis(time));
        let (run, time) = timed(|| -> Result<SopRunHalt, Box<dyn Error>> {
            let mut run = runs.begin("hundred", &text)?;
            let mut control = TurnControl { operator: &mut AbsentOperator, cancel: &CancelFlag::new()? };
            Ok(SopEngine { runtime: &runtime, sop: &sop }.run_until_halt(
                &mut run,
                OnInterrupted::Ask,
                &mut control,
            )?)
        });
        if run? != SopRunHalt::Over(SopRunState::Finished) {
            return Err("the run did not come to its end".into());
        }
        ours.push(millis(time));
    }
    report(&BenchmarkRow {
        bench: "sop: a run of 100 tool steps".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline {
            name: "the same 100 calls alone".into(),
            figure: median(&mut alone),
        }),
        bar: BenchmarkLimit::RatioAtMost(1.5),
    })?;
    Ok(())
}

fn procedure_text() -> String {
    let step = |number| {
        format!(
            "[[steps]]\nid = \"s{number}\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = {{ path = \"note\" }}\n"
        )
    };
    let steps: String = (0..STEPS).map(step).collect();
    format!("name = \"hundred\"\ndescription = \"a benchmark\"\n{steps}")
}

fn call_tools(runtime: &AgentRuntime) -> Result<(), Box<dyn Error>> {
    let arguments = json!({ "path": "note" });
    for _ in 0..STEPS {
        let request = ToolRequest {
            conversation_id: "bench",
            tool: "file_read",
            arguments: &arguments,
            offer: ToolOffer::Listed,
        };
        let mut control = TurnControl { operator: &mut AbsentOperator, cancel: &CancelFlag::new()? };
        let finished = runtime.tool_gateway.call(request, &mut control)?;
        if !finished.outcome.is_completed() {
            return Err(finished.text.into());
        }
    }
    Ok(())
}

fn open_runtime(folder: &Path) -> Result<AgentRuntime, Box<dyn Error>> {
    let [workspace, home] = ["collieclaw-workspace", "home"].map(|name| folder.join(name));
    std::fs::create_dir(&workspace)?;
    std::fs::create_dir(&home)?;
    std::fs::write(workspace.join("note"), "a line\n")?;
    let surroundings =
        ConfigContext { home: home.clone(), user_home: folder.to_owned(), variables: [].into() };
    let tools = built_in_tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let source = SourceText::new("config.toml", config_template(&SetupChoices::default()));
    let config = config::read(source, &surroundings, &names)
        .map_err(|report| report.render(ward_diag::ReportStyle::Plain))?;
    let own = AgentHome::new(&home);
    let signing = ReceiptSigning::With { key: own.receipts_key() };
    let (receipts, _) = ReceiptLog::open(&config.receipts.path, &signing, own.intents())?;
    let policy = config.gate_policy(workspace.clone(), &surroundings);
    let gateway = ToolGateway {
        rules: CallRules { tools, policy, policy_hash: String::new(), facts: Box::new(SystemFacts) },
        workspace: WorkspaceHandle::open(&workspace)?,
        memory: ConversationMemory::open(&config.memory.path)?,
        search: None,
        bounds: config.tool_bounds(),
        toolchain: ToolchainAccess::default(),
        rule_updates: Default::default(),
        home: own,
        receipts: RefCell::new(receipts),
        events: EventSink::new(EventFormat::Human, EventLevel::Off, Box::new(std::io::sink())).into(),
    };
    Ok(AgentRuntime::new(gateway, Rc::new(MockProvider::new("local", None)), "mock".to_owned(), &config))
}
