//! Judges what `find` and `fd` do with the files that they find.

use super::command::JudgingPhase;
use super::{BracesMeaning, CommandFolder, ShellEvaluation};
use crate::path::STEERING_FOLDERS;
use crate::programs::{CommandArgument, ForEachCommand, ParsedArgument, ProgramKind, ProgramSpec};

/// The number of file names that stand for "any number" when `find -exec … {} +` is judged. No flag of the
/// table takes more values, and no inner command starts after more words.
const EXTRA_NAMES: usize = 4;

impl ShellEvaluation<'_> {
    /// Adds a reason if `find` runs several commands per file and a command changes files: the next command
    /// may meet the changed file, and nothing judges it again in between.
    pub(super) fn judge_repeated_commands(
        &mut self,
        name: &str,
        found: &[ParsedArgument<'_>],
        phase: JudgingPhase,
    ) {
        let commands = || {
            found.iter().filter_map(|found| match found {
                ParsedArgument::CommandForEach(ForEachCommand { words, .. }) => Some(*words),
                _ => None,
            })
        };
        let changes = |words: &[CommandArgument]| {
            let program =
                words.first().and_then(|first| first.text.as_deref()).and_then(ProgramSpec::find_by_name);
            program.is_none_or(|program| program.kind != ProgramKind::ReadOnly)
        };
        if phase == JudgingPhase::Words && commands().count() > 1 && commands().any(changes) {
            self.add_file_name_reason(
                name,
                "-exec",
                "run several commands for each file, and not all of them only read",
            );
        }
    }

    /// Judges a command that `find` runs with the names of the files it finds.
    pub(super) fn judge_for_each(
        &mut self,
        name: &str,
        command: ForEachCommand<'_>,
        cwd: &CommandFolder,
        phase: JudgingPhase,
    ) {
        let ForEachCommand { words, takes_many_names, name_pattern } = command;
        let is_fd = matches!(name, "fd" | "fdfind");
        // `fd` adds the name of the file if the command doesn't say where.
        let added = words
            .last()
            .filter(|_| is_fd && !words.iter().any(names_found_file))
            .map(|last| [words, &[CommandArgument { text: Some("{}".to_owned()), at: last.at }]].concat());
        let words = added.as_deref().unwrap_or(words);
        let texts = words.iter().filter_map(|word| word.text.as_deref());
        // `fd` also knows `{.}`, `{/}`, `{//}` and `{/.}`.
        let is_built = |text: &&str| *text != "{}" && (text.contains("{}") || is_fd && text.contains('{'));
        for text in texts.filter(is_built) {
            // The name of a file could turn such a word into a flag, a variable or a path out of the folder.
            self.add_file_name_reason(name, text, "build a word from the name of a file; write `{}` alone");
        }
        let outer_braces = std::mem::replace(&mut self.braces, BracesMeaning::FileNames);
        let outer_pattern = std::mem::replace(&mut self.name_pattern, name_pattern.map(str::to_owned));
        self.judge_inner_command(words, cwd, phase);
        if let Some(last) = words.last().filter(|_| takes_many_names) {
            // If the first name becomes the value of a flag, a later name becomes a script, a target or a
            // command.
            let all = [words, &vec![last.clone(); EXTRA_NAMES]].concat();
            self.judge_inner_command(&all, cwd, phase);
        }
        self.braces = outer_braces;
        self.name_pattern = outer_pattern;
    }

    /// Returns true if a program may change the files that `find` finds: it replaces the files instead of writing
    /// into them, so that other names of a file keep the old contents, and the names rule out a repository's
    /// settings.
    pub(super) fn replaces_found_files(&self, name: &str) -> bool {
        let narrow = |pattern: &str| pattern.rsplit_once("*.").is_some_and(|(_, end)| is_plain_ending(end));
        matches!(name, "sed" | "perl" | "chmod" | "touch") && self.name_pattern.as_deref().is_some_and(narrow)
    }
}

/// Returns true for a word with a placeholder for the name of a found file.
fn names_found_file(word: &CommandArgument) -> bool {
    word.text.as_deref().is_some_and(|text| text.contains('{'))
}

/// Returns true for the end of a pattern such as `*.py`, but not of `*.git`.
fn is_plain_ending(end: &str) -> bool {
    !end.is_empty()
        && end.chars().all(|letter| letter.is_ascii_alphanumeric())
        && !STEERING_FOLDERS.iter().any(|folder| folder.trim_start_matches('.').eq_ignore_ascii_case(end))
}

/// Returns true if the arguments of `find` delete files without a condition on their names, age or size.
pub(super) fn deletes_everything(arguments: &[CommandArgument]) -> bool {
    const CONDITIONS: [&str; 14] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-empty",
        "-newer",
        "-mtime",
        "-mmin",
        "-size",
        "-newermt",
        "-atime",
    ];
    let texts = || arguments.iter().map(|argument| argument.text.as_deref().unwrap_or("!"));
    let Some(end) = texts().position(|text| text == "-delete") else { return false };
    let mut open = 0_usize;
    let mut limited = false;
    for text in texts().take(end) {
        match text {
            "(" => open += 1,
            ")" => open = open.saturating_sub(1),
            // The files outside of these conditions are deleted, too.
            "!" | "-not" => return true,
            "-o" | "-or" | "," if open == 0 => return true,
            text => limited |= CONDITIONS.contains(&text),
        }
    }
    !limited || open > 0
}
