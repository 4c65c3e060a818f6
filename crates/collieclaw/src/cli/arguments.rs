//! The command-line grammar of `collieclaw`.

use clap::{Parser, Subcommand};
use ward_cli::OutputArgs;

use super::{
    agent, allow, approval, config, doctor, estop, gateway, generate, mcp, memory, onboard, plugin, policy,
    provider, receipt, service, sop, tool, trash, usage, workspace,
};

/// The examples in the help text. A test parses each of them.
const EXAMPLES: &str = "\
Examples:
  collieclaw init                                  create the home, workspace and configuration
  collieclaw agent                                 talk to the agent
  collieclaw agent -m \"list files\"                 send one message and print the answer
  collieclaw workspace trust ~/project             let the agent work in a folder of yours
  collieclaw allow cargo                           allow a program in the workspace
  collieclaw policy explain shell --json '{\"command\":\"rm -rf /\"}'
  collieclaw tool run file_list --json '{\"path\":\".\"}'
  collieclaw receipt verify                        check that the log was not tampered with
  collieclaw estop                                 stop all tools in every process
  collieclaw estop --clear                         let tools run again

Exit codes:
  0    success
  1    the command failed
  2    invalid command line
  3    invalid or missing configuration
  4    a tool call was denied
  5    a tool call needs an approval, and no operator is available
  6    the model provider failed
  7    a limit was reached
  8    the emergency stop is active
  9    the receipts failed the check or can't be written
  130  cancelled

Environment:
  COLLIECLAW_HOME  the home folder (default: ~/.collieclaw)
  COLLIECLAW_LOG   log level or format: info, warn, off or json";

#[derive(Parser)]
#[command(
    name = "collieclaw",
    version,
    about = "An agent on your own machine: every tool call passes a gate and leaves a receipt",
    after_help = EXAMPLES
)]
pub(crate) struct CollieclawArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: CollieclawCommand,
}

#[derive(Subcommand)]
pub(crate) enum CollieclawCommand {
    /// Create the home, workspace, configuration and an empty memory. Existing files are not changed.
    #[command(after_help = "Example:\n  collieclaw init")]
    Init,
    /// Set everything up, with questions at a terminal or with flags.
    Onboard(onboard::OnboardArgs),
    /// Validate the configuration, or show the settings in force.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// List and test model providers.
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// List tools, or run one by hand through the same gate as the model's calls.
    #[command(subcommand)]
    Tool(tool::ToolCommand),
    /// Talk to the agent: at a prompt, or with one message (-m).
    Agent(agent::AgentArgs),
    /// Serve the HTTP API and the browser page, on this machine only.
    Gateway(gateway::GatewayArgs),
    /// Install, start, stop or remove the gateway as a service of this user.
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// List, search, show or clear past conversations.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// List and verify the receipts of tool calls.
    #[command(subcommand)]
    Receipt(receipt::ReceiptCommand),
    /// List and revoke permanent approvals.
    #[command(subcommand)]
    Approval(approval::ApprovalCommand),
    /// Stop all tools at once, or let them run again.
    Estop(estop::EstopArgs),
    /// Run written procedures step by step; every step passes the gate, and runs can be resumed.
    #[command(subcommand)]
    Sop(sop::SopCommand),
    /// List, show, trust and forget the folders that the agent may work in.
    #[command(subcommand)]
    Workspace(workspace::WorkspaceCommand),
    /// Allow programs or scripts in a workspace.
    Allow(allow::AllowArgs),
    /// Take back the permission of programs or scripts in a workspace.
    Disallow(allow::DisallowArgs),
    /// Show why a call is allowed or denied. Nothing runs.
    #[command(subcommand)]
    Policy(policy::GatePolicyCommand),
    /// Show the calls, tokens and cost of models, and what is left of the limits.
    Usage(usage::ModelUsageArgs),
    /// Manage MCP servers, or offer CollieClaw's tools to other agents (Model Context Protocol).
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Install, list and remove plugins.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// List, restore or remove files that the agent has deleted.
    #[command(subcommand)]
    Trash(trash::TrashCommand),
    /// Check which parts of the sandbox work on this machine, and how to get the others.
    Doctor(doctor::DoctorArgs),
    /// Print completions for a shell.
    Completions(generate::CompletionsArgs),
    /// Print or write manual pages.
    Man(generate::ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Returns the example commands of a help text, without their descriptions.
    fn examples(help: &str) -> Vec<&str> {
        let lines = help.lines().filter(|line| line.starts_with("  collieclaw "));
        lines.map(|line| line.trim().split("   ").next().unwrap_or_default()).collect()
    }

    /// Returns every command without subcommands: its full name and the end of its help text.
    fn leaf_commands(command: &clap::Command, called: &str) -> Vec<(String, String)> {
        let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        let below: Vec<_> =
            below.flat_map(|below| leaf_commands(below, &format!("{called} {}", below.get_name()))).collect();
        if below.is_empty() { vec![(called.to_owned(), end)] } else { below }
    }

    #[test]
    fn every_command_shows_how_it_is_used_and_each_example_is_right() {
        let program = CollieclawArgs::command();
        program.clone().debug_assert();
        let mut helps = leaf_commands(&program, "collieclaw");
        assert!(helps.len() > 40, "{}", helps.len());
        helps.push(("collieclaw".to_owned(), EXAMPLES.to_owned()));
        for (called, help) in &helps {
            let examples = examples(help);
            assert!(help.contains("Example") && !examples.is_empty(), "`{called}` shows no example");
            for line in examples {
                assert!(line.starts_with(called), "`{line}` in the help of `{called}`");
                let parsed = CollieclawArgs::try_parse_from(split_words(line));
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err().map(|error| error.to_string()));
            }
        }
    }

    /// Splits a line as a shell does, for simple quotes.
    fn split_words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in line.chars() {
            match quote {
                Some(open) if letter == open => quote = None,
                None if letter == '"' || letter == '\'' => quote = Some(letter),
                None if letter == ' ' => words.push(String::new()),
                _ => words.last_mut().unwrap().push(letter),
            }
        }
        words
    }
}
