//! Conversion of turns and conversations to table rows and back.

use std::borrow::Cow;
use std::collections::BTreeSet;

use collieclaw_providers::{ChatRole, ToolCall};
use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::MemoryFault;
use super::excerpt::first_words;
use super::fold::fold;
use super::turn::{ConversationExchange, ConversationTurn};
use super::words::index_words;

/// An entry in the list of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationSummary {
    pub conversation_id: String,
    pub started: Timestamp,
    /// The time of the last turn.
    pub last: Timestamp,
    pub turns: u64,
    /// The start of the first turn, on one line.
    pub first_words: String,
    /// The workspace in which the conversation was started; empty for the workspace of the configuration.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workspace: String,
}

pub(super) const TURN: &str = "
SELECT turn.exchange, conversation.name, turn_id, timestamp, role, content, tool_calls, tool_results, provider,
       model, metadata
FROM turn JOIN conversation ON conversation.id = turn.conversation
WHERE conversation.name = ?1
";

/// Inserts an exchange and its index entries.
pub(super) fn insert_exchange(
    transaction: &Transaction<'_>,
    exchange: &ConversationExchange,
    workspace: &str,
) -> Result<(), MemoryFault> {
    check_exchange(exchange)?;
    let Some(first) = exchange.turns.first() else { return Ok(()) };
    let last_id: i64 =
        transaction.query_row("SELECT coalesce(max(id), 0) FROM turn", [], |row| row.get(0))?;
    let first_id = last_id + 1;
    let new_last = last_id + i64::try_from(exchange.turns.len()).unwrap_or(i64::MAX);
    let conversation: i64 = transaction
        .prepare_cached(
            "INSERT INTO conversation (name, first_turn, last_turn, turns, workspace) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (name) DO UPDATE SET last_turn = excluded.last_turn, turns = turns + excluded.turns
             RETURNING id",
        )?
        .query_row(params![first.conversation_id, first_id, new_last, new_last - last_id, workspace], |row| {
            row.get(0)
        })?;
    for (id, turn) in (first_id..).zip(&exchange.turns) {
        transaction
            .prepare_cached("INSERT INTO turn VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?
            .execute(params![
                id,
                conversation,
                first_id,
                turn.turn_id,
                turn.timestamp.to_string(),
                role_name(turn.role),
                turn.content,
                list_to_json(&turn.tool_calls)?,
                list_to_json(&turn.tool_results)?,
                turn.provider,
                turn.model,
                if turn.metadata.is_empty() { None } else { Some(serde_json::to_string(&turn.metadata)?) },
            ])?;
        let folded = fold(&searchable_text(&turn.content, &turn.tool_calls));
        transaction
            .prepare_cached("INSERT INTO turn_words (rowid, words) VALUES (?1, ?2)")?
            .execute(params![id, index_words(&folded)])?;
        transaction
            .prepare_cached("INSERT INTO turn_grams (rowid, folded) VALUES (?1, ?2)")?
            .execute(params![id, folded])?;
    }
    Ok(())
}

fn check_exchange(exchange: &ConversationExchange) -> Result<(), MemoryFault> {
    let Some(first) = exchange.turns.first() else {
        return Err(MemoryFault::InvalidExchange("it has no turns"));
    };
    if first.conversation_id.is_empty() {
        return Err(MemoryFault::InvalidExchange("its conversation has no id"));
    }
    if exchange.turns.iter().any(|turn| turn.conversation_id != first.conversation_id) {
        return Err(MemoryFault::InvalidExchange("its turns belong to several conversations"));
    }
    let ids: BTreeSet<&str> = exchange.turns.iter().map(|turn| turn.turn_id.as_str()).collect();
    if ids.len() != exchange.turns.len() {
        return Err(MemoryFault::InvalidExchange("two of its turns have the same id"));
    }
    Ok(())
}

/// Returns the text that a turn is found by: its content, and its tool calls with their arguments.
fn searchable_text(content: &str, calls: &[ToolCall]) -> String {
    let mut text = content.to_owned();
    for call in calls {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&call.name);
        text.push(' ');
        text.push_str(&call.arguments.to_string());
    }
    text
}

/// Returns the searchable text of a row. The calls are in the column after the content.
pub(super) fn row_searchable_text<'row>(
    row: &'row Row<'_>,
    content: usize,
) -> Result<Cow<'row, str>, MemoryFault> {
    let calls = row.get_ref(content + 1)?;
    let content = column_text(row.get_ref(content)?)?;
    Ok(match calls {
        ValueRef::Null => Cow::Borrowed(content),
        calls => Cow::Owned(searchable_text(content, &from_json::<Vec<_>>(calls)?)),
    })
}

