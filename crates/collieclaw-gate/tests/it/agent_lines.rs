//! Lines that coding agents type inside a project, and hostile lines with the same programs, judged at
//! `supervised` with the developer preset (C7.3c, C7.3d).

mod build;
mod files;
mod git;
mod hostile_git;
mod hostile_tools;
mod node;
mod python;
mod rust;
mod whole_language;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collieclaw_gate::{
    AutonomyLevel, DEFAULT_FORBIDDEN_PATHS, GateDecision, GatePolicy, GateReason, GateVerdict, MachineFacts,
    PathStatus, WorkspacePreset, judge_shell, normalize_path,
};

use crate::test_machine::{heaviest_reasons, policy};
use hostile_git::HOSTILE_GIT_LINES;
use hostile_tools::{HOSTILE_TOOL_LINES, SANDBOXED_LINES};
use whole_language::{REFUSED_LINES, SCRIPT_LINES, WHOLE_LANGUAGE_LINES};

const LITERAL_LINES: [&[&str]; 6] = [
    python::PYTHON_LINES,
    node::NODE_LINES,
    rust::RUST_LINES,
    git::GIT_LINES,
    files::FILE_LINES,
    build::BUILD_LINES,
];

/// The share of real lines that may be refused, in percent.
const MAX_REFUSED_PERCENT: usize = 2;

/// A project with the folders that the lines name. Names with a dot are files, other names don't exist.
struct ProjectMachine;

const PROJECT_FOLDERS: [&str; 24] = [
    "",
    "/src",
    "/tests",
    "/test",
    "/docs",
    "/frontend",
    "/backend",
    "/packages",
    "/packages/core",
    "/crates",
    "/crates/core",
    "/cmd",
    "/scripts",
    "/logs",
    "/dist",
    "/build",
    "/public",
    "/.git",
    "/.git/hooks",
    "/shared",
    "/assets",
    "/vendor",
    "/lib",
    "/patches",
];

const SYSTEM_FOLDERS: [&str; 12] =
    ["/", "/bin", "/dev", "/etc", "/home", "/home/kid", "/lib", "/proc", "/root", "/tmp", "/usr", "/var"];

impl MachineFacts for ProjectMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let leads_to = normalize_path(path);
        let text = leads_to.to_str().unwrap_or_default();
        let is_folder = text.strip_prefix("/w").is_some_and(|inside| PROJECT_FOLDERS.contains(&inside));
        let is_file = leads_to.extension().is_some() && text.starts_with("/w/src");
        if is_folder || SYSTEM_FOLDERS.contains(&text) {
            PathStatus::Folder { leads_to }
        } else if is_file {
            PathStatus::File { leads_to, link_count: 1 }
        } else {
            PathStatus::Missing { leads_to }
        }
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        let names: &[&str] = match folder.to_str()? {
            "/w" => &["README.md", "docs", "package.json", "server.log", "setup.py", "src", "tests"],
            _ => &["app.py", "index.js", "lib.rs", "logo.png", "main.rs", "run.sh", "util.py"],
        };
        Some(names.iter().map(|&name| name.to_owned()).collect())
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        (!name.contains('/') && !name.is_empty()).then(|| Path::new("/usr/bin").join(name))
    }
}

/// The same project on a machine that judges every program when it is executed.
struct JudgingProjectMachine;

impl MachineFacts for JudgingProjectMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        ProjectMachine.inspect_path(path)
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        ProjectMachine.names_in(folder)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        ProjectMachine.find_program(name)
    }

    fn judges_executions(&self) -> bool {
        true
    }
}

/// Returns the policy of a new installation with the developer preset.
fn developer_policy() -> GatePolicy {
    let preset = WorkspacePreset::find("developer").expect("a preset");
    let mut policy = policy(&preset.programs.join(" "));
    policy.allowed_domains = preset.domains.iter().map(|&domain| domain.to_owned()).collect();
    policy.project_programs = preset.project_programs;
    policy.forbidden_paths =
        DEFAULT_FORBIDDEN_PATHS.iter().map(|path| PathBuf::from(path.replace('~', "/home/kid"))).collect();
    policy
}

fn judge_line(line: &str, autonomy: AutonomyLevel) -> GateVerdict {
    judge_shell(line, autonomy, &developer_policy(), &ProjectMachine).verdict
}

fn describe(line: &str, verdict: &GateVerdict) -> String {
    format!("{line:?}: {}: {:?}", verdict.decision, verdict.reasons.first())
}

