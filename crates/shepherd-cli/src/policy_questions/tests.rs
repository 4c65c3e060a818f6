//! Tests of the questions and of the policies that are made of the answers (S19.4).

use std::collections::VecDeque;
use std::path::PathBuf;

use shepherd_config::load;

use super::answers::ProgramLaunch;
use super::installed_programs::MenuProgram;
use super::*;

/// A person who types these lines, and what they see.
struct ScriptedParent {
    lines: VecDeque<String>,
    screen: String,
}

impl ScriptedParent {
    fn new(lines: &[&str]) -> Self {
        Self { lines: lines.iter().map(|line| (*line).to_owned()).collect(), screen: String::new() }
    }

    fn next_line(&mut self, question: &str) -> Result<String, ShepherdCliError> {
        self.screen.push_str(question);
        self.screen.push('\n');
        self.lines.pop_front().ok_or(ShepherdCliError::QuestionsNotAnswered)
    }
}

impl AnswerSource for ScriptedParent {
    fn say(&mut self, text: &str) {
        self.screen.push_str(&anstream::adapter::strip_str(text).to_string());
        self.screen.push('\n');
    }

    fn read_answer(&mut self, question: &str) -> Result<String, ShepherdCliError> {
        self.next_line(question)
    }

    fn read_hidden(&mut self, question: &str) -> Result<String, ShepherdCliError> {
        self.next_line(question)
    }
}

fn machine() -> MachineFacts {
    let accounts = SystemAccounts::parse(
        "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\nben:x:1001:1001::/home/ben:/bin/sh\n\
         mama:x:1002:1002::/home/mama:/bin/sh\npapa:x:1003:1003::/home/papa:/bin/sh\n",
        "",
    );
    let program = |label: &str, argv: &str, is_for_children| MenuProgram {
        label: label.to_owned(),
        launch: ProgramLaunch::Command(vec![argv.to_owned()]),
        is_for_children,
    };
    let mut programs = InstalledPrograms::in_folders([], "/usr/bin:/bin".into());
    programs.programs = vec![
        program("SuperTuxKart", "supertuxkart", true),
        program("Tux Math", "tuxmath", true),
        program("Calculator \"deluxe\"", "calculator", false),
        MenuProgram {
            label: "Minetest".to_owned(),
            launch: ProgramLaunch::Flatpak("net.minetest.Minetest".to_owned()),
            is_for_children: false,
        },
    ];
    MachineFacts { accounts, programs, own_login: Some("mama".to_owned()), width: 80 }
}

fn answer(lines: &[&str]) -> (Result<PolicyAnswers, ShepherdCliError>, ScriptedParent) {
    let mut parent = ScriptedParent::new(lines);
    let answers = ask_all(&mut parent, &machine(), true);
    (answers, parent)
}

/// Returns the policy of these answers. Its examples hold.
fn policy(lines: &[&str]) -> String {
    let (answers, parent) = answer(lines);
    let text = render::render_policy(&answers.unwrap_or_else(|error| panic!("{error}\n{}", parent.screen)));
    assert_eq!(parent.lines, VecDeque::<String>::new(), "lines left:\n{}", parent.screen);
    let loaded = load("policy.toml", &text).unwrap_or_else(|report| panic!("{report}\n{text}"));
    assert!(loaded.examples > 0, "{text}");
    assert_eq!(loaded.warnings, Vec::<String>::new());
    text
}