pub(super) fn read_conversation(
    connection: &Connection,
    conversation_id: &str,
) -> Result<Vec<ConversationTurn>, MemoryFault> {
    let mut statement = connection.prepare_cached(&format!("{TURN} ORDER BY turn.id"))?;
    let mut rows = statement.query([conversation_id])?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        turns.push(read_turn(row)?);
    }
    Ok(turns)
}

pub(super) fn list_conversations(
    connection: &Connection,
    workspace: Option<&str>,
    limit: usize,
) -> Result<Vec<ConversationSummary>, MemoryFault> {
    let mut statement = connection.prepare_cached(
        "SELECT name, first.timestamp, last.timestamp, turns, first.content, workspace
         FROM conversation
         JOIN turn AS first ON first.id = first_turn
         JOIN turn AS last ON last.id = last_turn
         WHERE ?2 IS NULL OR workspace = ?2
         ORDER BY last_turn DESC LIMIT ?1",
    )?;
    let mut rows = statement.query(params![i64::try_from(limit).unwrap_or(i64::MAX), workspace])?;
    let mut summaries = Vec::new();
    while let Some(row) = rows.next()? {
        summaries.push(ConversationSummary {
            conversation_id: row.get(0)?,
            started: column_timestamp(row.get_ref(1)?)?,
            last: column_timestamp(row.get_ref(2)?)?,
            turns: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
            first_words: first_words(column_text(row.get_ref(4)?)?),
            workspace: row.get(5)?,
        });
    }
    Ok(summaries)
}

pub(super) fn latest_conversation(
    connection: &Connection,
    workspace: Option<&str>,
) -> Result<Option<String>, MemoryFault> {
    let sql = "SELECT name FROM conversation WHERE name NOT GLOB 'run-*' AND (?1 IS NULL OR workspace = ?1)
               ORDER BY last_turn DESC LIMIT 1";
    Ok(connection.query_row(sql, [workspace], |row| row.get(0)).optional()?)
}

/// Returns the workspace of a conversation, or `None` if the conversation doesn't exist.
pub(super) fn workspace_of(
    connection: &Connection,
    conversation_id: &str,
) -> Result<Option<String>, MemoryFault> {
    let sql = "SELECT workspace FROM conversation WHERE name = ?1";
    Ok(connection.query_row(sql, [conversation_id], |row| row.get(0)).optional()?)
}

pub(super) fn turn_count(connection: &Connection) -> Result<u64, MemoryFault> {
    let sql = "SELECT coalesce(sum(turns), 0) FROM conversation";
    let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(super) fn read_turn(row: &Row<'_>) -> Result<ConversationTurn, MemoryFault> {
    Ok(ConversationTurn {
        conversation_id: row.get(1)?,
        turn_id: row.get(2)?,
        timestamp: column_timestamp(row.get_ref(3)?)?,
        role: column_role(row.get_ref(4)?)?,
        content: row.get(5)?,
        tool_calls: from_json(row.get_ref(6)?)?,
        tool_results: from_json(row.get_ref(7)?)?,
        provider: row.get(8)?,
        model: row.get(9)?,
        metadata: from_json(row.get_ref(10)?)?,
    })
}

pub(super) fn column_text(value: ValueRef<'_>) -> Result<&str, MemoryFault> {
    value.as_str().map_err(|error| MemoryFault::Damage(format!("a column contains no text: {error}")))
}

pub(super) fn column_timestamp(value: ValueRef<'_>) -> Result<Timestamp, MemoryFault> {
    column_text(value)?
        .parse()
        .map_err(|error| MemoryFault::Damage(format!("a turn has an invalid time: {error}")))
}

pub(super) fn column_role(value: ValueRef<'_>) -> Result<ChatRole, MemoryFault> {
    match column_text(value)? {
        "user" => Ok(ChatRole::User),
        "assistant" => Ok(ChatRole::Assistant),
        "tool" => Ok(ChatRole::Tool),
        other => Err(MemoryFault::Damage(format!("a turn has the unknown role {other:?}"))),
    }
}

fn role_name(role: ChatRole) -> &'static str {
    match role {
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
    }
}

/// Serializes a list. An empty list is stored as NULL, because most turns have none.
fn list_to_json<T: Serialize>(list: &[T]) -> Result<Option<String>, MemoryFault> {
    if list.is_empty() { Ok(None) } else { Ok(Some(serde_json::to_string(list)?)) }
}

fn from_json<T: DeserializeOwned + Default>(value: ValueRef<'_>) -> Result<T, MemoryFault> {
    match value {
        ValueRef::Null => Ok(T::default()),
        value => Ok(serde_json::from_str(column_text(value)?)?),
    }
}
