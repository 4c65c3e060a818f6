//! Walks the syntax tree of a shell line: judges lists, pipelines, redirections and words in order, and plans the commands
//! that can run without a shell.

use std::path::PathBuf;

use super::destructive;
use super::fetch_and_run::DownloadFlow;
use super::{CommandFolder, ShellEvaluation, TildeExpansion};
use crate::path::{self, PathAccess};
use crate::plan::{
    PlannedAction, PlannedCommand, PlannedList, PlannedPipeline, PlannedRedirection, PlannedTarget, ShellPlan,
};
use crate::reason::GateReason;
use crate::shell::{
    BytePosition, CommandList, CompoundCommand, CompoundKind, ListOperator, Pipeline, Redirection,
    RedirectionTarget, ShellCommand, ShellScript, ShellWord, UnknownPart, UnknownPartKind, WordPart,
};

impl ShellEvaluation<'_> {
    /// Judges a whole line, and returns its plan if the line can run without a shell.
    pub(super) fn judge_script(&mut self, script: &ShellScript) -> Option<ShellPlan> {
        let mut cwd = CommandFolder { folder: Some(self.policy.workspace.clone()) };
        if destructive::has_fork_bomb(script) {
            self.findings.add(GateReason::Destructive {
                what: "starts itself again and again until nothing else can run",
            });
        }
        self.collect_functions(script);
        let lists: Vec<_> = script.lists.iter().map(|list| self.judge_list(list, &mut cwd)).collect();
        if lists.is_empty() {
            self.findings.add(GateReason::LooksOnly);
        }
        Some(ShellPlan { lists: lists.into_iter().collect::<Option<_>>()? })
    }

    /// Judges a script that is never planned: the inside of a construct, of a substitution, or of a nested
    /// shell line.
    pub(super) fn judge_nested_script(&mut self, script: &ShellScript, cwd: &CommandFolder) {
        let mut cwd = cwd.clone();
        if destructive::has_fork_bomb(script) {
            self.findings.add(GateReason::Destructive {
                what: "starts itself again and again until nothing else can run",
            });
        }
        self.collect_functions(script);
        for list in &script.lists {
            self.judge_list(list, &mut cwd);
        }
    }

    /// Remembers the functions that a script defines, because their names are no programs.
    fn collect_functions(&mut self, script: &ShellScript) {
        for command in destructive::script_commands(script) {
            if let ShellCommand::Compound(CompoundCommand { kind: CompoundKind::Function(name), .. }) =
                command
            {
                self.functions.insert(name.clone());
            }
        }
    }

    fn judge_list(&mut self, list: &CommandList, cwd: &mut CommandFolder) -> Option<PlannedList> {
        let before = cwd.clone();
        let outer_alternative = self.has_alternative;
        self.has_alternative = has_alternative(&list.rest);
        let first = self.judge_pipeline(&list.first, cwd);
        let mut moved = cwd.folder != before.folder;
        let mut moved_perhaps = false;
        let mut rest = Vec::new();
        for (place, (join, pipeline)) in list.rest.iter().enumerate() {
            self.has_alternative = list.rest.get(place + 1..).is_some_and(has_alternative);
            if *join == ListOperator::IfFailed && moved {
                // The folder depends on which of the earlier commands failed.
                cwd.folder = None;
            }
            let from = cwd.folder.clone();
            rest.push(self.judge_pipeline(pipeline, cwd).map(|pipeline| (*join, pipeline)));
            if cwd.folder != from {
                (moved, moved_perhaps) = (true, true);
                if *join == ListOperator::IfFailed {
                    // The next command also runs when this `cd` was skipped.
                    cwd.folder = None;
                }
            }
        }
        self.has_alternative = outer_alternative;
        if moved_perhaps {
            // A `cd` after `&&` or `||` may not have run.
            cwd.folder = None;
        }
        if let Some(at) = list.background {
            self.add_unknowable("`&` leaves a command running in the background", at);
            *cwd = before;
            return None;
        }
        Some(PlannedList { first: first?, rest: rest.into_iter().collect::<Option<_>>()? })
    }

    fn judge_pipeline(&mut self, pipeline: &Pipeline, cwd: &mut CommandFolder) -> Option<PlannedPipeline> {
        let mut flow =
            DownloadFlow { here_documents: &self.here_documents, words_left: self.budget.flow_words };
        let runs_download = flow.runs_download(pipeline);
        self.files_may_have_changed |= self.findings.has_changes();
        self.budget.flow_words = flow.words_left;
        if runs_download {
            self.findings.add(GateReason::Destructive { what: "runs code that it downloads" });
        }
        let alone = pipeline.commands.len() == 1;
        let mut commands = Vec::new();
        for command in &pipeline.commands {
            // In a pipeline of several commands, `cd` changes the folder of its own process only.
            let mut own_cwd = cwd.clone();
            commands.push(self.judge_command(command, &mut own_cwd));
            if alone {
                *cwd = own_cwd;
            }
        }
        Some(PlannedPipeline {
            negated: pipeline.negated,
            commands: commands.into_iter().collect::<Option<_>>()?,
        })
    }

    fn judge_command(&mut self, command: &ShellCommand, cwd: &mut CommandFolder) -> Option<PlannedCommand> {
        match command {
            ShellCommand::Simple(simple) => {
                if cwd.folder.is_none() {
                    self.add_unknowable("the folder of this command is known only when it runs", simple.at);
                }
                let redirections = self.judge_redirections(&simple.redirections, cwd);
                self.add_redirected_downloads(command, redirections.as_deref(), cwd);
                let folder = cwd.folder.clone();
                let action = self.judge_simple_command(simple, cwd);
                if matches!(action, Some(PlannedAction::ChangeFolder(_)))
                    && redirections.iter().flatten().any(opens_file)
                {
                    // `cd` doesn't run if the file of a redirection can't be opened.
                    cwd.folder = None;
                }
                Some(PlannedCommand { action: action?, folder: folder?, redirections: redirections? })
            }
            ShellCommand::Compound(compound) => {
                let before = cwd.clone();
                let redirections = self.judge_compound(compound, cwd);
                self.add_redirected_downloads(command, redirections.as_deref(), &before);
                None
            }
        }
    }

    /// Remembers the files of redirections if the command downloads, also behind a wrapper or inside of a group.
    fn add_redirected_downloads(
        &mut self,
        command: &ShellCommand,
        redirections: Option<&[PlannedRedirection]>,
        cwd: &CommandFolder,
    ) {
        let files: Vec<&String> = redirections.into_iter().flatten().filter_map(written_file).collect();
        if files.is_empty() {
            return;
        }
        let mut flow =
            DownloadFlow { here_documents: &self.here_documents, words_left: self.budget.flow_words };
        let downloads = flow.downloads(command);
        self.budget.flow_words = flow.words_left;
        if downloads {
            files.into_iter().for_each(|file| self.add_downloaded_file(file, cwd));
        }
    }

    /// Judges a compound command, and returns its redirections if all are known.
    fn judge_compound(
        &mut self,
        compound: &CompoundCommand,
        cwd: &mut CommandFolder,
    ) -> Option<Vec<PlannedRedirection>> {
        let what = match &compound.kind {
            CompoundKind::Subshell => "`( … )` needs a real shell; write the commands without parentheses",
            CompoundKind::Group => "`{ … }` needs a real shell; write the commands without braces",
            CompoundKind::If | CompoundKind::Case => "the branch that is taken is known only when it runs",
            CompoundKind::Loop | CompoundKind::For => {
                "the rounds of a loop are known only when it runs; write the commands out"
            }
            CompoundKind::Test => "only some shells know `[[`; use `[`",
            CompoundKind::Arithmetic => "only some shells know `((`; use `$((` or `[`",
            CompoundKind::Coprocess => "only some shells know `coproc`; use a pipe",
            CompoundKind::Function(_) => "a function needs a real shell; write its commands out",
        };
        self.add_unknowable(what, compound.at);
        for word in &compound.words {
            self.judge_word_scripts(word, cwd);
        }
        let mut inside = cwd.clone();
        if matches!(compound.kind, CompoundKind::Loop | CompoundKind::For | CompoundKind::Function(_))
            && self.judges_executions()
        {
            // An earlier round, or the commands before a call, may have changed the folder.
            inside.folder = None;
        }
        for script in &compound.scripts {
            self.judge_nested_script(script, &inside);
        }
        let redirections = self.judge_redirections(&compound.redirections, cwd);
        if compound.kind != CompoundKind::Subshell {
            // A command inside may have changed the folder.
            cwd.folder = None;
        }
        redirections
    }

    /// Judges the commands inside a word's expansions. Returns true if the word has parts that are known only
    /// at run time.
    pub(super) fn judge_word_scripts(&mut self, word: &ShellWord, cwd: &CommandFolder) -> bool {
        let mut has_unknowns = false;
        for unknown in word.unknowns() {
            has_unknowns = true;
            self.judge_unknown_part(unknown, cwd);
        }
        if self.means_shell_home(word) {
            has_unknowns = true;
            self.add_unknowable("a shell reads `~` as the home of commands", word.at);
        }
        has_unknowns
    }

    /// Returns true if only the shell knows the folder that `~` means in a word.
    pub(super) fn means_shell_home(&self, word: &ShellWord) -> bool {
        self.tilde == TildeExpansion::ShellHome && word.parts.contains(&WordPart::Home)
    }

    fn judge_unknown_part(&mut self, unknown: &UnknownPart, cwd: &CommandFolder) {
        let what = match unknown.kind {
            UnknownPartKind::Variable => "the value of a variable is known only when it runs; write it out",
            UnknownPartKind::CommandSubstitution => {
                "the output of a command is known only when it runs; run that command first"
            }
            UnknownPartKind::ProcessSubstitution => "only some shells know `<(`; use a pipe or a file",
            UnknownPartKind::Arithmetic => {
                "the result of a calculation is known only when it runs; write it out"
            }
            UnknownPartKind::Braces => "only some shells expand braces; quote them or write the words out",
            UnknownPartKind::DollarQuote => "only some shells know `$'` and `$\"`; use ordinary quotes",
            UnknownPartKind::Tilde => "shells read this `~` differently; quote it or write the path out",
            UnknownPartKind::Pattern => "shells read this pattern differently; quote or simplify it",
        };
        self.add_unknowable(what, unknown.at);
        for script in &unknown.scripts {
            self.judge_nested_script(script, cwd);
        }
    }

    fn judge_redirections(
        &mut self,
        redirections: &[Redirection],
        cwd: &CommandFolder,
    ) -> Option<Vec<PlannedRedirection>> {
        let planned: Vec<_> =
            redirections.iter().map(|redirection| self.judge_redirection(redirection, cwd)).collect();
        planned.into_iter().collect()
    }

    fn judge_redirection(
        &mut self,
        redirection: &Redirection,
        cwd: &CommandFolder,
    ) -> Option<PlannedRedirection> {
        let target = match &redirection.target {
            RedirectionTarget::Read(word) => self
                .judge_redirection_file(word, PathAccess::Read, cwd)
                .map(|path| null_or_target(path, PlannedTarget::Read)),
            RedirectionTarget::Write(word) => self
                .judge_redirection_file(word, PathAccess::Write, cwd)
                .map(|path| null_or_target(path, PlannedTarget::Write)),
            RedirectionTarget::Append(word) => self
                .judge_redirection_file(word, PathAccess::Write, cwd)
                .map(|path| null_or_target(path, PlannedTarget::Append)),
            RedirectionTarget::ReadWrite(word) => {
                self.judge_redirection_file(word, PathAccess::Write, cwd);
                self.add_unknowable(
                    "`<>` opens a file for reading and writing; use `<` or `>`",
                    redirection.at,
                );
                return None;
            }
            RedirectionTarget::Descriptor(number) if *number <= 2 => Some(PlannedTarget::Duplicate(*number)),
            RedirectionTarget::Descriptor(_) | RedirectionTarget::Closed => {
                self.add_unknowable(
                    "only the descriptors 0, 1 and 2 can be redirected, and none can be closed",
                    redirection.at,
                );
                return None;
            }
            RedirectionTarget::HereDocument(id) => {
                let body = self.here_documents.get(id.0).cloned()?;
                let unknown = self.judge_word_scripts(&body, cwd);
                body.literal().filter(|_| !unknown).map(PlannedTarget::Text)
            }
            RedirectionTarget::HereString(word) => {
                self.judge_word_scripts(word, cwd);
                self.add_unknowable("only some shells know `<<<`; use a here-document", redirection.at);
                return None;
            }
            RedirectionTarget::NonPortable(word) => {
                if !word.parts.is_empty() {
                    self.judge_redirection_file(word, PathAccess::Write, cwd);
                }
                self.add_unknowable(
                    "only some shells know this redirection; use `> file 2>&1` or a here-document",
                    redirection.at,
                );
                return None;
            }
        };
        if redirection.descriptor > 2 {
            self.add_unknowable(
                "only the descriptors 0, 1 and 2 can be redirected, and none can be closed",
                redirection.at,
            );
            return None;
        }
        Some(PlannedRedirection { descriptor: redirection.descriptor, target: target? })
    }

    /// Judges the file of a redirection, and returns its path if the path is known.
    fn judge_redirection_file(
        &mut self,
        word: &ShellWord,
        access: PathAccess,
        cwd: &CommandFolder,
    ) -> Option<String> {
        if self.judge_word_scripts(word, cwd) {
            return None;
        }
        let Some(path) = self.known_text(word) else {
            self.add_unknowable("the file of a redirection can't be a pattern; write its name out", word.at);
            return None;
        };
        if path != DEV_NULL {
            self.judge_path(&path, access, cwd);
        }
        let place = self.base_folder(cwd).join(&path);
        if access == PathAccess::Read && path::reads_system_file(&place, (self.policy, self.facts)) {
            // A plan opens only files of the workspace.
            self.add_unknowable("a file of the system is opened by a shell; name it as an argument", word.at);
            return None;
        }
        Some(path)
    }

    /// Judges a path that a command names, within the budget for paths.
    pub(super) fn judge_path(&mut self, path: &str, access: PathAccess, cwd: &CommandFolder) {
        let Some(left) = self.budget.paths.checked_sub(1) else {
            return self.add_limit_exceeded("the line names more paths than the gate can check");
        };
        self.budget.paths = left;
        if cwd.folder.is_none() && !path.starts_with('/') && self.judges_executions() {
            return self.add_unknowable("the folder of a path is known only when it runs", BytePosition(0));
        }
        if is_own_stream(path) {
            return self.findings.add(GateReason::LooksOnly);
        }
        let from = self.base_folder(cwd);
        path::judge_in_command(path, &from, access, (self.policy, self.facts), &mut self.findings);
    }

    /// Returns the folder in which relative paths start. An unknown folder is replaced by the workspace, because the line
    /// is judged as high risk in this case anyway.
    pub(super) fn base_folder(&self, cwd: &CommandFolder) -> PathBuf {
        cwd.folder.clone().unwrap_or_else(|| self.policy.workspace.clone())
    }

    /// Returns the text of a word with `~` expanded; `None` if the word has patterns or unknown parts.
    pub(super) fn known_text(&self, word: &ShellWord) -> Option<String> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                WordPart::Literal(literal) => text.push_str(literal),
                WordPart::Home if self.tilde == TildeExpansion::ShellHome => return None,
                WordPart::Home => text.push_str(self.policy.user_home.to_str()?),
                WordPart::Glob(_) | WordPart::Unknown(_) => return None,
            }
        }
        Some(text)
    }

    pub(super) fn plan_change_folder(
        &mut self,
        path: &str,
        at: BytePosition,
        cwd: &mut CommandFolder,
    ) -> Option<PlannedAction> {
        use crate::facts::PathStatus;
        self.judge_path(path, PathAccess::Read, cwd);
        let from = cwd.folder.take()?;
        let place = path::normalize_path(&from.join(path));
        match self.facts.inspect_path(&from.join(path)) {
            PathStatus::Folder { leads_to } if leads_to != place => {
                self.add_unknowable(
                    "`cd` through a link is not supported; use the real path of the folder",
                    at,
                );
                None
            }
            PathStatus::Folder { leads_to }
                if path::reads_system_file(&leads_to, (self.policy, self.facts)) =>
            {
                cwd.folder = Some(leads_to);
                self.add_unknowable("`cd` to a folder of the system needs a real shell", at);
                None
            }
            PathStatus::Folder { leads_to } => {
                cwd.folder = Some(leads_to.clone());
                Some(PlannedAction::ChangeFolder(leads_to))
            }
            PathStatus::Missing { .. }
            | PathStatus::File { .. }
            | PathStatus::Special { .. }
            | PathStatus::Unreachable => {
                self.add_unknowable("`cd` needs an existing folder", at);
                None
            }
        }
    }
}

