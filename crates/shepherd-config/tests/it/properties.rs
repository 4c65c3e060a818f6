//! No text makes the loader panic, and every refusal has faults (S7.2).

use proptest::prelude::*;
use shepherd_config::load;
use ward_diag::FaultReport;

use crate::fixture;

/// Checks that a refusal has at least one fault, each inside the text, and can be rendered.
fn check(text: &str) {
    if let Err(report) = load("policy.toml", text) {
        check_report(&report);
    }
}

pub(crate) fn check_report(report: &FaultReport) {
    assert!(!report.faults().is_empty());
    let length = report.source().text().len();
    let mut last = 0;
    for fault in report.faults() {
        let span = fault.span();
        assert!(span.start <= span.end && span.end <= length, "{fault:?}");
        assert!(last <= span.start, "not in the order of the text: {report}");
        assert!(!fault.message().is_empty());
        last = span.start;
    }
    assert!(!report.to_string().is_empty());
}

/// Fragments of policies, for texts that resemble a policy.
const WORDS: [&str; 58] = [
    "config_version = 1\n",
    "[[entries]]\n",
    "[defaults]\n",
    "[modes]\n",
    "[[exceptions]]\n",
    "[budgets.games]\n",
    "[profiles.anna]\n",
    "id = \"x\"\n",
    "argv = [\"x\"]\n",
    "windows = [",
    "always = true\n",
    "{ from = \"15:00\", ",
    "to = \"15:00\" }",
    "days = []",
    "days = \"weekdays\", ",
    "]\n",
    "max_run = ",
    "\"45m\"\n",
    "0\n",
    "-1\n",
    "99999999999999999999\n",
    "2026-12-24\n",
    "on = ",
    "as_on = \"sun\"\n",
    "closed = true\n",
    "unlock = { entry = \"x\" }\n",
    "earns = {}\n",
    "expect = [\"sat 10:00 x: allow\"]\n",
    "timezone = \"UTC\"\n",
    "daily = { all = \"1h\" }\n",
    "names = [\"x\"]\n",
    "kind = \"vm\"\n",
    "driver = \"qemu\"\n",
    "args = { a = [1, nan] }\n",
    "\"",
    "é\u{1F411}",
    "message = \"{remaining\"",
    "[libraries.x]\n",
    "paths = [\"/\"]\n",
    "warnings = [{ before = \"1m\" }]\n",
    "[access]\n",
    "admins = [\"@family\", 1000, \"@100\"]\n",
    "others = \"shell\"\n",
    "accounts = [\"anna\"]\n",
    "[compositor]\n",
    "sway = \"connect\"\n",
    "start = [\"sway\"]\n",
    "display = \"fullscreen\"\n",
    "output_limit = ",
    "\"1MiB\"\n",
    "\"18446744073709551615GiB\"\n",
    "resources = { cpu = \"150%\", memory = \"1 GiB\", processes = \"unlimited\" }\n",
    "[drivers.x]\n",
    "kind = \"custom\"\n",
    "type = \"flatpak\"\n",
    "payload = { app = \"org.x.y\" }\n",
    "args = { memory = \"1GiB\", kernel = \"/x\", accel = \"kvm\" }\n",
    "user = \"kid\"\n",
];

#[derive(Clone, Debug)]
enum TextMutation {
    Remove { at: usize, length: usize },
    Insert { at: usize, word: usize },
    SwapLines { one: usize, other: usize },
    RepeatLine { line: usize },
    DropLine { line: usize },
    Replace { at: usize, with: char },
}

fn mutation() -> impl Strategy<Value = TextMutation> {
    prop_oneof![
        (any::<usize>(), 1_usize..40).prop_map(|(at, length)| TextMutation::Remove { at, length }),
        (any::<usize>(), 0..WORDS.len()).prop_map(|(at, word)| TextMutation::Insert { at, word }),
        (any::<usize>(), any::<usize>()).prop_map(|(one, other)| TextMutation::SwapLines { one, other }),
        any::<usize>().prop_map(|line| TextMutation::RepeatLine { line }),
        any::<usize>().prop_map(|line| TextMutation::DropLine { line }),
        (any::<usize>(), any::<char>()).prop_map(|(at, with)| TextMutation::Replace { at, with }),
    ]
}

fn apply(text: &str, mutation: &TextMutation) -> String {
    let place = |at: usize| text.floor_char_boundary(at % (text.len() + 1));
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let count = lines.len().max(1);
    match *mutation {
        TextMutation::Remove { at, length } => {
            let start = place(at);
            let end = text.floor_char_boundary((start + length).min(text.len()));
            format!("{}{}", &text[..start], &text[end..])
        }
        TextMutation::Insert { at, word } => {
            format!("{}{}{}", &text[..place(at)], WORDS[word], &text[place(at)..])
        }
        TextMutation::SwapLines { one, other } => {
            lines.swap(one % count, other % count);
            lines.concat()
        }
        TextMutation::RepeatLine { line } => {
            lines.insert(line % count, lines[line % count]);
            lines.concat()
        }
        TextMutation::DropLine { line } => {
            lines.remove(line % count);
            lines.concat()
        }
        TextMutation::Replace { at, with } => {
            let start = place(at);
            let end = text[start..].chars().next().map_or(start, |first| start + first.len_utf8());
            format!("{}{with}{}", &text[..start], &text[end..])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        check(&text);
        check(&format!("config_version = 1\n{text}"));
    }

    #[test]
    fn words_of_the_language_in_any_order_never_panic(words in prop::collection::vec(0..WORDS.len(), 0..40)) {
        check(&words.iter().map(|word| WORDS[*word]).collect::<String>());
    }

    #[test]
    fn a_mutated_policy_loads_or_is_explained(mutations in prop::collection::vec(mutation(), 1..6)) {
        let text = fixture::text("../../policies/all-keys.toml");
        check(&mutations.iter().fold(text, |text, mutation| apply(&text, mutation)));
    }
}

#[test]
fn the_same_text_gives_the_same_policy_and_the_same_report() {
    let family = fixture::text("../../policies/all-keys.toml");
    assert_eq!(load("family.toml", &family), load("family.toml", &family));
    let broken = family.replace("\"games\"", "\"gmes\"");
    let (one, other) = (load("family.toml", &broken).unwrap_err(), load("family.toml", &broken).unwrap_err());
    assert_eq!(one.to_string(), other.to_string());
}
