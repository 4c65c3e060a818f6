//! `memory`: lists, searches, shows and clears past conversations.

use clap::Subcommand;
use collieclaw_agent::config::Config;
use collieclaw_agent::memory::ConversationTurn;
use collieclaw_providers::ChatRole;
use serde_json::json;
use ward_terminal::{TextTone, align_columns, escape_line, escape_lines, format_count, paint};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::{OutputPrinter, format_timestamp};
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    /// List conversations, the latest first.
    #[command(after_help = "Examples:\n  collieclaw memory list\n  collieclaw memory list --limit 5")]
    List {
        /// Maximum number of conversations
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Search all conversations for words or parts of words, in any language.
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

pub(crate) fn run(
    command: &MemoryCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    if let MemoryCommand::Clear { yes: true } = command {
        return clear(&config, environment, screen);
    }
    let memory = wiring::open_memory(&config)?;
    match command {
        MemoryCommand::List { limit } => {
            let conversations = memory.conversations(*limit)?;
            screen.print_answer(&conversations, || {
                let row = |summary: &collieclaw_agent::memory::ConversationSummary| {
                    vec![
                        escape_line(&summary.conversation_id),
                        format_timestamp(summary.last),
                        format_count(summary.turns, "turn", "turns"),
                        escape_line(&summary.first_words),
                    ]
                };
                if conversations.is_empty() {
                    return "no conversations yet: start one with `collieclaw agent`".to_owned();
                }
                align_columns(&conversations.iter().map(row).collect::<Vec<_>>())
            });
        }
        MemoryCommand::Search { query, limit } => {
            let found = memory.search(&query.join(" "), *limit)?;
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
        MemoryCommand::Clear { yes: true } => {}
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
