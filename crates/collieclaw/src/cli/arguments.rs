//! What can be said on the command line.

use clap::{Parser, Subcommand, ValueEnum};

use super::{
    agent, approval, config, estop, gateway, generate, mcp, memory, onboard, plugin, policy, provider,
    receipt, service, sop, tool, usage,
};

/// Each is parsed by a test, so that none is wrong.
const EXAMPLES: &str = "\
Examples:
  collieclaw init                                  make home, workspace and configuration
  collieclaw agent                                 talk to the agent
  collieclaw agent -m \"list files\"                 one question, one answer on standard output
  collieclaw policy explain shell --json '{\"command\":\"rm -rf /\"}'
  collieclaw tool run file_list --json '{\"path\":\".\"}'
  collieclaw receipt verify                        has the log been tampered with?
  collieclaw estop                                 stop all tools, now, everywhere
  collieclaw estop --clear                         let them run again

Exit codes: 0 done, 1 it did not work, 2 the command line is wrong, 3 the configuration is, 4 denied,
5 it needs an approval and nobody is there to ask, 6 the provider failed, 7 a limit was reached,
8 the emergency stop is active, 9 the receipts are not sound or can't be written, 130 cancelled.
The home is ~/.collieclaw, or what COLLIECLAW_HOME names. COLLIECLAW_LOG is info, warn, off or json.";

#[derive(Parser)]
#[command(
    name = "collieclaw",
    version,
    about = "An agent on your own machine: every tool call passes a gate and leaves a receipt",
    after_help = EXAMPLES
)]
pub(crate) struct CollieclawArgs {
    /// How to answer.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub(crate) output: OutputFormat,
    #[command(subcommand)]
    pub(crate) command: CollieclawCommand,
}

#[derive(Subcommand)]
pub(crate) enum CollieclawCommand {
    /// Makes the home, the workspace, a configuration and an empty memory. Changes nothing that is there.
    #[command(after_help = "Example:\n  collieclaw init")]
    Init,
    /// Sets everything up, with questions at a terminal or with flags.
    Onboard(onboard::OnboardArgs),
    /// The configuration: is it valid, and what is in force?
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Who can answer.
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// The tools; run one by hand, through the same gate as the model's.
    #[command(subcommand)]
    Tool(tool::ToolCommand),
    /// Talks to the agent: at a prompt, or one message with -m.
    Agent(agent::AgentArgs),
    /// Serves HTTP and a page for a browser, on this machine alone.
    Gateway(gateway::GatewayArgs),
    /// The gateway as a service of this user: install, start, stop, status, uninstall.
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// What was said.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// What every attempted call left behind.
    #[command(subcommand)]
    Receipt(receipt::ReceiptCommand),
    /// What you said yes to for good: listed, and revoked.
    #[command(subcommand)]
    Approval(approval::ApprovalCommand),
    /// The emergency stop: no tool runs while it is active.
    Estop(estop::EstopArgs),
    /// Procedures that you have written down: each step through the same gate, kept, resumable.
    #[command(subcommand)]
    Sop(sop::SopCommand),
    /// What the gate would decide, and why. Nothing runs.
    #[command(subcommand)]
    Policy(policy::GatePolicyCommand),
    /// What was asked of models, what it took, and what is left of the limits.
    Usage(usage::ModelUsageArgs),
    /// Servers of tools that others wrote, and our tools for other agents (Model Context Protocol).
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Tools that others wrote, as programs in folders.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// What of the sandbox is in force on this machine, and how to get more.
    #[command(after_help = "Examples:\n  collieclaw doctor\n  collieclaw doctor --output json")]
    Doctor,
    /// Completions for a shell.
    Completions(generate::CompletionsArgs),
    /// Manual pages.
    Man(generate::ManArgs),
}

/// How to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The examples of a help text, without what is said of them.
    fn examples(help: &str) -> Vec<&str> {
        let lines = help.lines().filter(|line| line.starts_with("  collieclaw "));
        lines.map(|line| line.trim().split("   ").next().unwrap_or_default()).collect()
    }

    /// Every command that does something: the words that call it, and the end of its help.
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

    /// As a shell would split a line with simple quotes.
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
