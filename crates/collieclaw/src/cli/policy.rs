//! `policy explain`: shows why a call is allowed or denied. Nothing runs.

use clap::Subcommand;
use collieclaw_agent::runtime::{ToolOffer, ToolRequest};
use collieclaw_gate::GateVerdict;
use ward_terminal::escape_line;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::tool;
use super::wiring::{self, TrustMode, WorkspaceArgs};

#[derive(Subcommand)]
pub(crate) enum GatePolicyCommand {
    /// Show why a call of the model is allowed or denied. It checks paths against the real files, but runs nothing and asks for no approval.
    #[command(
        after_help = "Examples:\n  collieclaw policy explain shell --json '{\"command\":\"cat notes.txt\"}'\n  collieclaw policy explain file_read --json '{\"path\":\"/etc/passwd\"}' --autonomy full"
    )]
    Explain {
        /// Name of the tool
        tool: String,
        /// Arguments of the call, as a JSON object
        #[arg(long, value_name = "ARGS", default_value = "{}")]
        json: String,
        /// Level to use instead of the configuration's: readonly, supervised or full
        #[arg(long, value_name = "LEVEL", value_parser = ["readonly", "supervised", "full"])]
        autonomy: Option<String>,
        #[command(flatten)]
        workspace: WorkspaceArgs,
    },
}

pub(crate) fn run(
    policy: &GatePolicyCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let GatePolicyCommand::Explain { tool: name, json, autonomy, workspace } = policy;
    let arguments = tool::parse_arguments(json)?;
    let choice = wiring::choose_workspace(workspace, TrustMode::Never, environment, screen)?;
    let setup = wiring::load_setup_in(&choice, environment)?;
    let workspace = wiring::open_workspace(&setup.config)?;
    let mut rules = wiring::build_rules(&setup, &workspace, environment)?;
    if let Some(level) = autonomy.as_deref().and_then(wiring::parse_autonomy) {
        rules.policy.autonomy = level;
    }
    let listed = setup.config.channels.cli.tools_allow.contains(name);
    let offer = if listed { ToolOffer::Listed } else { ToolOffer::Unlisted };
    let request = ToolRequest { conversation_id: "", tool: name, arguments: &arguments, offer };
    let outcome = rules.evaluate(request).map_err(|bad| CommandFailure::InvalidInput {
        what: bad.to_string(),
        cure: "run `collieclaw tool list --output json` to see the schema",
    })?;
    screen.print_answer(outcome.verdict(), || format_verdict(outcome.verdict()));
    Ok(())
}

fn format_verdict(verdict: &GateVerdict) -> String {
    let reasons = verdict
        .reasons
        .iter()
        .map(|reason| format!("  - {} ({})", escape_line(&reason.detail()), reason.code()));
    let lines: Vec<String> = reasons.collect();
    format!("decision: {}\nrisk:     {}\n{}", verdict.decision, verdict.risk, lines.join("\n"))
}
