//! `tool`: lists tools, and runs one by hand.

use std::io::IsTerminal;

use clap::Subcommand;
use collieclaw::channels::{TerminalOperator, TerminalVerbosity};
use collieclaw_agent::runtime::{
    AbsentOperator, FinishedCall, Operator, ToolOffer, ToolRequest, TurnControl,
};
use collieclaw_agent::tools::Tool;
use collieclaw_providers::cancel::CancelFlag;
use serde_json::{Value, json};
use ward_terminal::{align_columns, escape_line};

use super::environment::CliEnvironment;
use super::failure::{CommandFailure, check_call_outcome};
use super::interrupt::InterruptHandler;
use super::output::OutputPrinter;
use super::wiring::{self, ToolCatalog, TrustMode, WorkspaceAllower, WorkspaceArgs, WorkspaceChoice};

#[derive(Subcommand)]
pub(crate) enum ToolCommand {
    /// List tools, and whether the model can call them.
    #[command(after_help = "Examples:\n  collieclaw tool list\n  collieclaw tool list --output json")]
    List,
    /// Run a tool through the same gate, approval and receipts as a call of the model.
    #[command(
        after_help = "Examples:\n  collieclaw tool run time --json '{}'\n  collieclaw tool run file_read --json '{\"path\":\"notes.txt\"}'"
    )]
    Run {
        /// Name of the tool
        name: String,
        /// Arguments of the call, as a JSON object
        #[arg(long, value_name = "ARGS", default_value = "{}")]
        json: String,
        #[command(flatten)]
        workspace: WorkspaceArgs,
    },
}

/// The conversation id in receipts of calls made by hand.
const MANUAL_CONVERSATION: &str = "by-hand";

pub(crate) fn run(
    tool: &ToolCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    match tool {
        ToolCommand::List => {
            let choice =
                wiring::choose_workspace(&WorkspaceArgs::default(), TrustMode::Never, environment, screen)?;
            let setup = wiring::load_setup_in(&choice, environment)?;
            let offered = |name: &str| setup.config.channels.cli.tools_allow.iter().any(|tool| tool == name);
            let ToolCatalog { tools, warnings: troubles, .. } = setup.gather_tools(environment);
            troubles.iter().for_each(|trouble| screen.print_remark(&escape_line(trouble)));
            let value: Vec<Value> = tools
                .iter()
                .map(|tool| {
                    json!({ "name": tool.name(), "description": tool.description(), "offered": offered(tool.name()),
                        "parameters": tool.parameters_schema() })
                })
                .collect();
            screen.print_answer(&value, || {
                let row = |tool: &dyn Tool| {
                    let mark = if offered(tool.name()) { "*" } else { " " };
                    vec![format!("{mark} {}", tool.name()), escape_line(tool.description())]
                };
                let rows: Vec<Vec<String>> = tools.iter().map(|tool| row(&**tool)).collect();
                format!(
                    "{}\n\n* the model can call this tool here (`channels.cli.tools_allow` and `project_tools`)",
                    align_columns(&rows)
                )
            });
            Ok(())
        }
        ToolCommand::Run { name, json, workspace } => {
            let arguments = parse_arguments(json)?;
            let choice = wiring::choose_workspace(workspace, TrustMode::Ask, environment, screen)?;
            run_tool(name, &arguments, &choice, environment, screen)
        }
    }
}

/// Parses the argument of `--json`.
pub(crate) fn parse_arguments(text: &str) -> Result<Value, CommandFailure> {
    serde_json::from_str(text).map_err(|error| CommandFailure::InvalidInput {
        what: format!("the arguments are not JSON: {error}"),
        cure: "pass a JSON object, like --json '{\"path\": \".\"}'",
    })
}

fn run_tool(
    name: &str,
    arguments: &Value,
    choice: &WorkspaceChoice,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let setup = wiring::load_setup_in(choice, environment)?;
    wiring::emit_startup_events(&setup.config, environment)?;
    let mut tool_gateway = wiring::open_tool_gateway(&setup, environment)?;
    let workspace = tool_gateway.workspace.path().to_owned();
    tool_gateway.rule_updates = WorkspaceAllower::rule_updates(&setup, workspace, environment);
    let cancel = CancelFlag::new().map_err(CommandFailure::io("set up cancelling"))?;
    let interrupt = InterruptHandler::install().map_err(CommandFailure::io("listen for Ctrl-C"))?;
    interrupt.set_turn(Some(cancel.clone()));
    let request =
        ToolRequest { conversation_id: MANUAL_CONVERSATION, tool: name, arguments, offer: ToolOffer::Listed };
    let mut operator = terminal_operator(&cancel);
    let mut control = TurnControl { operator: &mut *operator, cancel: &cancel };
    let FinishedCall { outcome, text, receipt_id } = tool_gateway.call(request, &mut control)?;
    let success = outcome.is_completed();
    let value = json!({
        "tool": name,
        "success": success,
        "output": text,
        "error": (!success).then(|| text.strip_prefix("error: ").unwrap_or(&text)),
        "metadata": outcome.tool_run().map(|run| run.metadata.clone()).unwrap_or_default(),
        "receipt_id": receipt_id,
    });
    if screen.is_json() {
        screen.print_answer(&value, String::new);
    } else if success {
        screen.print_untrusted(&text)?;
    } else if !shows_calls() || text.trim_end().lines().count() > 1 {
        screen.print_remark(&ward_terminal::escape_lines(&text));
    }
    check_call_outcome(&outcome)
}

/// Returns whether calls are shown at the terminal as they happen, each with the first line of its result.
fn shows_calls() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Returns the operator at the terminal, for one call or turn.
pub(crate) fn terminal_operator(cancel: &CancelFlag) -> Box<dyn Operator> {
    if !std::io::stdin().is_terminal() {
        return Box::new(AbsentOperator);
    }
    if shows_calls() {
        return Box::new(TerminalOperator::new(
            wiring::stderr(),
            cancel.clone(),
            TerminalVerbosity::Everything,
        ));
    }
    // Standard error is redirected, and the question must be visible.
    match std::fs::OpenOptions::new().write(true).open("/dev/tty") {
        Ok(terminal) => Box::new(TerminalOperator::new(
            Box::new(terminal),
            cancel.clone(),
            TerminalVerbosity::QuestionsOnly,
        )),
        Err(_) => Box::new(AbsentOperator),
    }
}
