//! Judges a program that a process of a line has executed, before its first instruction runs (C17).
//!
//! The kernel says what runs: the real file, the arguments and the environment. Commands of the line itself are judged by
//! the same table as the text of a line. Programs that a listed program starts by itself are judged by what no program
//! may do: forbidden commands, destructive ones, and files of CollieClaw or under forbidden paths.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::command::JudgingPhase;
use super::line_wrapper::{passes_line_on, runs_script_file};
use super::program_identity::{
    LOADERS, LoaderAction, MULTI_CALL_PROGRAMS, ProgramContent, ProgramIdentity, base_name, file_name,
    identities, is_loader, is_system_path, read_loader_arguments,
};
use super::project_program::{RUNS_DOWNLOAD, downloads};
use super::walk::DEV_NULL;
use super::{CommandFolder, EvaluationSubject, ShellEvaluation, TildeExpansion, destructive, variable};
use crate::facts::{MachineFacts, PathStatus};
use crate::path::{find_objection, is_command_folder};
use crate::plan::PlannedAction;
use crate::policy::{DEFAULT_ALLOWED_COMMANDS, GatePolicy, ProjectPrograms};
use crate::programs::CommandArgument;
use crate::reason::GateReason;
use crate::shell::BytePosition;
use crate::verdict::{AutonomyLevel, GateDecision, ReasonWeight, RiskLevel};

/// A program that a process has executed, as the kernel reports it.
#[derive(Debug, Clone, Copy)]
pub struct ExecutedProgram<'a> {
    /// The real path of the executed file.
    pub program: &'a Path,
    /// A path under which the executed file can be read.
    pub file: &'a Path,
    /// The arguments, starting with `argv[0]`.
    pub arguments: &'a [String],
    /// The variables that differ from those of the line.
    pub environment: &'a [(String, String)],
    /// The names of the line's variables that the program doesn't get.
    pub removed_variables: &'a [String],
    /// The working folder.
    pub folder: &'a Path,
    pub started_by: ProgramOrigin,
    /// The other processes of the line. Only with [`OtherProcesses::Waiting`] can a script not be swapped after it was
    /// read.
    pub others: OtherProcesses,
    /// Folders to which processes of the line can write, in addition to those for temporary files.
    pub writable: &'a [PathBuf],
    /// The files that commands of the line have downloaded so far.
    pub downloads: &'a BTreeSet<PathBuf>,
    /// The file that the standard output goes to, if it is one.
    pub output: Option<&'a Path>,
}

impl ExecutedProgram<'_> {
    /// Returns true for a path that may lead elsewhere a moment later, because processes of the line can write to a folder
    /// on the way.
    pub(super) fn can_replace(&self, path: &Path) -> bool {
        /// Folders with temporary files, and links to other places.
        const CHANGING_FOLDERS: [&str; 3] = ["/dev", "/proc", "/tmp"];
        let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
        let changing =
            CHANGING_FOLDERS.iter().map(Path::new).chain(self.writable.iter().map(PathBuf::as_path));
        !is_plain || changing.into_iter().any(|folder| path.starts_with(folder))
    }
}

/// The processes of a line beside the one that has executed a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherProcesses {
    /// All other processes wait for this process.
    Waiting,
    /// Another process may be changing files.
    MayRun,
}

/// The origin of an executed program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramOrigin {
    /// The line runs the program: its shell, a shell below that, or a command that only runs commands of the line.
    Line,
    /// A program of the line has started the program by itself, such as `make` or `npm`.
    Program,
}

/// The verdict on an executed program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a verdict has no effect until the caller obeys it"]
pub enum ExecVerdict {
    Run {
        /// The origin of the programs that it starts.
        children: ProgramOrigin,
        /// The files that commands of the line have downloaded, with those that this program will download.
        downloads: BTreeSet<PathBuf>,
    },
    Refused(GateReason),
}

