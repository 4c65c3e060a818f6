//! The limits of the gate: input of the largest size is judged, and one more makes the difference.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use collieclaw_gate::shell::{self, LONGEST_LINE};
use collieclaw_gate::{
    AutonomyLevel, GateReason, GateRequest, HttpMethod, MachineFacts, PathStatus, ReasonWeight, judge,
    judge_shell,
};

use crate::test_machine::{GateTestMachine, heaviest_reasons, judge_line, policy};

/// Asserts that a line of the largest size is parsed, and that a larger one is refused with this sentence.
fn check_parsed(largest: &str, larger: &str, sentence: &str) {
    assert_eq!(shell::parse(largest).err(), None, "{sentence}");
    assert_eq!(shell::parse(larger).expect_err(sentence).what, sentence);
}

#[test]
fn the_size_of_a_line_is_limited() {
    let of_length = |length: usize| format!("echo '{}'", "a".repeat(length - "echo ''".len()));
    check_parsed(&of_length(LONGEST_LINE), &of_length(LONGEST_LINE + 1), "the line is too long");
    let commands = |count: usize| vec!["true"; count].join(";");
    check_parsed(&commands(1000), &commands(1001), "the line has too many commands");
    let words = |count: usize| vec!["a"; count].join(" ");
    check_parsed(&words(4096), &words(4097), "the line has too many words");
    let documents = |count: usize| format!("cat{}{}", " <<E".repeat(count), "\nE".repeat(count));
    check_parsed(&documents(100), &documents(101), "the line has too many here-documents");
}

#[test]
fn the_depth_of_a_line_is_limited() {
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}ls{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in [("( ", " )"), ("echo $(", ")"), ("{ ", "; }"), ("echo ${x:-", "}")] {
        let largest = nested(open, close, 40);
        check_parsed(&largest, &nested(open, close, 41), "the line is nested too deeply");
    }
    // Constructs beside each other aren't nested.
    assert_eq!(shell::parse(&"(ls);".repeat(41)).err(), None);
}

#[test]
fn the_number_of_expansions_is_limited() {
    let word = |parts: usize| format!("ls {} x", "$a".repeat(parts));
    check_parsed(&word(4096), &word(4097), "this word has too many expansions and patterns");
    // `ls` is a part, too.
    let line =
        |last: usize| format!("ls {}{}", format!("{} ", "$a".repeat(4000)).repeat(4), "$a".repeat(last));
    check_parsed(&line(3999), &line(4000), "the line has too many expansions and patterns");
}

#[test]
fn the_distance_of_closing_brackets_is_limited() {
    let index = |length: usize| format!("a[{}]=b", "1".repeat(length - "[]".len()));
    check_parsed(
        &index(1000),
        &index(1001),
        "shells read this index of an array differently; calculate it in a variable first",
    );
    // The rest of a long pattern isn't searched, so nobody knows if a bracket closes it.
    let is_literal = |length: usize| {
        let parsed = shell::parse(&format!("ls [{}", "a".repeat(length))).expect("a line");
        format!("{parsed:?}").contains("Literal(\"[a")
    };
    assert!(is_literal(199));
    assert!(!is_literal(200));
}

/// Returns the weight and the codes of the heaviest reasons at `full`.
fn judged(line: &str, allowed: &str) -> (ReasonWeight, Vec<&'static str>) {
    heaviest_reasons(&judge_line(line, AutonomyLevel::Full, allowed))
}

#[test]
fn the_depth_of_commands_inside_commands_is_limited() {
    let wrapped = |count: usize| format!("{}ls", "env ".repeat(count));
    assert_eq!(judged(&wrapped(16), ""), (ReasonWeight::Medium, vec!["listed-program"]));
    assert_eq!(judged(&wrapped(17), ""), (ReasonWeight::Blocked, vec!["unreadable"]));
    // The wrappers of one command don't count for the next one.
    let twice = format!("{}; {}", wrapped(16), wrapped(16));
    assert_eq!(judged(&twice, ""), (ReasonWeight::Medium, vec!["listed-program"]));

    let evaluated = |count: usize| format!("{}ls", "eval ".repeat(count));
    assert_eq!(judged(&evaluated(8), "").0, ReasonWeight::High);
    assert_eq!(judged(&evaluated(9), ""), (ReasonWeight::Blocked, vec!["unreadable"]));
    assert_eq!(judged(&format!("{0}; {0}", evaluated(8)), "").0, ReasonWeight::High);
}

