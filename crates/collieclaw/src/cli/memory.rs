//! `memory`: lists, searches, shows and clears past conversations.

use clap::{Args, Subcommand};
use collieclaw_agent::config::Config;
use collieclaw_agent::memory::{ConversationMemory, ConversationTurn, MemoryScope};
use collieclaw_providers::ChatRole;
use serde_json::json;
use ward_terminal::{TextTone, align_columns, escape_line, escape_lines, format_count, paint};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::{OutputPrinter, format_timestamp};
use super::wiring::{self, TrustMode, WorkspaceArgs};

#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    /// List conversations, the latest first.
    #[command(after_help = "Examples:\n  collieclaw memory list\n  collieclaw memory list --limit 5")]
    List {
        /// Maximum number of conversations
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Search conversations for words or parts of words, in any language.
    #[command(
        after_help = "Examples:\n  collieclaw memory search aardvark\n  collieclaw memory search aardvark adapter --limit 3"
    )]
    Search {
        /// Words to search for
        #[arg(required = true)]
        query: Vec<String>,
        /// Maximum number of results
        #[arg(long, default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Show a whole conversation.
    #[command(after_help = "Example:\n  collieclaw memory show taxes")]
    Show {
        /// Id of the conversation
        conversation_id: String,
    },
    /// Delete all conversations, including index, prompt history and free space on disk. Receipts keep only hashes.
    #[command(after_help = "Example:\n  collieclaw memory clear --yes")]
    Clear {
        /// Confirm that everything is deleted
        #[arg(long)]
        yes: bool,
    },
}

/// The conversations that a command sees.
#[derive(Args, Default)]
pub(crate) struct ScopeArgs {
    /// Include the conversations of all workspaces
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Opens the memory with the conversations of the workspace, or with all.
fn open_scoped(
    scope: &ScopeArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<ConversationMemory, CommandFailure> {
    let choice = wiring::choose_workspace(&scope.workspace, TrustMode::Never, environment, screen)?;
    let config = wiring::load_setup_in(&choice, environment)?.config;
    let seen = if scope.all { MemoryScope::All } else { config.memory_scope() };
    Ok(ConversationMemory::open_scoped(&config.memory.path, seen)?)
}

pub(crate) fn run(
    command: &MemoryCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    match command {
        MemoryCommand::List { limit, scope } => {
            let conversations = open_scoped(scope, environment, screen)?.conversations(*limit)?;
            screen.print_answer(&conversations, || {
                let row = |summary: &collieclaw_agent::memory::ConversationSummary| {
                    let mut columns = vec![
                        escape_line(&summary.conversation_id),
                        format_timestamp(summary.last),
                        format_count(summary.turns, "turn", "turns"),
                        escape_line(&summary.first_words),
                    ];
                    if scope.all && !summary.workspace.is_empty() {
                        columns.insert(1, escape_line(&summary.workspace));
                    } else if scope.all {
                        columns.insert(1, "-".to_owned());
                    }
                    columns
                };
                if conversations.is_empty() {
                    return "no conversations yet: start one with `collieclaw agent`".to_owned();
                }
                align_columns(&conversations.iter().map(row).collect::<Vec<_>>())
            });
        }
        MemoryCommand::Search { query, limit, scope } => {
            let found = open_scoped(scope, environment, screen)?.search(&query.join(" "), *limit)?;
            screen.print_answer(&found, || {
                let row = |found_turn: &collieclaw_agent::memory::FoundTurn| {
                    vec![
                        escape_line(&found_turn.conversation_id),
                        format_timestamp(found_turn.timestamp),
                        role_name(found_turn.role).to_owned(),
                        escape_line(&found_turn.excerpt),
                    ]
                };
                align_columns(&found.iter().map(row).collect::<Vec<_>>())
            });
            if found.is_empty() {
                screen.print_remark("nothing found");
            }
        }
        MemoryCommand::Show { conversation_id } => {
            // Whoever names a conversation means it, whatever the workspace.
            let memory = wiring::open_memory(&wiring::load_config(environment)?)?;
            let turns = memory.conversation(conversation_id)?;
            if turns.is_empty() {
                let what = format!("no such conversation `{}`", escape_line(conversation_id));
                return Err(CommandFailure::InvalidInput {
                    what,
                    cure: "run `collieclaw memory list` to see the conversations",
                });
            }
            screen.print_answer(&turns, || turns.iter().map(format_turn).collect::<Vec<_>>().join("\n"));
        }
        MemoryCommand::Clear { yes: false } => {
            let what = "this deletes every conversation".to_owned();
            return Err(CommandFailure::InvalidInput {
                what,
                cure: "run `collieclaw memory clear --yes` to confirm",
            });
        }
        MemoryCommand::Clear { yes: true } => {
            return clear(&wiring::load_config(environment)?, environment, screen);
        }
    }
    Ok(())
}

/// Clears the memory and the prompt history; the history is cleared even if clearing the memory fails.
fn clear(
    config: &Config,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let history = environment.home.history();
    let removed = match std::fs::remove_file(&history) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CommandFailure::io(format!("remove {}", history.display()))(error))
        }
        _ => Ok(()),
    };
    let cleared = wiring::open_memory(config)?.clear()?;
    removed?;
    let value = json!({ "conversations": cleared.conversations, "turns": cleared.turns });
    screen.print_answer(&value, || {
        format!(
            "deleted {} with {}",
            format_count(cleared.conversations, "conversation", "conversations"),
            format_count(cleared.turns, "turn", "turns")
        )
    });
    Ok(())
}

fn format_turn(turn: &ConversationTurn) -> String {
    let role = paint(TextTone::Strong, role_name(turn.role));
    let mut text = format!("{role}  {}\n", format_timestamp(turn.timestamp));
    if !turn.content.is_empty() {
        text.push_str(&escape_lines(&turn.content));
        text.push('\n');
    }
    for call in &turn.tool_calls {
        text.push_str(&format!(
            "→ {} {}\n",
            escape_line(&call.name),
            escape_line(&call.arguments.to_string())
        ));
    }
    for result in &turn.tool_results {
        text.push_str(&format!(
            "({}, {})\n",
            escape_line(&result.tool),
            result.receipt_id.as_deref().unwrap_or("no receipt")
        ));
    }
    text
}

fn role_name(role: ChatRole) -> &'static str {
    match role {
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
    }
}
