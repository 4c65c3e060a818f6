//! `memory`: what was said.

use clap::Subcommand;
use collieclaw::channels::{visible, visible_lines};
use collieclaw::config::Config;
use collieclaw::memory::Turn;
use collieclaw::providers::Role;
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::{Screen, count, moment, table};

#[derive(Subcommand)]
pub(crate) enum Memory {
    /// The conversations, the latest first.
    #[command(after_help = "Examples:\n  collieclaw memory list\n  collieclaw memory list --limit 5")]
    List {
        /// How many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Searches everything that was said: words, parts of words, any language.
    #[command(
        after_help = "Examples:\n  collieclaw memory search aardvark\n  collieclaw memory search aardvark adapter --limit 3"
    )]
    Search {
        /// What for.
        #[arg(required = true)]
        query: Vec<String>,
        /// How many.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// One conversation, whole.
    #[command(after_help = "Example:\n  collieclaw memory show taxes")]
    Show {
        /// Its id.
        conversation_id: String,
    },
    /// Forgets everything, also in the index, in the history and on the disk. Receipts keep only hashes.
    #[command(after_help = "Example:\n  collieclaw memory clear --yes")]
    Clear {
        /// Yes, everything.
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(command: &Memory, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let config = open::config(environment)?;
    if let Memory::Clear { yes: true } = command {
        return clear(&config, environment, screen);
    }
    let memory = open::memory(&config)?;
    match command {
        Memory::List { limit } => {
            let conversations = memory.conversations(*limit)?;
            screen.answer(&conversations, || {
                let row = |one: &collieclaw::memory::ConversationSummary| {
                    vec![
                        visible(&one.conversation_id),
                        moment(one.last),
                        count(one.turns, "turn"),
                        visible(&one.first_words),
                    ]
                };
                if conversations.is_empty() {
                    return "nothing was said yet: `collieclaw agent` begins".to_owned();
                }
                table(&conversations.iter().map(row).collect::<Vec<_>>())
            });
        }
        Memory::Search { query, limit } => {
            let found = memory.search(&query.join(" "), *limit)?;
            screen.answer(&found, || {
                let row = |one: &collieclaw::memory::Found| {
                    vec![
                        visible(&one.conversation_id),
                        moment(one.timestamp),
                        role(one.role).to_owned(),
                        visible(&one.excerpt),
                    ]
                };
                table(&found.iter().map(row).collect::<Vec<_>>())
            });
            if found.is_empty() {
                screen.remark("nothing found");
            }
        }
        Memory::Show { conversation_id } => {
            let turns = memory.conversation(conversation_id)?;
            if turns.is_empty() {
                let what = format!("there is no conversation `{}`", visible(conversation_id));
                return Err(Failure::Wrong { what, cure: "`collieclaw memory list` shows them" });
            }
            screen.answer(&turns, || turns.iter().map(told).collect::<Vec<_>>().join("\n"));
        }
        Memory::Clear { yes: false } => {
            let what = "this forgets every conversation".to_owned();
            return Err(Failure::Wrong {
                what,
                cure: "say `collieclaw memory clear --yes` if that is what you want",
            });
        }
        Memory::Clear { yes: true } => {}
    }
    Ok(())
}

/// What was typed at the prompt was said as well, and goes also where the rest can't go yet.
fn clear(config: &Config, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let history = environment.home.history();
    let removed = match std::fs::remove_file(&history) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io(format!("remove {}", history.display()))(error))
        }
        _ => Ok(()),
    };
    let cleared = open::memory(config)?.clear()?;
    removed?;
    let value = json!({ "conversations": cleared.conversations, "turns": cleared.turns });
    screen.answer(&value, || {
        format!(
            "forgot {} with {}",
            count(cleared.conversations, "conversation"),
            count(cleared.turns, "turn")
        )
    });
    Ok(())
}

fn told(turn: &Turn) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m  {}\n", role(turn.role), moment(turn.timestamp));
    if !turn.content.is_empty() {
        text.push_str(&visible_lines(&turn.content));
        text.push('\n');
    }
    for call in &turn.tool_calls {
        text.push_str(&format!("→ {} {}\n", visible(&call.name), visible(&call.arguments.to_string())));
    }
    for result in &turn.tool_results {
        text.push_str(&format!(
            "({}, {})\n",
            visible(&result.tool),
            result.receipt_id.as_deref().unwrap_or("no receipt")
        ));
    }
    text
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
