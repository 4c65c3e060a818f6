//! Random texts: stored texts are read back, and every part of them is found.

use collieclaw_agent::memory::ConversationExchange;
use collieclaw_providers::ChatRole;

use super::support::{MemoryFolder, MemoryRandom, turn};

/// Letters of many scripts, upper and lower case, diacritics, symbols, spaces and invisible characters.
const LETTERS: &str = "aAbBcC eéèÉ\u{301} ßẞſ İıiI \n\t\"'*()-_.,:; 0123 äöü ŁłØøÆæ ΣσςΩ ЁёЙй ﬁ½ ＡＢ \
    東京都新幹線 かがガ゛ 한국어\u{1112}\u{1161}\u{11ab} สวัสดี नमस्ते שָׁלוֹם مَرْحَبًا 🎉👩\u{200d}👧 \u{202e}\u{200b}\0\u{1b}";

fn text(random: &mut MemoryRandom, letters: &[char]) -> String {
    let length = random.next_below(60);
    // Some texts use few different letters, so that their fragments occur in many other texts.
    let (from, span) = match random.next_below(3) {
        0 => (random.next_below(letters.len()), 4),
        _ => (0, letters.len()),
    };
    (0..length).map(|_| letters[(from + random.next_below(span)) % letters.len()]).collect()
}

fn piece(random: &mut MemoryRandom, text: &str) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    let length = 3 + random.next_below(10);
    let start = random.next_below(letters.len().checked_sub(length)? + 1);
    Some(letters[start..start + length].iter().collect())
}

/// Removes everything that a search ignores: spaces, diacritics and invisible characters.
fn is_ignored(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(letter, '\u{301}' | '\u{5b0}'..='\u{5c7}' | '\u{64b}'..='\u{652}' | '\u{200b}'..='\u{202e}')
}

#[test]
fn any_stored_text_is_returned_and_found_by_any_part() {
    let letters: Vec<char> = LETTERS.chars().collect();
    let mut searched = 0;
    for seed in 0..6 {
        let mut random = MemoryRandom::new(seed);
        let place = MemoryFolder::new();
        let memory = place.open();
        let turns: Vec<_> =
            (0..150).map(|number| turn("c", number, ChatRole::User, &text(&mut random, &letters))).collect();
        for exchange in turns.chunks(7) {
            memory.persist(&ConversationExchange { turns: exchange.to_vec() }).unwrap();
        }
        assert_eq!(memory.conversation("c").unwrap(), turns);
        for turn in &turns {
            let Some(query) = piece(&mut random, &turn.content) else { continue };
            let found = memory.search(&query, turns.len()).unwrap();
            if found.is_empty() {
                assert!(query.chars().all(is_ignored), "{seed}: {query:?} of {:?}", turn.content);
                continue;
            }
            let itself = found.iter().any(|found| found.turn_id == turn.turn_id);
            assert!(itself, "{seed}: {query:?} of {:?}", turn.content);
            searched += 1;
        }
    }
    assert!(searched > 400, "{searched}");
}
