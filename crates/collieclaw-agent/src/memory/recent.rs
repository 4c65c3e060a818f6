//! Selects the earlier turns that the model gets: whole exchanges, up to a size. An exchange is a message of the user
//! with everything that follows until the next one.

use collieclaw_providers::ChatRole;
use rusqlite::Connection;

use super::error::MemoryFault;
use super::rows::{TURN, read_turn};
use super::turn::ConversationTurn;

/// The maximum size of earlier turns in a request. More would cost time and money in every round, and few
/// models accept it.
const MAX_BYTES: usize = 256 * 1024;

/// The length up to which tool output is never truncated.
const MIN_OUTPUT_BYTES: usize = 1024;

/// Space for the note that says how much was left out.
const NOTE_BYTES: usize = 64;

/// Returns the last exchange, whatever its size, and earlier exchanges as long as they fit into `limit` turns and
/// [`MAX_BYTES`].
pub(super) fn recent_turns(
    connection: &Connection,
    conversation_id: &str,
    limit: usize,
) -> Result<Vec<ConversationTurn>, MemoryFault> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(&format!("{TURN} ORDER BY turn.id DESC"))?;
    let mut rows = statement.query([conversation_id])?;
    let mut newest_first: Vec<ConversationTurn> = Vec::new();
    let mut bytes = 0;
    let mut current_exchange = None;
    // The turns of the exchanges that were read completely.
    let mut complete_turns = 0;
    let mut fit = true;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        if current_exchange.replace(number).is_some_and(|before| before != number) {
            complete_turns = newest_first.len();
        }
        let turn = read_turn(row)?;
        bytes += turn_bytes(&turn);
        fit = complete_turns == 0 || (newest_first.len() < limit && bytes <= MAX_BYTES);
        if !fit {
            break;
        }
        newest_first.push(turn);
    }
    if !fit {
        newest_first.truncate(complete_turns);
    }
    newest_first.reverse();
    // Only the last exchange alone can be larger.
    if newest_first.iter().map(turn_bytes).sum::<usize>() > MAX_BYTES {
        shorten_outputs(&mut newest_first);
    }
    Ok(newest_first)
}

/// Returns the number of bytes of a turn that are sent to a model.
fn turn_bytes(turn: &ConversationTurn) -> usize {
    match turn.role {
        ChatRole::Tool => turn.tool_results.iter().map(|result| result.output.len()).sum(),
        ChatRole::User | ChatRole::Assistant => {
            let calls = turn.tool_calls.iter().map(|call| call.arguments.to_string().len());
            turn.content.len() + calls.sum::<usize>()
        }
    }
}

/// Truncates tool output so that it fits next to the messages. Messages are not truncated.
fn shorten_outputs(turns: &mut [ConversationTurn]) {
    let messages: usize = turns.iter().filter(|turn| turn.role != ChatRole::Tool).map(turn_bytes).sum();
    let outputs = turns.iter().map(|turn| turn.tool_results.len()).sum::<usize>().max(1);
    let max_bytes = (MAX_BYTES.saturating_sub(messages) / outputs).max(MIN_OUTPUT_BYTES);
    for turn in turns.iter_mut().filter(|turn| turn.role == ChatRole::Tool) {
        truncate_output(&mut turn.content, max_bytes);
        turn.tool_results.iter_mut().for_each(|result| truncate_output(&mut result.output, max_bytes));
    }
}

fn truncate_output(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let kept = text.floor_char_boundary(max_bytes - NOTE_BYTES);
        let missing = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("\n[{missing} more bytes were left out]"));
    }
}
