//! Stored conversations are read back unchanged, complete and in order.

use collieclaw_agent::memory::{
    ConversationExchange, ConversationSummary, ConversationTurn, MemoryError, StoredToolResult,
};
use collieclaw_providers::{ChatRole, ToolCall};
use serde_json::{Map, json};

use super::support::{MemoryFolder, memory_with, single_turn_exchange, turn};

fn exchange_with_call(conversation: &str, number: usize) -> ConversationExchange {
    let mut asked = turn(conversation, number + 1, ChatRole::Assistant, "");
    asked.tool_calls =
        vec![ToolCall { id: "call-1".into(), name: "file_list".into(), arguments: json!({"path": "."}) }];
    let mut answered = turn(conversation, number + 2, ChatRole::Tool, "notes.txt\nplan.md");
    answered.tool_results = vec![StoredToolResult {
        call_id: "call-1".into(),
        tool: "file_list".into(),
        success: true,
        output: "notes.txt\nplan.md".into(),
        receipt_id: Some("receipt-1".into()),
    }];
    let mut last = turn(conversation, number + 3, ChatRole::Assistant, "Two files.");
    last.metadata = Map::from_iter([("tokens".to_owned(), json!({"prompt": 12}))]);
    ConversationExchange {
        turns: vec![turn(conversation, number, ChatRole::User, "What is there?"), asked, answered, last],
    }
}

fn ids(turns: &[ConversationTurn]) -> Vec<&str> {
    turns.iter().map(|turn| turn.turn_id.as_str()).collect()
}

// C15.3: memory has both turns; C10: every field.
#[test]
fn every_field_of_every_turn_comes_back() {
    let place = MemoryFolder::new();
    let exchange = exchange_with_call("c1", 0);
    place.open().persist(&exchange).unwrap();
    let memory = place.open();
    assert_eq!(memory.conversation("c1").unwrap(), exchange.turns);
    assert_eq!(memory.recent("c1", 100).unwrap(), exchange.turns);
    assert_eq!(memory.turn_count().unwrap(), 4);
}

#[test]
fn any_text_comes_back_as_it_was() {
    let texts =
        ["", "\0a\0", "\u{1b}[2J\r\n", "🎉\u{fe0f}\u{200d}", "\u{202e}rtl שלום", "'; DROP TABLE turn; --"];
    let (_place, memory) = memory_with(&texts);
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(memory.conversation(&format!("c{number}")).unwrap()[0].content, *text);
    }
    let long = "0123456789".repeat(200_000);
    memory.persist(&single_turn_exchange("long", 0, &long)).unwrap();
    assert_eq!(memory.conversation("long").unwrap()[0].content, long);
}

#[test]
fn recent_turns_are_whole_exchanges() {
    let place = MemoryFolder::new();
    let memory = place.open();
    memory.persist(&single_turn_exchange("c1", 100, "first")).unwrap();
    memory.persist(&exchange_with_call("c1", 0)).unwrap();
    memory.persist(&single_turn_exchange("other", 100, "elsewhere")).unwrap();
    memory.persist(&exchange_with_call("c1", 10)).unwrap();
    for (limit, expected) in [
        (0, &[][..]),
        // The last exchange is always present and complete.
        (1, &["turn-10", "turn-11", "turn-12", "turn-13"]),
        (4, &["turn-10", "turn-11", "turn-12", "turn-13"]),
        (7, &["turn-10", "turn-11", "turn-12", "turn-13"]),
        (8, &["turn-0", "turn-1", "turn-2", "turn-3", "turn-10", "turn-11", "turn-12", "turn-13"]),
    ] {
        assert_eq!(ids(&memory.recent("c1", limit).unwrap()), expected, "{limit}");
    }
    for limit in [9, usize::MAX] {
        assert_eq!(memory.recent("c1", limit).unwrap().len(), 9);
    }
    assert!(memory.recent("nobody", 5).unwrap().is_empty());
}