/// Judges an executed program under the approved risk of its line.
pub fn judge_executed_program(
    executed: &ExecutedProgram<'_>,
    line_risk: RiskLevel,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> ExecVerdict {
    let mut evaluation = ShellEvaluation::new("", policy, facts);
    evaluation.judges_executions = Some(true);
    evaluation.subject = EvaluationSubject::ExecutedProgram;
    evaluation.tilde = TildeExpansion::ShellHome;
    if let Some(reason) = evaluation.find_ban(executed) {
        return ExecVerdict::Refused(reason);
    }
    evaluation.downloaded_files.clone_from(executed.downloads);
    if executed.started_by == ProgramOrigin::Program {
        if evaluation.runs_downloaded_file(executed) {
            return ExecVerdict::Refused(RUNS_DOWNLOAD);
        }
        let downloads = evaluation.downloaded_files;
        return ExecVerdict::Run { children: ProgramOrigin::Program, downloads };
    }
    let children = evaluation.judge_command_of_line(executed);
    let approved = match policy.autonomy {
        AutonomyLevel::Full => ReasonWeight::High,
        AutonomyLevel::ReadOnly | AutonomyLevel::Supervised => line_risk.into(),
    };
    if evaluation.findings.heaviest() <= approved {
        return ExecVerdict::Run { children, downloads: evaluation.downloaded_files };
    }
    let verdict = evaluation.findings.decide(AutonomyLevel::Supervised);
    debug_assert_ne!(verdict.decision, GateDecision::Allow);
    ExecVerdict::Refused(verdict.reasons.into_iter().next().unwrap_or(GateReason::NotJudged))
}

/// Returns true if a planned command of a line with this risk may start programs by itself, so that these have to be
/// judged.
#[must_use]
pub fn can_start_programs(action: &PlannedAction, line_risk: RiskLevel) -> bool {
    let PlannedAction::Run { words, .. } = action else { return false };
    if line_risk == RiskLevel::High {
        return true;
    }
    let name = words.first().map(|name| base_name(name)).unwrap_or_default();
    // The programs of a new installation start nothing by themselves; the gate knows the arguments that make them. A
    // toolchain, an interpreter or `git` can start anything that a file of the workspace names.
    name == "find" || !DEFAULT_ALLOWED_COMMANDS.contains(&name)
}

impl ShellEvaluation<'_> {
    /// Returns the reason why nobody may run the program, whoever starts it.
    fn find_ban(&self, executed: &ExecutedProgram<'_>) -> Option<GateReason> {
        let ExecutedProgram { program, file, arguments, .. } = *executed;
        if let Some(reason) = self.find_identity_ban(program, file, arguments) {
            return Some(reason);
        }
        let path = program.display().to_string();
        let objection = find_objection(&path, program, self.policy);
        if let Some(reason @ (GateReason::ForbiddenPath { .. } | GateReason::OwnHome { .. })) = objection {
            return Some(reason);
        }
        let is_installed = self.facts.find_program(file_name(program)).is_some_and(|known| known == program);
        if !is_installed && let Some(reason) = self.find_copied_ban(file) {
            return Some(reason);
        }
        // Where commands can write, any program can have such a name.
        if is_loader(base_name(&path)) && !executed.can_replace(program) {
            return self.find_loader_ban(executed);
        }
        // A copy of the dynamic loader could run any program unseen.
        let is_copy = |loader: &&str| self.facts.is_same_program(file, Path::new(loader));
        (!is_installed && LOADERS.iter().any(is_copy)).then_some(GateReason::ProgramByPath { path })
    }

    /// Returns the reason if a file with these arguments, starting with `argv[0]`, acts as a forbidden or destructive
    /// command.
    fn find_identity_ban(&self, program: &Path, file: &Path, arguments: &[String]) -> Option<GateReason> {
        let content = self.program_content(program, file);
        for ProgramIdentity { name, arguments } in identities(program, arguments, content) {
            if let Some(name) = self.find_forbidden(name) {
                return Some(GateReason::ForbiddenCommand { name });
            }
            let arguments: Vec<_> = arguments.iter().map(|text| known_argument(text)).collect();
            if let Some(what) = destructive::destructive_effect(name, &arguments) {
                return Some(GateReason::Destructive { what });
            }
        }
        None
    }

    /// Tells whether a file contains many programs, also if it is a copy under another name.
    fn program_content(&self, program: &Path, file: &Path) -> ProgramContent {
        let is_copy = |name: &&str| {
            let original = self.facts.find_program(name);
            original.is_some_and(|original| self.facts.is_same_program(file, &original))
        };
        let has_name = MULTI_CALL_PROGRAMS.iter().any(|name| file_name(program).starts_with(name));
        if has_name || !is_system_path(program) && MULTI_CALL_PROGRAMS.iter().any(is_copy) {
            ProgramContent::ManyPrograms
        } else {
            ProgramContent::OneProgram
        }
    }

    /// Returns the reason if a file is a forbidden program under another name.
    fn find_copied_ban(&self, file: &Path) -> Option<GateReason> {
        let is_copy = |rule: &&String| {
            let original = self.facts.find_program(rule);
            // A file that has many names, such as `busybox`, is more than the forbidden program.
            let original = original.filter(|file| file.file_name().is_some_and(|name| name == rule.as_str()));
            original.is_some_and(|original| self.facts.is_same_program(file, &original))
        };
        let rule = self.policy.forbidden_commands.iter().find(is_copy)?;
        Some(GateReason::ForbiddenCommand { name: rule.clone() })
    }

    /// Returns the reason against the dynamic loader as a command. The loader opens its program only after this check, so
    /// the program must be one that no process of the line can replace.
    fn find_loader_ban(&self, executed: &ExecutedProgram<'_>) -> Option<GateReason> {
        // `ldd` sets this, and the loader of glibc then only lists the libraries of a program.
        let lists = executed.environment.iter().any(|(name, _)| name == "LD_TRACE_LOADED_OBJECTS");
        if lists && file_name(executed.program).starts_with("ld-linux") {
            return None;
        }
        let arguments = executed.arguments.get(1..).unwrap_or_default();
        let refused = || Some(GateReason::ProgramByPath { path: executed.program.display().to_string() });
        let started = match read_loader_arguments(arguments) {
            LoaderAction::Print => return None,
            LoaderAction::Run(started) => started,
        };
        let path = started.path.map(|path| executed.folder.join(path));
        // A symlink outside of the system's folders could lead elsewhere when the loader opens it.
        let path = path.filter(|path| is_system_path(path));
        let Some(PathStatus::File { leads_to, .. }) = path.map(|path| self.facts.inspect_path(&path)) else {
            return refused();
        };
        if let Some(reason) = self.find_identity_ban(&leads_to, &leads_to, &started.arguments()) {
            return Some(reason);
        }
        let known = self.facts.find_program(file_name(&leads_to));
        if known.is_some_and(|known| known == leads_to) { None } else { refused() }
    }

    /// Judges a command of the line with its real arguments, and returns the origin of the programs that it starts.
    fn judge_command_of_line(&mut self, executed: &ExecutedProgram<'_>) -> ProgramOrigin {
        let file_name = file_name(executed.program);
        let is_own = self.judge_executed_project_program(executed);
        let gets_libraries = is_own || self.runs_project_script(executed);
        for (name, value) in executed.environment {
            if !(gets_libraries && variable::names_own_libraries(name, Some(value), self.policy)) {
                variable::judge_executed(name, value, self.policy, &mut self.findings);
            }
        }
        if is_own {
            return ProgramOrigin::Program;
        }
        if let Some((name, arguments)) = self.find_listed_script(executed) {
            self.judge_as(&name, arguments, executed.folder);
            return if file_name == "env" { ProgramOrigin::Line } else { ProgramOrigin::Program };
        }
        if self.runs_allowed_script(executed) {
            self.findings.add(GateReason::ListedProgram { name: file_name.to_owned(), read_only: false });
            return if file_name == "env" { ProgramOrigin::Line } else { ProgramOrigin::Program };
        }
        if let Some(path) = self.find_false_command(executed) {
            self.findings.add(GateReason::ProgramByPath { path });
            return ProgramOrigin::Program;
        }
        let Some(name) = self.find_known_name(executed) else {
            self.findings.add(GateReason::ProgramByPath { path: executed.program.display().to_string() });
            return ProgramOrigin::Program;
        };
        let is_removed = |name: &str| executed.removed_variables.iter().any(|removed| removed == name);
        // Without `HOME`, there are no settings to find.
        if name == "git" && is_removed(variable::GIT_SETTINGS) && !is_removed("HOME") {
            self.findings.add(GateReason::Variable { name: variable::GIT_SETTINGS.to_owned() });
        }
        if downloads(&name) {
            let output = executed.output.filter(|file| *file != Path::new(DEV_NULL));
            self.downloaded_files.extend(output.map(Path::to_owned));
        }
        let arguments = executed.arguments.get(1..).unwrap_or_default();
        self.writable_search_folders = self.find_writable_search_folders(executed);
        self.judge_as(&name, arguments, executed.folder);
        // A script that a shell reads is a program of the project, too.
        let is_trusted = self.policy.autonomy == AutonomyLevel::Full
            || self.policy.allowed_commands.contains(&name)
            || self.policy.project_programs == ProjectPrograms::Allowed;
        if passes_line_on(&name) && !(is_trusted && runs_script_file(&name, arguments)) {
            ProgramOrigin::Line
        } else {
            ProgramOrigin::Program
        }
    }

    fn judge_as(&mut self, name: &str, arguments: &[String], folder: &Path) {
        let words: Vec<_> =
            std::iter::once(name).chain(arguments.iter().map(String::as_str)).map(known_argument).collect();
        let cwd = CommandFolder { folder: Some(folder.to_owned()) };
        self.judge_program(&words, &cwd, JudgingPhase::Name);
        self.judge_program(&words, &cwd, JudgingPhase::Words);
    }

    /// Returns the name by which the table and the lists know an executed file. `argv[0]` counts only if it names this
    /// very file, because a caller can choose it.
    fn find_known_name(&self, executed: &ExecutedProgram<'_>) -> Option<String> {
        let names_file =
            |name: &&str| self.resolve_program(name).is_some_and(|file| file == executed.program);
        let argv0 = executed.arguments.first().map(|name| base_name(name.trim_start_matches('-')));
        let file_name = executed.program.file_name().and_then(|name| name.to_str());
        argv0
            .filter(names_file)
            .map(str::to_owned)
            .or_else(|| {
                self.find_listed_name(executed.program).filter(|_| !executed.can_replace(executed.program))
            })
            .or_else(|| file_name.filter(names_file).map(str::to_owned))
    }

    /// Returns the name of an allowed command whose file this is.
    pub(super) fn find_listed_name(&self, file: &Path) -> Option<String> {
        let mut names = self.policy.allowed_commands.iter();
        let name = names.find(|name| self.resolve_program(name).is_some_and(|known| known == file));
        name.cloned().or_else(|| self.find_listed_python(file))
    }

    /// Returns the listed name of Python if the file is another version of it. The Python of a virtual environment leads
    /// to the version that has created the environment: of the system, of `pyenv` or of `uv`.
    fn find_listed_python(&self, file: &Path) -> Option<String> {
        let name = file_name(file);
        let version = name.strip_prefix("python")?;
        let is_version = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        // No process of a line can write to such a file or put it there.
        let is_fixed = !file.starts_with(&self.policy.workspace)
            && !is_command_folder(file, self.policy)
            && (self.facts.find_program(name).is_some_and(|known| known == file)
                || self.facts.is_trusted_program(file));
        let mut listed = ["python3", "python"].into_iter();
        let listed = listed.find(|name| self.policy.allowed_commands.contains(*name))?;
        (is_version && is_fixed).then(|| listed.to_owned())
    }
}

fn known_argument(text: &str) -> CommandArgument {
    CommandArgument { text: Some(text.to_owned()), at: BytePosition(0) }
}
