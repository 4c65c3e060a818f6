//! Compares plans with real shells: dash and bash must pass on the same words, and run commands in the same
//! folders, as the plan says.
//!
//! The lines are random combinations of pieces that make shell syntax hard. If the gate plans a line, both
//! shells must agree with the plan word by word. Lines without a plan are not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collieclaw_gate::plan::{ListOperator, PlannedAction, PlannedCommand, ShellPlan};
use collieclaw_gate::{AutonomyLevel, GatePolicy, MachineFacts, PathBounds, PathStatus, judge_shell};

use crate::test_random::TestRandom;

/// A workspace that contains only folders, on a machine where every program is installed.
struct EmptyFolders;

const FOLDERS: [&str; 4] = ["/w", "/w/a", "/w/sub", "/w/sub/deep"];

impl MachineFacts for EmptyFolders {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let leads_to = collieclaw_gate::normalize_path(path);
        if FOLDERS.iter().any(|folder| leads_to == Path::new(folder)) {
            PathStatus::Folder { leads_to }
        } else {
            PathStatus::Missing { leads_to }
        }
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        let folder = collieclaw_gate::normalize_path(folder);
        let inside = FOLDERS.iter().filter_map(|path| path.strip_prefix(folder.to_str()?)?.strip_prefix('/'));
        Some(inside.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }
}

fn policy() -> GatePolicy {
    GatePolicy {
        autonomy: AutonomyLevel::Full,
        workspace: "/w".into(),
        bounds: PathBounds::Anywhere,
        user_home: "/home/kid".into(),
        own_home: "/home/kid/.collieclaw".into(),
        own_files: Vec::new(),
        forbidden_paths: Vec::new(),
        forbidden_commands: BTreeSet::new(),
        allowed_commands: ["args".to_owned()].into(),
        allowed_domains: Vec::new(),
        command_network: Default::default(),
        pinned_programs: BTreeMap::new(),
        allowed_scripts: BTreeMap::new(),
        project_programs: Default::default(),
        command_cache: None,
    }
}

/// Returns the arguments of each call of `args` in a plan; `None` if the plan runs any other command, because
/// the shells of this test don't have it.
fn planned_calls(plan: &ShellPlan) -> Option<Vec<Vec<String>>> {
    let mut calls = Vec::new();
    simulate_plan(plan, &mut |command| match &command.action {
        PlannedAction::Run { words, .. } if words.first()? == "args" => {
            calls.push(words.iter().skip(1).cloned().collect());
            Some(true)
        }
        _ => None,
    })?;
    Some(calls)
}

/// Walks through a plan as the executor does. `run` returns if a command succeeds, or `None` if it can't
/// tell.
fn simulate_plan(plan: &ShellPlan, run: &mut dyn FnMut(&PlannedCommand) -> Option<bool>) -> Option<()> {
    for list in plan.lists() {
        let mut succeeded = true;
        let rest = list.rest.iter().map(|(join, pipeline)| (Some(*join), pipeline));
        for (join, pipeline) in std::iter::once((None, &list.first)).chain(rest) {
            let runs = match join {
                None => true,
                Some(ListOperator::IfSucceeded) => succeeded,
                Some(ListOperator::IfFailed) => !succeeded,
            };
            if !runs {
                continue;
            }
            let ended: Vec<bool> = pipeline.commands.iter().map(&mut *run).collect::<Option<_>>()?;
            succeeded = ended.last()? != &pipeline.negated;
        }
    }
    Some(())
}

const PIECES: [&str; 54] = [
    "a", "bc", "é", "-x", "--y=z", "1", "''", "'a b'", "'$x'", "'\\'", "\"\"", "\"a b\"", "\"\\$x\"",
    "\"\\\\\"", "\"\\a\"", "\"'\"", "'\"'", "\\ ", "\\'", "\\\"", "\\\\", "\\a", "\\\n", "\"\\\n\"", "'\n'",
    "\"a\nb\"", "$", "\"$\"", "\\$x", "#", "a#b", "=", "a=b", "~", "/", "~/x", "{", "}", "{}", "{a}", ",",
    "..", ":", "!", "*", "?", "[", "]", "%", "@", "[a", "{[", "+=", ".",
];

const SEPARATORS: [&str; 12] = [
    " ",
    " ",
    " ",
    "  ",
    "\t",
    " \\\n ",
    "; args ",
    " && args ",
    " || args ",
    "\nargs ",
    " # x\nargs ",
    ";args ",
];

fn random_line(random: &mut TestRandom) -> String {
    let mut line = String::from("args");
    for _ in 0..=random.below(6) {
        line.push_str(SEPARATORS[random.below(SEPARATORS.len())]);
        for _ in 0..=random.below(4) {
            line.push_str(PIECES[random.below(PIECES.len())]);
        }
    }
    line
}

