//! Scripts that an executed interpreter runs (C16, C17).

use std::path::{Path, PathBuf};

use super::program_identity::{base_name, file_name};
use super::project_program::{is_project_place, runs_files};
use super::{ExecutedProgram, OtherProcesses, ShellEvaluation};
use crate::facts::PathStatus;
use crate::path::{is_command_folder, normalize_path};
use crate::policy::{DEFAULT_ALLOWED_COMMANDS, ProjectPrograms};
use crate::programs::{ProgramKind, ProgramSpec};

/// The last place in the arguments at which the kernel passes on a script. An interpreter can be a script, too, up to five
/// times, and each `#!` line can have an argument.
const MAX_SCRIPT_PLACE: usize = 10;

/// A script that an interpreter runs.
struct ScriptOperand<'a> {
    /// The path in the arguments of the interpreter.
    written: &'a str,
    /// The real path.
    script: PathBuf,
    /// The arguments of the script.
    arguments: &'a [String],
}

impl ShellEvaluation<'_> {
    /// Returns the name and the arguments of a command that is a script with `#!`, such as `npm`: the kernel has executed
    /// its interpreter.
    pub(super) fn find_listed_script<'e>(
        &self,
        executed: &'e ExecutedProgram<'_>,
    ) -> Option<(String, &'e [String])> {
        let ScriptOperand { written, script, arguments } = self.script_operand(executed)?;
        // A process of the line could put another symlink there before the interpreter opens the script.
        if executed.can_replace(&executed.folder.join(written)) {
            return None;
        }
        let names_script = |name: &&str| self.resolve_program(name).is_some_and(|known| known == script);
        // A command such as `which` can be a symlink to a script with another name.
        let name = Some(base_name(written))
            .filter(names_script)
            .map(str::to_owned)
            .or_else(|| self.find_listed_name(&script))
            .or_else(|| script.file_name()?.to_str().filter(names_script).map(str::to_owned))?;
        self.may_interpret(executed.program, &script).then_some((name, arguments))
    }

    /// Returns true if the program is, or interprets, a file that the line has downloaded. Other programs that get such a
    /// file may only read it.
    pub(super) fn runs_downloaded_file(&self, executed: &ExecutedProgram<'_>) -> bool {
        let interprets = |script: &Path| {
            let name = file_name(executed.program);
            // `python3.11` is a `python`.
            let unversioned = name.trim_end_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
            runs_files(unversioned) || self.is_named_by_script(executed, script)
        };
        !executed.downloads.is_empty()
            && (self.is_downloaded(executed.program)
                || self.script_operand(executed).is_some_and(|ScriptOperand { script, .. }| {
                    self.is_downloaded(&script) && interprets(&script)
                }))
    }

    /// Returns true if the program is, or interprets, a file of the workspace that the operator has allowed.
    pub(super) fn runs_allowed_script(&self, executed: &ExecutedProgram<'_>) -> bool {
        if self.policy.allowed_scripts.is_empty() {
            return false;
        }
        let has_content = |path: &Path, accepted: &String| {
            self.facts.read_script(path).is_some_and(|script| script.sha256 == *accepted)
        };
        // The executed file itself can't be swapped: it is read through the process.
        if self
            .policy
            .allowed_scripts
            .get(executed.program)
            .is_some_and(|hash| has_content(executed.file, hash))
        {
            return true;
        }
        executed.others == OtherProcesses::Waiting
            && self.script_operand(executed).is_some_and(|ScriptOperand { script, .. }| {
                self.policy.allowed_scripts.get(&script).is_some_and(|hash| has_content(&script, hash))
                    && self.may_interpret(executed.program, &script)
            })
    }

    /// Returns the script that an interpreter runs. The kernel passes the script as the first argument, or as the second
    /// one after the argument of its `#!` line.
    fn script_operand<'e>(&self, executed: &'e ExecutedProgram<'_>) -> Option<ScriptOperand<'e>> {
        let kind = ProgramSpec::find_described(file_name(executed.program)).map(|program| program.kind);
        if matches!(kind, Some(ProgramKind::ReadOnly | ProgramKind::Modifies)) {
            return None;
        }
        let real_path = |text: &String| {
            let place = text.contains('/').then(|| executed.folder.join(text))?;
            // The facts describe the real temporary folder, and the program has another one.
            if is_command_folder(&normalize_path(&place), self.policy) {
                return None;
            }
            let seen = self.facts.inspect_path(&place);
            if let PathStatus::File { leads_to, .. } = seen { Some(leads_to) } else { None }
        };
        let [_, first, rest @ ..] = executed.arguments else { return None };
        if let Some(script) = real_path(first).filter(|_| !first.starts_with('-')) {
            return Some(ScriptOperand { written: first, script, arguments: rest });
        }
        let (second, arguments) = rest.split_first()?;
        let follows_first = |script: &PathBuf| {
            let line = self.facts.read_script(script).and_then(|script| script.interpreter_line);
            let argument = line.as_deref().and_then(|line| line.trim().split_once([' ', '\t']));
            argument.is_some_and(|(_, argument)| argument.trim() == first)
        };
        real_path(second).filter(follows_first).map(|script| ScriptOperand {
            written: second,
            script,
            arguments,
        })
    }

    /// Returns true if a program runs a script that it gets as an argument: the table describes it as an interpreter, or
    /// the `#!` line of the script names it, by its path or through `env`. Another program may do anything with the file.
    fn may_interpret(&self, interpreter: &Path, script: &Path) -> bool {
        if ProgramSpec::find_described(file_name(interpreter)).is_some() {
            return true;
        }
        let line =
            self.facts.read_script(script).and_then(|script| script.interpreter_line).unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(named) = words.next() else { return false };
        if base_name(named) == "env" {
            let name = words.find(|word| !word.starts_with('-'));
            return name
                .and_then(|name| self.resolve_program(name))
                .is_some_and(|known| known == interpreter);
        }
        let named = Path::new(named);
        named == interpreter
            || matches!(self.facts.inspect_path(named), PathStatus::File { leads_to, .. } if leads_to == interpreter)
    }

    /// Returns true if the first line of a script names the program, directly or through `env`.
    fn is_named_by_script(&self, executed: &ExecutedProgram<'_>, script: &Path) -> bool {
        let line = self.facts.read_script(script).and_then(|script| script.interpreter_line);
        let line = line.unwrap_or_default();
        let mut words = line.split_whitespace();
        let first = words.next();
        let through_env = first.is_some_and(|first| base_name(first) == "env");
        let second = words.find(|word| through_env && !word.starts_with('-'));
        executed.arguments.first().is_some_and(|name| [first, second].contains(&Some(name)))
    }

    /// Returns true if the program interprets a script of the project whose first line names it. The operator allows the
    /// script, so its interpreter gets the project's libraries.
    pub(super) fn runs_project_script(&self, executed: &ExecutedProgram<'_>) -> bool {
        self.policy.project_programs == ProjectPrograms::Allowed
            && self.script_operand(executed).is_some_and(|operand| {
                is_project_place(&operand.script, self.policy)
                    && self.is_named_by_script(executed, &operand.script)
            })
    }

    /// Returns the script of the project that a shell has found in the folders of `PATH` under a name that everybody
    /// knows. The kernel has executed its interpreter.
    pub(super) fn find_false_command(&self, executed: &ExecutedProgram<'_>) -> Option<String> {
        let (_, folders) = executed.environment.iter().find(|(name, _)| name == "PATH")?;
        if self.only_reads_files(executed.program) {
            return None;
        }
        let is_searched = |text: &str, place: &Path| {
            folders.split(':').any(|searched| {
                let folder = normalize_path(&executed.folder.join(searched));
                // The shell writes the folder before the name as `PATH` has it.
                text.starts_with('/') == searched.starts_with('/') && place.parent() == Some(&folder)
            })
        };
        let is_false = |place: usize| {
            let (interpreters, text) = (executed.arguments.get(..place)?, executed.arguments.get(place)?);
            let script = normalize_path(&executed.folder.join(text));
            let is_false = DEFAULT_ALLOWED_COMMANDS.contains(&base_name(text))
                && (is_project_place(&script, self.policy) || is_command_folder(&script, self.policy))
                && is_searched(text, &script)
                && self.may_be_interpreted(executed.others, interpreters, &script);
            is_false.then(|| text.clone())
        };
        (1..=MAX_SCRIPT_PLACE).find_map(is_false)
    }

    /// Returns true for a program of the system that shows a file and never runs it, also if a `#!` line names the program.
    fn only_reads_files(&self, program: &Path) -> bool {
        let name = file_name(program);
        ["cat", "head", "ls", "tail", "wc"].contains(&name)
            && self.facts.find_program(name).is_some_and(|known| known == program)
    }

    /// Returns true if the kernel or `execvp` may have executed the first of the arguments because it interprets a script
    /// that comes after them.
    fn may_be_interpreted(&self, others: OtherProcesses, interpreters: &[String], script: &Path) -> bool {
        let (is_file, leads_to) = match self.facts.inspect_path(script) {
            PathStatus::File { leads_to, .. } => (true, leads_to),
            PathStatus::Missing { leads_to } | PathStatus::Folder { leads_to } => (false, leads_to),
            _ => return true,
        };
        // Another process may have changed the text since, and the facts describe the real temporary folder.
        if others != OtherProcesses::Waiting
            || [script, &leads_to].iter().any(|place| is_command_folder(place, self.policy))
        {
            return true;
        }
        // `execvp` passes a script to this shell if the kernel can't execute it.
        let argv0 = interpreters.first().map_or("", String::as_str);
        if interpreters.len() == 1 && argv0 == "/bin/sh" {
            return true;
        }
        let Some(content) = self.facts.read_script(script) else {
            return is_file || argv0.contains('/');
        };
        match content.interpreter_line.as_deref().and_then(first_word) {
            Some(named) => interpreters.iter().any(|interpreter| first_word(interpreter) == Some(named)),
            // The line may not be UTF-8.
            None => {
                argv0.contains('/')
                    || interpreters.iter().any(|word| word.contains(char::REPLACEMENT_CHARACTER))
            }
        }
    }
}

/// Returns the first word of a `#!` line, which the kernel passes on as `argv[0]`.
fn first_word(text: &str) -> Option<&str> {
    text.split(|letter: char| letter.is_whitespace() || letter == '\0').find(|word| !word.is_empty())
}