// The history for a model is bounded: whole exchanges as long as they fit, and only tool results of the last are cut.
#[test]
fn recent_turns_fit_into_a_request() {
    let place = MemoryFolder::new();
    let memory = place.open();
    let long = "ä".repeat(150_000);
    let mut exchange = exchange_with_call("c1", 20);
    exchange.turns[2].content.clone_from(&long);
    exchange.turns[2].tool_results[0].output.clone_from(&long);
    memory.persist(&single_turn_exchange("c1", 1, "far away")).unwrap();
    memory.persist(&single_turn_exchange("c1", 2, &"x".repeat(200_000))).unwrap();
    memory.persist(&single_turn_exchange("c1", 3, &"x".repeat(100_000))).unwrap();
    assert_eq!(ids(&memory.recent("c1", 100).unwrap()), ["turn-3"], "earlier ones don't fit beside it");

    memory.persist(&exchange).unwrap();
    let recent = memory.recent("c1", 100).unwrap();
    assert_eq!(ids(&recent), ["turn-20", "turn-21", "turn-22", "turn-23"]);
    let shown = &recent[2].tool_results[0].output;
    assert!(shown.len() <= 256 * 1024, "{}", shown.len());
    let (text, note) = shown.split_once('[').unwrap();
    assert!(long.starts_with(text.trim_end()) && note.ends_with("more bytes were left out]"), "{note}");
    assert_eq!(recent[2].content, *shown);
    assert_eq!(recent[1], exchange.turns[1], "the rest is as it was");

    memory.persist(&single_turn_exchange("c1", 30, &"x".repeat(1 << 20))).unwrap();
    assert_eq!(memory.recent("c1", 100).unwrap()[0].content.len(), 1 << 20, "what was said is not cut");
}

#[test]
fn conversations_are_listed_by_when_they_were_last_spoken_in() {
    let (_place, memory) = memory_with(&["one\n\u{1b}[31m thing", "another"]);
    assert_eq!(memory.latest_conversation().unwrap().as_deref(), Some("c1"));
    memory.persist(&single_turn_exchange("c0", 9, "and more")).unwrap();
    let time = |number| turn("", number, ChatRole::User, "").timestamp;
    let summary = |id: &str, started, last, turns, words: &str| ConversationSummary {
        conversation_id: id.to_owned(),
        started: time(started),
        last: time(last),
        turns,
        first_words: words.to_owned(),
        workspace: String::new(),
    };
    let expected = [summary("c0", 0, 9, 2, "one [31m thing"), summary("c1", 1, 1, 1, "another")];
    assert_eq!(memory.conversations(10).unwrap(), expected);
    assert_eq!(memory.conversations(1).unwrap(), expected[..1]);
    assert_eq!(memory.latest_conversation().unwrap().as_deref(), Some("c0"));
}

#[test]
fn a_new_memory_is_empty() {
    let memory = MemoryFolder::new();
    let memory = memory.open();
    assert_eq!(memory.latest_conversation().unwrap(), None);
    assert_eq!(memory.turn_count().unwrap(), 0);
    assert!(memory.conversations(5).unwrap().is_empty());
    assert!(memory.conversation("c").unwrap().is_empty());
    assert!(memory.search("anything", 5).unwrap().is_empty());
}

#[test]
fn an_invalid_exchange_is_refused_as_a_whole() {
    let place = MemoryFolder::new();
    let memory = place.open();
    let one = turn("c1", 1, ChatRole::User, "hi");
    for (turns, fault) in [
        (vec![], "it has no turns"),
        (vec![one.clone(), turn("c2", 2, ChatRole::User, "hi")], "its turns belong to several conversations"),
        (vec![one.clone(), one.clone()], "two of its turns have the same id"),
        (vec![turn("", 1, ChatRole::User, "hi")], "its conversation has no id"),
    ] {
        let refused = memory.persist(&ConversationExchange { turns }).unwrap_err();
        assert!(matches!(refused, MemoryError::InvalidExchange { .. }), "{refused:?}");
        assert_eq!(refused.to_string(), format!("could not store the exchange: {fault}"));
    }
    // A duplicate turn rejects the whole exchange.
    memory.persist(&ConversationExchange { turns: vec![one.clone()] }).unwrap();
    let again = ConversationExchange { turns: vec![turn("c1", 0, ChatRole::User, "before"), one] };
    memory.persist(&again).unwrap_err();
    assert_eq!(ids(&memory.conversation("c1").unwrap()), ["turn-1"]);
    assert!(memory.search("before", 5).unwrap().is_empty());
    assert_eq!(memory.turn_count().unwrap(), 1);
}