#[test]
fn lines_of_agents_are_asked_about() {
    let lines = || LITERAL_LINES.into_iter().flatten();
    let mut wrong = Vec::new();
    for line in lines() {
        let verdict = judge_line(line, AutonomyLevel::Supervised);
        if verdict.decision != GateDecision::Ask {
            wrong.push(describe(line, &verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines().count(), wrong.join("\n"));
}

#[test]
fn few_lines_of_agents_are_refused() {
    let asked: usize = LITERAL_LINES.iter().map(|lines| lines.len()).sum();
    let all = asked + REFUSED_LINES.len();
    assert!(asked >= 600, "only {asked} lines");
    println!("{} of {all} literal lines of agents are refused", REFUSED_LINES.len());
    assert!(REFUSED_LINES.len() * 100 <= all * MAX_REFUSED_PERCENT, "{} of {all}", REFUSED_LINES.len());
}

#[test]
fn some_lines_of_agents_are_refused_with_a_reason() {
    assert_refused(REFUSED_LINES);
}

/// Where programs are judged when they are executed, the operator is asked about such lines, and no more than the bar
/// of all lines are refused.
#[test]
fn lines_for_a_whole_shell_are_asked_about_where_programs_are_judged() {
    let lines = || LITERAL_LINES.into_iter().flatten().chain(WHOLE_LANGUAGE_LINES).chain(SCRIPT_LINES);
    let mut refused = Vec::new();
    for line in lines().chain(REFUSED_LINES.iter().map(|(line, _)| line)) {
        let policy = developer_policy();
        let verdict = judge_shell(line, AutonomyLevel::Supervised, &policy, &JudgingProjectMachine).verdict;
        assert_ne!(verdict.decision, GateDecision::Allow, "{}", describe(line, &verdict));
        if verdict.decision == GateDecision::Deny {
            refused.push(describe(line, &verdict));
        }
    }
    let all = lines().count() + REFUSED_LINES.len();
    println!("{} of {all} lines of agents are refused:\n{}", refused.len(), refused.join("\n"));
    assert!(refused.len() * 100 <= all * MAX_REFUSED_PERCENT, "{} of {all}", refused.len());
}

/// Hostile lines stay refused there, too.
#[test]
fn hostile_lines_are_refused_where_programs_are_judged() {
    for (line, _) in HOSTILE_GIT_LINES.iter().chain(HOSTILE_TOOL_LINES) {
        let policy = developer_policy();
        let verdict = judge_shell(line, AutonomyLevel::Supervised, &policy, &JudgingProjectMachine).verdict;
        // The rest is judged where it is executed.
        let is_judged = |reason: &GateReason| ["judged-when-run", "project-program"].contains(&reason.code());
        let is_judged = verdict.reasons.iter().any(is_judged);
        assert!(verdict.decision == GateDecision::Deny || is_judged, "{}", describe(line, &verdict));
    }
}

/// Such a line is refused, or asked about if it runs in a real shell whose commands are judged when they start.
#[test]
fn lines_for_a_whole_shell_are_never_just_allowed() {
    for line in WHOLE_LANGUAGE_LINES.iter().chain(SCRIPT_LINES) {
        let verdict = judge_line(line, AutonomyLevel::Supervised);
        assert_ne!(verdict.decision, GateDecision::Allow, "{}", describe(line, &verdict));
    }
}

#[test]
fn hostile_lines_with_the_programs_of_a_developer_are_refused() {
    assert!(HOSTILE_GIT_LINES.len() + HOSTILE_TOOL_LINES.len() >= 200);
    assert_refused(HOSTILE_GIT_LINES);
    assert_refused(HOSTILE_TOOL_LINES);
}

/// Files that make `git` run commands are written at no level.
#[test]
fn no_level_lets_a_line_steer_git() {
    let steering = HOSTILE_GIT_LINES.iter().filter(|(_, code)| *code == "executable-config");
    assert!(steering.clone().count() > 50);
    for (line, _) in steering {
        let verdict = judge_line(line, AutonomyLevel::Full);
        assert_eq!(verdict.decision, GateDecision::Deny, "{}", describe(line, &verdict));
    }
}

/// A line that the gate refuses belongs in another table.
#[test]
fn lines_that_only_the_sandbox_holds_need_an_approval() {
    for (line, held_by) in SANDBOXED_LINES {
        let verdict = judge_line(line, AutonomyLevel::Supervised);
        assert_eq!(verdict.decision, GateDecision::Ask, "{}", describe(line, &verdict));
        assert!(!held_by.is_empty());
    }
}

#[test]
fn no_line_is_in_the_tables_twice() {
    let lines = LITERAL_LINES.into_iter().flatten().chain(WHOLE_LANGUAGE_LINES).chain(SCRIPT_LINES);
    let pairs = [REFUSED_LINES, HOSTILE_GIT_LINES, HOSTILE_TOOL_LINES, SANDBOXED_LINES];
    let mut seen = BTreeSet::new();
    for line in lines.chain(pairs.into_iter().flatten().map(|(line, _)| line)) {
        assert!(seen.insert(line), "{line:?}");
    }
}

/// Asserts that lines are refused at `supervised` with these codes among their heaviest reasons.
fn assert_refused(lines: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (line, code) in lines {
        let verdict = judge_line(line, AutonomyLevel::Supervised);
        if verdict.decision != GateDecision::Deny || !heaviest_reasons(&verdict).1.contains(code) {
            wrong.push(format!("{}, not {code}", describe(line, &verdict)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}
