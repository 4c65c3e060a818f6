//! What a model is shown of a conversation: whole exchanges, within bounds.

use rusqlite::Connection;

use super::error::Trouble;
use super::rows::{TURN, turn};
use super::turn::Turn;
use crate::providers::Role;

/// Text that goes to a model as what came before: more costs time and money in every round, and few models take it.
const MOST_BYTES: usize = 256 * 1024;

/// What a tool returned is never cut shorter than this.
const LEAST_OF_AN_OUTPUT: usize = 1024;

/// Room for the words that say how much is missing.
const WORDS: usize = 64;

/// The last exchange, however long it is, and those before it while they fit.
pub(super) fn recent(
    connection: &Connection,
    conversation_id: &str,
    limit: usize,
) -> Result<Vec<Turn>, Trouble> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(&format!("{TURN} ORDER BY turn.id DESC"))?;
    let mut rows = statement.query([conversation_id])?;
    let mut newest_first: Vec<Turn> = Vec::new();
    let mut bytes = 0;
    // The exchange that is being read, and how many turns there are without it.
    let (mut exchange, mut whole) = (None, 0);
    let mut fit = true;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        if exchange.replace(number).is_some_and(|before| before != number) {
            whole = newest_first.len();
        }
        let turn = turn(row)?;
        bytes += weight(&turn);
        fit = whole == 0 || (newest_first.len() < limit && bytes <= MOST_BYTES);
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
    if newest_first.iter().map(weight).sum::<usize>() > MOST_BYTES {
        shorten(&mut newest_first);
    }
    Ok(newest_first)
}

/// How much of a turn goes to a model.
fn weight(turn: &Turn) -> usize {
    match turn.role {
        Role::Tool => turn.tool_results.iter().map(|result| result.output.len()).sum(),
        Role::User | Role::Assistant => {
            let calls = turn.tool_calls.iter().map(|call| call.arguments.to_string().len());
            turn.content.len() + calls.sum::<usize>()
        }
    }
}

/// Cuts what tools returned, so that all of it fits beside what was said, which is not cut.
fn shorten(turns: &mut [Turn]) {
    let said: usize = turns.iter().filter(|turn| turn.role != Role::Tool).map(weight).sum();
    let outputs = turns.iter().map(|turn| turn.tool_results.len()).sum::<usize>().max(1);
    let most = (MOST_BYTES.saturating_sub(said) / outputs).max(LEAST_OF_AN_OUTPUT);
    for turn in turns.iter_mut().filter(|turn| turn.role == Role::Tool) {
        cut(&mut turn.content, most);
        turn.tool_results.iter_mut().for_each(|result| cut(&mut result.output, most));
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let kept = text.floor_char_boundary(most - WORDS);
        let missing = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("\n[{missing} more bytes were left out]"));
    }
}
