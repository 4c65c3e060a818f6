//! Commands that only run other commands of the line. Each of those is judged when it is executed, so these commands
//! don't have to be listed (C17).

use super::command::JudgingPhase;
use super::walk::is_own_stream;
use super::{CommandFolder, ShellEvaluation};
use crate::programs::{CommandArgument, ParsedArgument, ProgramKind, ProgramSpec, parse_arguments};
use crate::shell::BytePosition;

/// Shells that have each of their commands judged.
const JUDGED_SHELLS: [&str; 3] = ["bash", "dash", "sh"];

/// Flags of bash that have no value, and that it knows with one dash, too (`-login`).
const LONG_SHELL_FLAGS: [&str; 16] = [
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "help",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "protected",
    "restricted",
    "verbose",
    "version",
    "wordexp",
];

/// Builtins that run a command.
const RUNNING_BUILTINS: [&str; 3] = ["builtin", "command", "exec"];

/// Returns true if the commands that a program starts belong to the line, as if the line named them.
pub(super) fn passes_line_on(name: &str) -> bool {
    let kind = ProgramSpec::find_described(name).map(|program| program.kind);
    JUDGED_SHELLS.contains(&name)
        || name == "find"
        || matches!(kind, Some(ProgramKind::Wrapper | ProgramKind::AppendsArguments | ProgramKind::Elevates))
}

/// Returns true if a shell reads its commands from a file. A shell that the operator lists, or any shell at the level
/// `full`, runs such a file as an interpreter does; otherwise the commands of the file count as commands of the line.
pub(super) fn runs_script_file(name: &str, arguments: &[String]) -> bool {
    find_script_file(name, arguments.iter().map(String::as_str)).is_some()
}

/// Returns the file from which a shell with these arguments reads its commands.
fn find_script_file<'w>(name: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let mut words = words.filter(|_| JUDGED_SHELLS.contains(&name));
    let mut only_long_flags = true;
    while let Some(word) = words.next() {
        // `dash` takes such a word for letters: `-posix` has an `s`.
        let is_long =
            name == "bash" && word.strip_prefix('-').is_some_and(|name| LONG_SHELL_FLAGS.contains(&name));
        let values = match word {
            "-" | "--" => return words.next().filter(|script| !is_own_stream(script)),
            // With one dash, too: bash tries its long flags first.
            "--rcfile" | "--init-file" | "-init-file" => 1,
            flag if flag.starts_with("--") => 0,
            // After the first bundle of letters, bash takes such a word for letters, too.
            _ if is_long && only_long_flags => 0,
            // The value of `-o` is the next word, also in `-oe pipefail`.
            flags if flags.starts_with(['-', '+']) => {
                if flags.contains(['c', 's']) {
                    return None;
                }
                only_long_flags = false;
                flags.matches(['o', 'O']).count()
            }
            script => return Some(script).filter(|script| !is_own_stream(script)),
        };
        words.by_ref().take(values).for_each(drop);
    }
    None
}

impl ShellEvaluation<'_> {
    /// Judges a command that only runs other commands, and returns true if the command was such a command.
    pub(super) fn judge_line_wrapper(
        &mut self,
        name: &str,
        program: &'static ProgramSpec,
        arguments: &[CommandArgument],
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) -> bool {
        let is_shell = JUDGED_SHELLS.contains(&name);
        let runs_commands =
            is_shell || RUNNING_BUILTINS.contains(&name) || program.kind == ProgramKind::AppendsArguments;
        if !runs_commands || !self.judges_executions() {
            return false;
        }
        let at = arguments.first().map_or(BytePosition(0), |first| first.at);
        if phase == JudgingPhase::Words {
            let what =
                if is_shell { "a second shell reads commands" } else { "this command runs another one" };
            self.add_unknowable(what, at);
            let words = arguments.iter().map_while(|word| word.text.as_deref());
            if let Some(script) = find_script_file(name, words) {
                self.check_downloaded(script, cwd);
            }
        }
        for found in parse_arguments(program, arguments) {
            match found {
                // Flags of a shell change how it runs commands, and each command is judged.
                ParsedArgument::UnknownFlag(_) | ParsedArgument::SideEffect(..) if is_shell => {}
                found => _ = self.judge_argument(name, &found, cwd, phase),
            }
        }
        true
    }

    /// Adds a reason about a word that `find` builds from the names of files. The command is judged with these names
    /// when it runs.
    pub(super) fn add_file_name_reason(&mut self, program: &str, argument: &str, effect: &'static str) {
        if self.judges_executions() {
            self.add_unknowable("the names of these files are known only when it runs", BytePosition(0));
        } else {
            self.add_argument_reason(program, argument, effect);
        }
    }
}