/// Runs lines in a shell, and returns the arguments of each call of `args` per line. A call of `here` returns
/// its folder in the same way.
fn run_in_shell(shell: &str, lines: &[String]) -> Vec<Vec<Vec<String>>> {
    const SCRIPT: &str = r#"
args() { if [ $# -gt 0 ]; then printf '\001%s' "$@"; fi; printf '\002'; }
here() { printf '\001%s\002' "/w${PWD#"$TOP"}" >&3; }
HOME=/home/kid
TOP=$PWD
mkdir -p sub/deep a
for line; do (eval "$line") 3>&1 < /dev/null 2> /dev/null; printf '\003'; done"#;
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(shell)
        .args(["-c", SCRIPT, shell])
        .args(lines)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("could not run {shell} ({error}): run `cargo xtask setup`"));
    let text = String::from_utf8(output.stdout).expect("the words are UTF-8");
    let calls = |line: &str| {
        line.split_terminator('\u{2}')
            .map(|call| call.split('\u{1}').skip(1).map(str::to_owned).collect())
            .collect()
    };
    text.split_terminator('\u{3}').map(calls).collect()
}

/// The first lines are fixed: the gate once planned them wrongly (C7.3b).
#[test]
fn dash_and_bash_pass_on_the_words_of_the_plan() {
    const KEPT: [&str; 7] = [
        "args a=~",
        "args \\\n\\\na",
        "args '' \"\" ''a",
        "args *//",
        "args [a\\ b]",
        "args {[a,b]}",
        "args x=\\\n~ a+=~ a[1]=~",
    ];
    let mut random = TestRandom::new(0x5eed_0fc0_111e_c1a3);
    let lines =
        KEPT.map(str::to_owned).into_iter().chain(std::iter::repeat_with(|| random_line(&mut random)));
    compare(lines.take(6_000), planned_calls, 2_000);
}

/// Returns the folder of each call of `here` in a plan. Commands with redirections fail, because the files
/// don't exist.
fn planned_folders(plan: &ShellPlan) -> Option<Vec<Vec<String>>> {
    let mut places = Vec::new();
    simulate_plan(plan, &mut |command| match &command.action {
        _ if !command.redirections.is_empty() => Some(false),
        PlannedAction::Run { words, .. } => match words.first()?.as_str() {
            "here" => {
                places.push(vec![command.folder.display().to_string()]);
                Some(true)
            }
            name => Some(name == "true"),
        },
        PlannedAction::ChangeFolder(_) | PlannedAction::Nothing => Some(true),
    })?;
    Some(places)
}

#[test]
fn dash_and_bash_are_in_the_folders_of_the_plan() {
    const COMMANDS: [&str; 15] = [
        "here",
        "here",
        "here",
        "cd sub",
        "cd sub",
        "cd ..",
        "cd deep",
        "true",
        "false",
        "! cd sub",
        "! true",
        "cd sub | true",
        "true | cd sub",
        "cd sub < none",
        "true | here",
    ];
    const KEPT: [&str; 8] = [
        "false && cd sub; here",
        "true || cd sub; here",
        "true || cd sub && here",
        "cd sub && false && cd .. || here",
        "cd sub || true; here",
        "! cd sub; here",
        "cd sub | true; here",
        "cd sub < none; here",
    ];
    let mut random = TestRandom::new(0x0f01_de25_5eed_0001);
    let line = move || -> String {
        let mut line = COMMANDS[random.below(COMMANDS.len())].to_owned();
        for _ in 0..random.below(6) {
            line.push_str([" && ", " && ", " || ", "; ", "\n"][random.below(5)]);
            line.push_str(COMMANDS[random.below(COMMANDS.len())]);
        }
        line
    };
    let lines = KEPT.map(str::to_owned).into_iter().chain(std::iter::repeat_with(line));
    compare(lines.take(3_000), planned_folders, 1_000);
}

/// Compares the plans of lines, as `simulate` runs them, with both shells.
fn compare(
    lines: impl Iterator<Item = String>,
    simulate: fn(&ShellPlan) -> Option<Vec<Vec<String>>>,
    at_least: usize,
) {
    let policy = policy();
    let (mut compared, mut plans) = (Vec::new(), Vec::new());
    for line in lines {
        let judged = judge_shell(&line, AutonomyLevel::Full, &policy, &EmptyFolders);
        if let Some(calls) = judged.plan.as_ref().and_then(simulate) {
            plans.push(calls);
            compared.push(line);
        }
    }
    assert!(compared.len() > at_least, "only {} lines were compared", compared.len());
    let mut wrong = Vec::new();
    for shell in ["dash", "bash"] {
        for (chunk, planned) in compared.chunks(500).zip(plans.chunks(500)) {
            let run = run_in_shell(shell, chunk);
            assert_eq!(run.len(), chunk.len(), "{shell}");
            for ((line, planned), run) in chunk.iter().zip(planned).zip(&run) {
                if planned != run {
                    wrong.push(format!("{shell}: {line:?}\n  planned {planned:?}\n  runs    {run:?}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}
