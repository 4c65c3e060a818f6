//! Search results and their order.

use collieclaw_agent::memory::{ConversationExchange, ConversationMemory};
use collieclaw_providers::{ChatRole, ToolCall};
use jiff::SignedDuration;
use serde_json::json;

use super::support::{MemoryFolder, memory_with, search_excerpts, single_turn_exchange, turn};

fn check(said: &[&str], expectations: &[(&str, &[&str])]) {
    let (_place, memory) = memory_with(said);
    for (query, expected) in expectations {
        assert_eq!(search_excerpts(&memory, query), *expected, "{query:?}");
    }
}

// C15.10
#[test]
fn an_earlier_conversation_is_found_by_a_word_of_it() {
    let (_place, memory) = memory_with(&["Where did I put the Aardvark adapter?", "nothing of it"]);
    let found = memory.search("aardvark", 20).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].conversation_id, "c0");
    assert_eq!(found[0].turn_id, "turn-0");
    assert_eq!(found[0].role, ChatRole::User);
    assert_eq!(found[0].excerpt, "Where did I put the Aardvark adapter?");
    assert!(found[0].score > 0.0);
}

#[test]
fn words_beginnings_and_pieces_are_found() {
    check(
        &["the configuration of the server"],
        &[
            ("configuration", &["c0"]),
            ("CONFIG", &["c0"]),
            ("figura", &["c0"]),
            ("of", &["c0"]),
            ("se", &["c0"]),
            ("rv", &["c0"]),
            ("x", &[]),
            ("f", &["c0"]),
            ("configurations", &[]),
            ("the configuration of", &["c0"]),
            ("ration of", &["c0"]),
        ],
    );
}

#[test]
fn text_in_any_language_is_found_with_or_without_accents() {
    check(
        &[
            "Crème brûlée à Łódź",
            "Die große Straße",
            "где находится ёлка",
            "新幹線で京都へ行きたい",
            "안녕하세요 한국어",
            "مَرْحَبًا بالعالم",
            "שָׁלוֹם עולם",
            "สวัสดีชาวโลก",
            "नमस्ते दुनिया",
            "Ὀδυσσεὺς",
        ],
        &[
            ("creme BRULEE", &["c0"]),
            ("lodz", &["c0"]),
            ("STRASSE", &["c1"]),
            ("große", &["c1"]),
            ("елка", &["c2"]),
            ("НАХОД", &["c2"]),
            ("京", &["c3"]),
            ("京都", &["c3"]),
            ("新幹線", &["c3"]),
            ("都京", &[]),
            ("한", &["c4"]),
            ("국어", &["c4"]),
            ("مرحبا", &["c5"]),
            ("שלום", &["c6"]),
            ("ชาว", &["c7"]),
            ("โล", &["c7"]),
            ("नमस्ते", &["c8"]),
            ("दुनि", &["c8"]),
            ("οδυσσευσ", &["c9"]),
        ],
    );
}

#[test]
fn signs_are_letters_too() {
    check(
        &["I like C++ and C#", "see src/memory/search.rs:42", "party 🎉 time", "50% of $HOME"],
        &[
            ("c++", &["c0"]),
            ("C#", &["c0"]),
            ("memory/search", &["c1"]),
            ("rs:42", &["c1"]),
            ("🎉", &["c2"]),
            ("🎈", &[]),
            ("50%", &["c3"]),
            ("$HOME", &["c3"]),
            ("_", &[]),
        ],
    );
}

#[test]
fn all_words_must_occur_and_if_they_never_do_then_any() {
    check(
        &["red cat", "red dog", "the cat is red", "a bird"],
        &[
            ("red cat", &["c0", "c2"]),
            ("cat dog", &["c1", "c0", "c2"]),
            ("dog zebra", &["c1"]),
            ("zebra gnu", &[]),
            ("is a", &["c2"]),
        ],
    );
}

#[test]
fn a_whole_word_comes_before_a_piece_and_a_short_text_before_a_long_one() {
    let long = format!("a cat {}", "and much more of the same ".repeat(40));
    check(&["a cat", &long, "some cats", "concatenate"], &[("cat", &["c0", "c2", "c3", "c1"])]);
}

#[test]
fn of_equals_the_newer_comes_first() {
    check(&["same words", "same words", "same words"], &[("words", &["c2", "c1", "c0"])]);
    // Sorted by their time, not by the order of writing.
    let place = MemoryFolder::new();
    let memory = place.open();
    for (name, days) in [("new", 0), ("old", 900), ("middle", 60)] {
        let mut exchange = single_turn_exchange(name, 0, "same words");
        exchange.turns[0].timestamp -= SignedDuration::from_hours(24 * days);
        memory.persist(&exchange).unwrap();
    }
    assert_eq!(search_excerpts(&memory, "words"), ["new", "middle", "old"]);
}

#[test]
fn arguments_and_results_of_tools_are_found() {
    let place = MemoryFolder::new();
    let memory = place.open();
    let mut call = turn("c0", 0, ChatRole::Assistant, "");
    let arguments = json!({"command": "cargo build --release"});
    call.tool_calls = vec![ToolCall { id: "1".into(), name: "shell".into(), arguments }];
    let output = turn("c0", 1, ChatRole::Tool, "Compiling collie v0.1.0");
    memory.persist(&ConversationExchange { turns: vec![call, output] }).unwrap();
    let turns = |query| -> Vec<String> {
        memory.search(query, 5).unwrap().into_iter().map(|found| found.turn_id).collect()
    };
    assert_eq!(turns("cargo build"), ["turn-0"]);
    assert_eq!(turns("shell"), ["turn-0"]);
    assert_eq!(turns("compiling"), ["turn-1"]);
    assert!(memory.search("cargo", 5).unwrap()[0].excerpt.contains("cargo build --release"));
}

fn memory_with_turns(turns: usize, content: impl Fn(usize) -> String) -> (MemoryFolder, ConversationMemory) {
    let place = MemoryFolder::new();
    let memory = place.open();
    let turns = (0..turns).map(|number| turn("c", number, ChatRole::User, &content(number))).collect();
    memory.persist(&ConversationExchange { turns }).unwrap();
    (place, memory)
}

#[test]
fn an_answer_is_as_long_as_was_asked_for() {
    let (_place, memory) = memory_with_turns(3_000, |number| format!("common words, number {number}"));
    for limit in [0, 1, 20, 1_000, usize::MAX] {
        let found = memory.search("common", limit).unwrap();
        assert_eq!(found.len(), limit.min(3_000), "{limit}");
    }
    assert_eq!(memory.search("common", 1).unwrap()[0].turn_id, "turn-2999");
}

#[test]
fn a_rare_word_is_found_in_old_turns() {
    let (_place, memory) = memory_with_turns(3_000, |number| match number {
        0 => "the quokka, 有袋類".to_owned(),
        _ => "the usual talk of the usual people in their usual places".to_owned(),
    });
    for query in ["quokka", "uokk", "the quokka", "有袋", "類", "quokka usual"] {
        assert_eq!(memory.search(query, 20).unwrap()[0].turn_id, "turn-0", "{query}");
    }
}

#[test]
fn huge_turns_are_found_by_their_end() {
    let end = format!("{} the needle", "hay and straw and ".repeat(60_000));
    let (_place, memory) = memory_with(&[&end, "a needle"]);
    assert_eq!(search_excerpts(&memory, "needle"), ["c1", "c0"]);
    let found = &memory.search("the needle", 5).unwrap()[0];
    assert!(found.excerpt.starts_with('…') && found.excerpt.ends_with("the needle"), "{}", found.excerpt);
}
