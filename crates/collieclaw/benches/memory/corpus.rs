//! Synthetic conversations with a realistic distribution of words.

use collieclaw_agent::memory::{ConversationExchange, ConversationTurn};
use collieclaw_providers::ChatRole;
use jiff::Timestamp;
use serde_json::Map;

const COMMON: &str = "the of and to in is you that it he was for on are as with his they at be this have from or one \
    had by word but not what all were we when your can said there use an each which she do how their if will up \
    other about out many then them these so some her would make like him into time has look two more write go see \
    number no way could people my than first water been call who oil its now find long down day did get come made \
    may part running building testing thing nothing function connection application configuration memory";

const SYLLABLES: &str = "ba be bi bo bu ca ce ci co cu da de di do du fa fe fi fo fu ga ge gi go gu ha he hi ho hu \
    la le li lo lu ma me mi mo mu na ne ni no nu pa pe pi po pu ra re ri ro ru sa se si so su ta te ti to tu va ve \
    tion ing ment ter ver con pro com per est ant ent ous ive ful ness able str tra gra pla cre sho thi whe qua";

const SENTENCES: [&str; 6] = [
    "新幹線で京都へ行きたいのですが、駅はどこですか。",
    "東京の天気は晴れです。明日は雨が降るでしょう。",
    "我想知道怎么配置这个程序的内存。",
    "Die Straße nach Łódź ist gesperrt, sagt Jürgen.",
    "Où est la crème brûlée que j'ai préparée hier ?",
    "где находится файл с настройками, покажи его",
];

const SELDOM: [(usize, &str); 6] = [
    (100_003, "the Aardvark adapter"),
    (50_021, "a zebrafish in the tank"),
    (20_011, "CREME-BRULÉE"),
    (3_001, "a kubernetes deployment failed"),
    (5_003, "error in src/memory/search.rs:42"),
    (701, "https://example.org/docs?page=3"),
];

/// A generator of words with realistic frequencies.
pub(crate) struct CorpusGenerator {
    words: Vec<String>,
    state: u64,
    turns: usize,
}

impl CorpusGenerator {
    pub(crate) fn new() -> Self {
        let syllables: Vec<&str> = SYLLABLES.split_whitespace().collect();
        let mut library = Self { words: Vec::new(), state: 0x9e37_79b9_7f4a_7c15, turns: 0 };
        library.words.extend(COMMON.split_whitespace().map(str::to_owned));
        while library.words.len() < 60_000 {
            let count = 2 + library.random_below(3);
            let word = (0..count)
                .filter_map(|_| syllables.get(library.random_below(syllables.len())))
                .copied()
                .collect();
            library.words.push(word);
        }
        library
    }

    pub(crate) fn skip_to(&mut self, turns: usize) {
        self.turns = turns;
    }

    /// Generates the turns of a new conversation.
    pub(crate) fn exchange(&mut self, turns: usize) -> ConversationExchange {
        let conversation = format!("conversation-{}", self.turns);
        ConversationExchange { turns: (0..turns).map(|_| self.turn(&conversation)).collect() }
    }

    fn turn(&mut self, conversation: &str) -> ConversationTurn {
        self.turns += 1;
        let number = self.turns;
        let seconds = 1_700_000_000 + i64::try_from(number).unwrap_or(0) * 60;
        ConversationTurn {
            conversation_id: conversation.to_owned(),
            turn_id: format!("turn-{number}"),
            timestamp: Timestamp::from_second(seconds).unwrap_or_default(),
            role: if number.is_multiple_of(2) { ChatRole::Assistant } else { ChatRole::User },
            content: self.content(number),
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            provider: "local".to_owned(),
            model: "mock".to_owned(),
            metadata: Map::new(),
        }
    }

    fn content(&mut self, number: usize) -> String {
        if number.is_multiple_of(20) {
            let sentence = SENTENCES.get(self.random_below(SENTENCES.len())).copied().unwrap_or_default();
            return format!("{sentence} {}", self.random_below(100_000));
        }
        let mut content = String::new();
        for _ in 0..8 + self.random_below(40) {
            let rank = self.random_rank();
            content.push_str(self.words.get(rank).map_or("", String::as_str));
            content.push(' ');
        }
        for (every, words) in SELDOM {
            if number % every == 7 {
                content.push_str(words);
            }
        }
        content
    }

    /// Zipf's law: the n-th word is about 1/n as frequent as the first.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank among thousands"
    )]
    fn random_rank(&mut self) -> usize {
        let share = self.random_below(1 << 30) as f64 / f64::from(1 << 30);
        ((self.words.len() as f64).powf(share) - 1.0) as usize
    }

    fn random_below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap_or(0) % bound
    }
}