#[test]
fn the_number_and_size_of_lines_inside_lines_are_limited() {
    let lines = |count: usize| vec!["sh -c ls"; count].join(";");
    assert_eq!(judged(&lines(100), "sh").0, ReasonWeight::High);
    assert_eq!(judged(&lines(101), "sh"), (ReasonWeight::Blocked, vec!["unreadable"]));
    let inner = |length: usize| format!("sh -c \"echo {}\"", "a".repeat(length - "echo ".len()));
    assert_eq!(judged(&inner(1 << 15), "sh").0, ReasonWeight::High);
    assert_eq!(judged(&inner((1 << 15) + 1), "sh"), (ReasonWeight::Blocked, vec!["unreadable"]));
    // All lines inside of a line count together.
    let half = (1 << 14) + 1;
    assert_eq!(judged(&format!("{0}; {0}", inner(half)), "sh"), (ReasonWeight::Blocked, vec!["unreadable"]));
}

#[test]
fn the_number_of_words_inside_commands_is_limited() {
    // The words of a command are judged as written and as expanded, and again for each `env` before them.
    let line = |words: usize| format!("env env env {}", vec!["ls"; words].join(" "));
    assert_eq!(judged(&line(1665), "").0, ReasonWeight::Medium);
    assert_eq!(judged(&line(1666), ""), (ReasonWeight::Blocked, vec!["unreadable"]));
}

#[test]
fn the_length_of_names_and_bundled_flags_is_limited() {
    let named = |length: usize| format!("{} x", "a".repeat(length));
    assert_eq!(judged(&named(4096), ""), (ReasonWeight::High, vec!["unlisted-program"]));
    assert_eq!(judged(&named(4097), ""), (ReasonWeight::Blocked, vec!["unreadable"]));
    let flags = |count: usize| format!("ls -{}", "a".repeat(count));
    assert_eq!(judged(&flags(32), "").0, ReasonWeight::Medium);
    assert_eq!(judged(&flags(33), ""), (ReasonWeight::High, vec!["argument"]));
}

#[test]
fn the_number_of_folders_and_sent_files_of_a_command_is_limited() {
    let folders = |count: usize| format!("git {}status", "-C . ".repeat(count));
    assert_eq!(judged(&folders(8), "git").0, ReasonWeight::Medium);
    assert_eq!(judged(&folders(9), "git"), (ReasonWeight::Blocked, vec!["unreadable"]));
    let sent = |count: usize| format!("curl -d '{}' https://example.org/", "@a.txt;".repeat(count));
    assert_eq!(judged(&sent(32), "curl").0, ReasonWeight::Medium);
    assert_eq!(judged(&sent(33), "curl"), (ReasonWeight::Blocked, vec!["unreadable"]));
    // A longer text is no path that `curl` could open.
    let file =
        |length: usize| format!("curl -d @/etc/{} https://example.org/", "a".repeat(length - "/etc/".len()));
    assert_eq!(judged(&file(4096), "curl"), (ReasonWeight::Blocked, vec!["forbidden-path"]));
    assert_eq!(judged(&file(4097), "curl").0, ReasonWeight::Medium);
}

#[test]
fn the_length_of_scripts_is_limited() {
    for (before, after, longest) in
        [("sed '#", "' a.txt", 4096), ("awk '#", "' a.txt", 4096), ("sqlite3 a.db '#", "'", 1 << 16)]
    {
        let line = |length: usize| format!("{before}{}{after}", "x".repeat(length - 1));
        assert_eq!(judged(&line(longest), "sqlite3").0, ReasonWeight::Medium, "{before}");
        assert_eq!(judged(&line(longest + 1), "sqlite3"), (ReasonWeight::High, vec!["argument"]), "{before}");
    }
}

#[test]
fn the_length_of_paths_and_addresses_is_limited() {
    let code = |call: GateRequest<'_>| {
        heaviest_reasons(judge(call, &policy(""), &GateTestMachine::new()).verdict()).1.join("+")
    };
    let path = |length: usize| "a".repeat(length);
    assert_eq!(code(GateRequest::FileRead(&path(4096))), "reads-inside");
    assert_eq!(code(GateRequest::FileRead(&path(4097))), "not-a-path");
    assert_eq!(code(GateRequest::FileDelete(&path(4096))), "writes-inside");
    assert_eq!(code(GateRequest::FileDelete(&path(4097))), "not-a-path");
    let temporary = |length: usize| format!("touch /tmp/{}", "a".repeat(length - "/tmp/".len()));
    assert_eq!(judged(&temporary(4096), ""), (ReasonWeight::High, vec!["unknowable"]));
    assert_eq!(judged(&temporary(4097), ""), (ReasonWeight::Blocked, vec!["not-a-path"]));

    let get = |address: &str| code(GateRequest::Http(HttpMethod::Get, address));
    let address = |length: usize| format!("https://example.org/{}", "a".repeat(length - 20));
    assert_eq!(get(&address(8192)), "allowed-domain");
    assert_eq!(get(&address(8193)), "not-an-address");
    let label = |length: usize| format!("https://{}.org/", "a".repeat(length));
    assert_eq!(get(&label(63)), "unlisted-domain");
    assert_eq!(get(&label(64)), "not-an-address");
    let name = |length: usize| format!("https://{}{}.org/", "a.".repeat(100), "a".repeat(length - 204));
    assert_eq!(get(&name(253)), "unlisted-domain");
    assert_eq!(get(&name(254)), "not-an-address");
}

