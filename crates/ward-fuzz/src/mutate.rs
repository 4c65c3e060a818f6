//! Makes new inputs by mutating the inputs of the corpus.

use std::collections::BTreeSet;

use crate::SeededRandom;

/// Length of the longest input that is made. Longer inputs find nothing new and slow the run down.
const MAX_INPUT_BYTES: usize = 16 * 1024;

/// Number of corpus words that are kept for insertion.
const MAX_WORDS: usize = 512;

/// Texts that parsers have tripped over before.
const TROUBLESOME_TOKENS: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x90\x91",
    b"\xe2\x80\xae",
    b"{",
    b"}",
    b"[",
    b"]",
    b"{}",
    b"[]",
    b":",
    b",",
    b"=",
    b"#",
    b"-",
    b"+",
    b".",
    b"null",
    b"true",
    b"false",
    b"0",
    b"-0",
    b"-1",
    b"1e999",
    b"1e-999",
    b"0.1",
    b"nan",
    b"inf",
    b"255",
    b"256",
    b"65536",
    b"2147483648",
    b"4294967296",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9999-12-31T23:59:59.999999999Z",
    b"-009999-01-01T00:00:00Z",
    b"2016-12-31T23:59:60Z",
    b"24:00",
    b"0000-00-00",
];

/// A source of new inputs, which it makes from a corpus.
#[derive(Clone, Debug)]
pub struct InputMutator {
    words: Vec<Vec<u8>>,
}

impl InputMutator {
    /// Collects the words of a corpus, which mutations then insert into inputs.
    #[must_use]
    pub fn new(corpus: &[Vec<u8>]) -> Self {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        let words: BTreeSet<&[u8]> = corpus
            .iter()
            .flat_map(|input| input.split(|byte| !is_word(byte)))
            .filter(|word| word.len() > 1)
            .collect();
        Self { words: words.into_iter().take(MAX_WORDS).map(<[u8]>::to_vec).collect() }
    }

    /// Picks an input of the corpus and applies one to eight mutations to it.
    #[must_use]
    pub fn make_input(&self, corpus: &[Vec<u8>], random: &mut SeededRandom) -> Vec<u8> {
        let mut input = random.pick(corpus).cloned().unwrap_or_default();
        for _ in 0..=random.below(3) + random.below(6) {
            self.mutate(&mut input, corpus, random);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn mutate(&self, input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut SeededRandom) {
        let span = random_span(input, random);
        let piece = input.get(span.clone()).unwrap_or_default().to_vec();
        let replacement = match random.below(11) {
            0 => Vec::new(),
            1 => piece.repeat(2),
            2 => piece.repeat(1 + random.below(64)),
            3 => piece.into_iter().rev().collect(),
            4 => piece.into_iter().map(|byte| byte ^ (1 << random.below(8))).collect(),
            5 => vec![random.byte()],
            6 | 7 => random.pick(&self.words).cloned().unwrap_or_default(),
            8 => random.pick(TROUBLESOME_TOKENS).map(|token| token.to_vec()).unwrap_or_default(),
            9 => {
                let other = random.pick(corpus).cloned().unwrap_or_default();
                other.get(random_span(&other, random)).unwrap_or_default().to_vec()
            }
            _ => nest_in_brackets(&piece, random),
        };
        input.splice(span, replacement);
        input.truncate(MAX_INPUT_BYTES);
    }
}

/// Picks a part of an input: mostly a short one, often a whole word or the text between two brackets or quotes.
fn random_span(input: &[u8], random: &mut SeededRandom) -> std::ops::Range<usize> {
    let start = random.below(input.len() + 1);
    let rest = input.get(start..).unwrap_or_default();
    let length = match random.below(4) {
        0 => 0,
        1 => random.below(8),
        2 => rest.iter().skip(1).position(u8::is_ascii_punctuation).map_or(rest.len(), |at| at + 1),
        _ => random.below(rest.len() + 1),
    };
    start..start + length.min(rest.len())
}

/// Wraps a piece in up to 1024 levels of brackets, to test the recursion limits of parsers.
fn nest_in_brackets(piece: &[u8], random: &mut SeededRandom) -> Vec<u8> {
    let depth = 1 << random.below(11);
    let (open, close): (&[u8], &[u8]) = if random.below(2) == 0 { (b"[", b"]") } else { (b"{\"a\":", b"}") };
    [open.repeat(depth), piece.to_vec(), close.repeat(depth)].concat()
}