/// Returns true if one of these parts of a list runs when a command before it has failed.
fn has_alternative(rest: &[(ListOperator, Pipeline)]) -> bool {
    rest.iter().any(|(join, _)| *join == ListOperator::IfFailed)
}

/// The only device that tools may use.
pub(super) const DEV_NULL: &str = "/dev/null";

/// Returns true for the streams of the program itself, as devices: `/dev/stdin` and `/dev/fd/63`.
pub(super) fn is_own_stream(path: &str) -> bool {
    let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"));
    matches!(path, "/dev/stdin" | "/dev/stdout" | "/dev/stderr")
        || number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true if a redirection opens a file.
fn opens_file(redirection: &PlannedRedirection) -> bool {
    match redirection.target {
        PlannedTarget::Read(_) | PlannedTarget::Write(_) | PlannedTarget::Append(_) => true,
        PlannedTarget::Duplicate(_) | PlannedTarget::Text(_) | PlannedTarget::Null => false,
    }
}

/// Returns the file that a redirection writes.
fn written_file(redirection: &PlannedRedirection) -> Option<&String> {
    match &redirection.target {
        PlannedTarget::Write(file) | PlannedTarget::Append(file) => Some(file),
        _ => None,
    }
}

fn null_or_target(path: String, to: impl FnOnce(String) -> PlannedTarget) -> PlannedTarget {
    if path == DEV_NULL { PlannedTarget::Null } else { to(path) }
}
