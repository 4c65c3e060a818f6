//! `policy explain`: what the gate would decide, and why. Nothing runs.

use clap::Subcommand;
use collieclaw::channels::visible;
use collieclaw::runtime::{Offer, Wish};
use collieclaw_gate::Verdict;

use super::environment::Environment;
use super::failure::Failure;
use super::screen::Screen;
use super::{open, tool};

#[derive(Subcommand)]
pub(crate) enum Policy {
    /// Judges a call as if the model had made it. It looks at the real files, and runs, opens and asks nothing.
    #[command(
        after_help = "Examples:\n  collieclaw policy explain shell --json '{\"command\":\"cat notes.txt\"}'\n  collieclaw policy explain file_read --json '{\"path\":\"/etc/passwd\"}' --autonomy full"
    )]
    Explain {
        /// Which tool.
        tool: String,
        /// Its arguments, a JSON object.
        #[arg(long, value_name = "ARGS", default_value = "{}")]
        json: String,
        /// At another level than the configuration's: readonly, supervised or full.
        #[arg(long, value_name = "LEVEL", value_parser = ["readonly", "supervised", "full"])]
        autonomy: Option<String>,
    },
}

pub(crate) fn run(policy: &Policy, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let Policy::Explain { tool: name, json, autonomy } = policy;
    let arguments = tool::arguments(json)?;
    let setup = open::setup(environment)?;
    let workspace = open::workspace(&setup.config)?;
    let mut rules = open::rules(&setup, &workspace, environment)?;
    if let Some(level) = autonomy.as_deref().and_then(open::autonomy) {
        rules.policy.autonomy = level;
    }
    let listed = setup.config.channels.cli.tools_allow.contains(name);
    let offer = if listed { Offer::Listed } else { Offer::Unlisted };
    let wish = Wish { conversation_id: "", tool: name, arguments: &arguments, offer };
    let ruling = rules.ruling(wish).map_err(|bad| Failure::Wrong {
        what: bad.to_string(),
        cure: "`collieclaw tool list --output json` has the schema",
    })?;
    screen.answer(ruling.verdict(), || told(ruling.verdict()));
    Ok(())
}

fn told(verdict: &Verdict) -> String {
    let reasons =
        verdict.reasons.iter().map(|reason| format!("  - {} ({})", visible(&reason.detail()), reason.code()));
    let lines: Vec<String> = reasons.collect();
    format!("decision: {}\nrisk:     {}\n{}", verdict.decision, verdict.risk, lines.join("\n"))
}