#[test]
fn a_verdict_keeps_32_reasons_of_each_weight() {
    let programs = |count: usize| {
        let line: String = (0..count).fold(String::new(), |mut line, number| {
            let _ = write!(line, "p{number};");
            line
        });
        judge_line(&line, AutonomyLevel::Supervised, "")
    };
    assert_eq!(programs(31).reasons.len(), 31);
    assert_eq!(programs(32).reasons.len(), 32);
    assert_eq!(programs(40).reasons.len(), 32);
    // A full list may have dropped another reason, so nobody can tell which programs are missing.
    assert_eq!(programs(31).missing_programs().map(|names| names.len()), Some(31));
    assert_eq!(programs(32).missing_programs(), None);
}

/// A workspace with a folder of many files, and two folders that contain each other's names to this depth.
struct LargeMachine {
    files: usize,
    depth: usize,
}

impl LargeMachine {
    /// Returns true for `/w/a`, `/w/a/d`, `/w/a/d/d` …, and the same below `/w/b/a`.
    fn is_nested_folder(&self, path: &Path) -> bool {
        let below = path.strip_prefix("/w/b/a").or_else(|_| path.strip_prefix("/w/a"));
        below.is_ok_and(|below| below.iter().all(|name| name == "d") && below.iter().count() < self.depth)
    }
}

impl MachineFacts for LargeMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let leads_to = collieclaw_gate::normalize_path(path);
        let is_folder = matches!(leads_to.to_str(), Some("/w" | "/w/many" | "/w/b"));
        if is_folder || self.is_nested_folder(&leads_to) {
            PathStatus::Folder { leads_to }
        } else if leads_to.starts_with("/w/many") {
            PathStatus::File { leads_to, link_count: 1 }
        } else {
            PathStatus::Missing { leads_to }
        }
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        let folder = collieclaw_gate::normalize_path(folder);
        if folder == Path::new("/w/many") {
            return Some((0..self.files).map(|number| format!("f{number}")).collect());
        }
        let inner = self.is_nested_folder(&folder.join("d")).then(|| "d".to_owned());
        self.is_nested_folder(&folder).then(|| inner.into_iter().collect())
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }
}

fn judged_on(machine: &LargeMachine, line: &str) -> Vec<String> {
    let mut policy = policy("");
    policy.forbidden_paths.clear();
    let verdict = judge_shell(line, AutonomyLevel::Full, &policy, machine).verdict;
    let heavy = verdict.reasons.iter().filter(|reason| reason.weight() >= ReasonWeight::High);
    heavy.map(GateReason::detail).collect()
}

#[test]
fn the_number_of_matched_files_is_limited() {
    let machine = |files| LargeMachine { files, depth: 0 };
    // The name of the program is a word, too.
    assert_eq!(judged_on(&machine(4095), "wc many/*"), Vec::<String>::new());
    let many = "column 4: this pattern matches too many files";
    assert_eq!(judged_on(&machine(4096), "wc many/*"), [many]);
    let unlisted = "column 4: this pattern can't be expanded inside the workspace; write the names out";
    assert_eq!(judged_on(&machine(4097), "wc many/*"), [unlisted]);
}

#[test]
fn the_number_of_checked_paths_is_limited() {
    let machine = |files| LargeMachine { files, depth: 0 };
    // Each path is judged, and the literal part of each pattern is looked up.
    assert_eq!(judged_on(&machine(2498), "wc many/*; wc many/*"), Vec::<String>::new());
    let sentence = "column 1: the line names more paths than the gate can check";
    assert_eq!(judged_on(&machine(2600), "wc many/*; wc many/*"), [sentence]);
}

#[test]
fn the_number_of_listed_folders_is_limited() {
    let line = |count: usize| vec!["ls *.txt"; count].join(";");
    assert_eq!(judged(&line(200), "").0, ReasonWeight::Medium);
    assert_eq!(judged(&line(201), ""), (ReasonWeight::High, vec!["unknowable"]));
}

#[test]
fn the_depth_of_merged_folders_is_limited() {
    let copy = |depth| judged_on(&LargeMachine { files: 0, depth }, "cp -r a b");
    assert_eq!(copy(15), Vec::<String>::new());
    assert_eq!(copy(16), Vec::<String>::new());
    let refused = copy(17);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].ends_with("makes `cp` replace more files than the gate can check"), "{refused:?}");
}

#[test]
fn the_number_of_copied_files_is_limited() {
    let copy = |files| judged_on(&LargeMachine { files, depth: 0 }, "cp many/* b");
    // The file itself and its place in the folder are judged.
    assert_eq!(copy(1999), Vec::<String>::new());
    let refused = copy(2000);
    assert!(refused[0].ends_with("makes `cp` replace more files than the gate can check"), "{refused:?}");
}
