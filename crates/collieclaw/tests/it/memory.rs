//! The memory (C10).

use collieclaw::memory::{Exchange, Memory, Turn};
use collieclaw::providers::Role;
use jiff::Timestamp;
use serde_json::Map;
use tempfile::TempDir;

fn turn(conversation: &str, number: usize, role: Role, content: &str) -> Turn {
    Turn {
        conversation_id: conversation.to_owned(),
        turn_id: format!("turn-{number}"),
        timestamp: Timestamp::from_second(1_800_000_000 + i64::try_from(number).unwrap()).unwrap(),
        role,
        content: content.to_owned(),
        tool_calls: Vec::new(),
        tool_results: Vec::new(),
        provider: "local".to_owned(),
        model: "mock".to_owned(),
        metadata: Map::new(),
    }
}

#[test]
fn what_was_said_is_found_again() {
    let folder = TempDir::new().unwrap();
    let memory = Memory::open(&folder.path().join("memory.db")).unwrap();
    let exchange = Exchange {
        turns: vec![
            turn("c1", 1, Role::User, "Where is the Aardvark adapter?"),
            turn("c1", 2, Role::Assistant, "In the drawer."),
        ],
    };
    memory.persist(&exchange).unwrap();
    assert_eq!(memory.conversation("c1").unwrap(), exchange.turns);
    assert_eq!(memory.recent("c1", 10).unwrap(), exchange.turns);
    let found = memory.search("aardvark", 20).unwrap();
    assert_eq!(found[0].conversation_id, "c1");
}
