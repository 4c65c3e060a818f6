//! What a model is shown of a conversation: whole exchanges, within bounds.

use collieclaw_providers::ChatRole;
use rusqlite::Connection;

use super::error::MemoryFault;
use super::rows::{TURN, read_turn};
use super::turn::ConversationTurn;

/// Text that goes to a model as what came before: more costs time and money in every round, and few models take it.
const MAX_BYTES: usize = 256 * 1024;

/// What a tool returned is never cut shorter than this.
const MIN_OUTPUT_BYTES: usize = 1024;

/// Room for the words that say how much is missing.
const NOTE_BYTES: usize = 64;

/// The last exchange, however long it is, and those before it while they fit.
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
    // The exchange that is being read, and how many turns there are without it.
    let (mut exchange, mut whole) = (None, 0);
    let mut fit = true;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        if exchange.replace(number).is_some_and(|before| before != number) {
            whole = newest_first.len();
        }
        let turn = read_turn(row)?;
        bytes += turn_bytes(&turn);
        fit = whole == 0 || (newest_first.len() < limit && bytes <= MAX_BYTES);
        if !fit {
            break;
        }
        newest_first.push(turn);
    }
    if !fit {
        newest_first.truncate(whole);
    }
    newest_first.reverse();
    // More than this is one exchange alone.
    if newest_first.iter().map(turn_bytes).sum::<usize>() > MAX_BYTES {
        shorten_outputs(&mut newest_first);
    }
    Ok(newest_first)
}

/// How much of a turn goes to a model.
fn turn_bytes(turn: &ConversationTurn) -> usize {
    match turn.role {
        ChatRole::Tool => turn.tool_results.iter().map(|result| result.output.len()).sum(),
        ChatRole::User | ChatRole::Assistant => {
            let calls = turn.tool_calls.iter().map(|call| call.arguments.to_string().len());
            turn.content.len() + calls.sum::<usize>()
        }
    }
}

/// Cuts what tools returned, so that all of it fits beside what was said, which is not cut.
fn shorten_outputs(turns: &mut [ConversationTurn]) {
    let said: usize = turns.iter().filter(|turn| turn.role != ChatRole::Tool).map(turn_bytes).sum();
    let outputs = turns.iter().map(|turn| turn.tool_results.len()).sum::<usize>().max(1);
    let most = (MAX_BYTES.saturating_sub(said) / outputs).max(MIN_OUTPUT_BYTES);
    for turn in turns.iter_mut().filter(|turn| turn.role == ChatRole::Tool) {
        truncate_output(&mut turn.content, most);
        turn.tool_results.iter_mut().for_each(|result| truncate_output(&mut result.output, most));
    }
}

fn truncate_output(text: &mut String, most: usize) {
    if text.len() > most {
        let kept = text.floor_char_boundary(most - NOTE_BYTES);
        let missing = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("\n[{missing} more bytes were left out]"));
    }
}