#[test]
fn the_answers_become_a_commented_policy_with_examples() {
    let text = policy(&[
        "Anna, Ben",
        "",
        "", // logins
        "",
        "",
        "19:00-07:00",
        "20:00-07:30", // bedtimes
        "",
        "", // minutes
        "1, 2",
        "2", // programs
        "mama, papa",
        "1234",
        "1234",
        "", // parents, PIN, warnings
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn any_valid_answers_make_a_valid_policy() {
    let rest = ["", "", "1", "none", "", "", "none"];
    let people = [
        (vec!["Anna"], vec!["none", "none"]),
        (vec!["Anna"], vec!["12:00-04:00", "00:30-09:00"]),
        (vec!["Anna"], vec!["05:59-21:59", "24:00-12:00"]),
        (vec!["Anna"], vec!["20:00-20:30", "20:00-20:30"]),
        (vec!["Anna"], vec!["15:00-07:00", "none"]),
    ];
    for (names, nights) in people {
        let lines: Vec<&str> = names.into_iter().chain([""]).chain(nights).chain(rest).collect();
        policy(&lines);
    }
    for minutes in [
        ["none", "none"],
        ["1", "1440"],
        ["1h30m", "none"],
        ["1 h", "24h"],
        ["600", "5"],
        ["45 min", "90min"],
    ] {
        let [weekdays, weekends] = minutes;
        let lines = ["Anna", "", "", "", weekdays, weekends, "1 and 2", "1 2", "", "", "120, 0h1m 5"];
        let text = policy(&lines);
        assert!(text.contains("warnings = [\"2h\", \"5m\", \"1m\"]"), "{text}");
    }
}

#[test]
fn names_in_any_script_and_programs_of_any_kind_are_kept() {
    let text = policy(&[
        "Jürgen K., Анна und None",
        "jk",
        "ja",
        "anna",
        "n3",
        "y",
        "none",
        "none",
        "",
        "",
        "",
        "",
        "",
        "",
        "more",
        "3; Minetest, sh -c true, no-such-game",
        "y",
        "none",
        "",
        "",
        "none",
    ]);
    for line in [
        "[profiles.juergen-k]",
        "label = \"Jürgen K.\"",
        "[profiles.child]",
        "label = \"Анна\"",
        "[profiles.child-2]",
        "accounts = [\"n3\"]",
        "label = \"Calculator \\\"deluxe\\\"\"",
        "id = \"calculator-deluxe\"",
        "payload = { app = \"net.minetest.Minetest\" }",
        "argv = [\"sh\", \"-c\", \"true\"]",
        "argv = [\"no-such-game\"]",
        "bedtime = { school_nights = \"20:00-07:00\"",
    ] {
        assert!(text.contains(line) || line.starts_with("bedtime"), "{line}\n{text}");
    }
    assert_eq!(text.matches("bedtime = ").count(), 0, "all have the first child's: none\n{text}");
}

/// Checks that an answer is refused with a plain sentence, and asked for again.
fn refused(lines: &[&str], complaint: &str) {
    let (answers, parent) = answer(lines);
    assert!(matches!(answers, Err(ShepherdCliError::QuestionsNotAnswered)), "{complaint}");
    assert!(parent.screen.contains(complaint), "{complaint}\n{}", parent.screen);
    assert_eq!(parent.lines.len(), 0, "{complaint}\n{}", parent.screen);
}

#[test]
fn every_answer_is_checked_on_the_spot() {
    let anna = |rest: &[&'static str]| -> Vec<&'static str> {
        ["Anna"].into_iter().chain(rest.iter().copied()).collect()
    };
    refused(&[""], "Please type an answer.");
    refused(&[" , "], "Please type a name.");
    refused(&["Anna, anna"], "the same name");
    refused(&["An\u{1b}[Dna"], "special keys");
    refused(&anna(&["root"]), "nobody's own login");
    refused(&anna(&["An na"]), "one word of small letters");
    refused(&anna(&["ana"]), "no login `ana` on this computer. Did you mean `anna`?");
    refused(&["Anna, Ben", "ben", "ben"], "That is Anna's login");
    refused(&anna(&["", "8pm-7am"]), "write \"20:00-07:00\"");
    refused(&anna(&["", "07:00-20:00"]), "it begins in the morning");
    refused(&anna(&["", "", "", "0"]), "Please type minutes");
    refused(&anna(&["", "", "", "25h"]), "at most a day");
    let to_programs = |rest: &[&'static str]| anna(&[&["", "", "", "", ""], rest].concat());
    refused(&to_programs(&["9"]), "There is no program 9 in the list.");
    refused(&to_programs(&["no-such-game", "n"]), "no program `no-such-game` on this computer");
    refused(&to_programs(&["1", "2"]), "numbers from 1 to 1");
    refused(&to_programs(&["1", "", "anna"]), "`anna` is a child's login.");
    refused(&to_programs(&["1", "", "", "12"]), "That can't be a PIN");
    refused(&to_programs(&["1", "", "", "1234", "1235"]), "The two PINs differ.");
    refused(&to_programs(&["1", "", "", "", "3h"]), "minutes from 1 to 120");
    refused(&to_programs(&["1", "", "", "", "often"]), "minutes from 1 to 120");
}

#[test]
fn no_line_of_the_questions_is_wider_than_the_terminal() {
    let (_, parent) = answer(&["Anna", "", "", "", "", "", "more", "1", "", "", "", ""]);
    for line in parent.screen.lines() {
        assert!(ward_terminal::display_width(line) <= 80, "{line}");
    }
}

#[test]
fn the_file_is_replaced_as_a_whole_and_every_old_one_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    assert_eq!(write_file::replace_file(&file, "one").unwrap(), None);
    let old = |name: &str| Some(folder.path().join(name));
    assert_eq!(write_file::replace_file(&file, "two").unwrap(), old("policy.toml.old"));
    assert_eq!(write_file::replace_file(&file, "three").unwrap(), old("policy.toml.old2"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(
        [read("policy.toml"), read("policy.toml.old"), read("policy.toml.old2")],
        ["three", "one", "two"]
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o644);
    assert!(write_file::check_folder(&PathBuf::from("/proc/no/policy.toml")).is_err());
}
