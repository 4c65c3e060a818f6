//! The way through the tree: what is judged in which order, and what can be planned.

use std::path::PathBuf;

use super::destructive;
use super::fetch_and_run::DownloadFlow;
use super::{CommandFolder, ShellEvaluation};
use crate::path::{self, PathAccess};
use crate::plan::{
    PlannedAction, PlannedCommand, PlannedList, PlannedPipeline, PlannedRedirection, PlannedTarget, ShellPlan,
};
use crate::reason::GateReason;
use crate::shell::{
    BytePosition, CommandList, CompoundCommand, CompoundKind, ListOperator, Pipeline, Redirection,
    RedirectionTarget, ShellCommand, ShellScript, ShellWord, UnknownPart, UnknownPartKind,
};

impl ShellEvaluation<'_> {
    /// Judges a whole line. The plan is there if all of it can be carried out from the tree.
    pub(super) fn judge_script(&mut self, script: &ShellScript) -> Option<ShellPlan> {
        let mut stand = CommandFolder { folder: Some(self.policy.workspace.clone()) };
        if destructive::has_fork_bomb(script) {
            self.findings.add(GateReason::Destructive { what: "calls itself until nothing else can run" });
        }
        let lists: Vec<_> = script.lists.iter().map(|list| self.judge_list(list, &mut stand)).collect();
        if lists.is_empty() {
            self.findings.add(GateReason::LooksOnly);
        }
        Some(ShellPlan { lists: lists.into_iter().collect::<Option<_>>()? })
    }

    /// Judges a script that can't be planned: inside a construct, a substitution, or a line for another shell.
    pub(super) fn judge_nested_script(&mut self, script: &ShellScript, stand: &CommandFolder) {
        let mut stand = stand.clone();
        if destructive::has_fork_bomb(script) {
            self.findings.add(GateReason::Destructive { what: "calls itself until nothing else can run" });
        }
        for list in &script.lists {
            self.judge_list(list, &mut stand);
        }
    }

    fn judge_list(&mut self, list: &CommandList, stand: &mut CommandFolder) -> Option<PlannedList> {
        let before = stand.clone();
        let first = self.judge_pipeline(&list.first, stand);
        let mut moved = stand.folder != before.folder;
        let mut moved_perhaps = false;
        let mut rest = Vec::new();
        for (join, pipeline) in &list.rest {
            if *join == ListOperator::IfFailed && moved {
                // Which folder this runs in depends on how far the list went.
                stand.folder = None;
            }
            let from = stand.folder.clone();
            rest.push(self.judge_pipeline(pipeline, stand).map(|pipeline| (*join, pipeline)));
            if stand.folder != from {
                (moved, moved_perhaps) = (true, true);
                if *join == ListOperator::IfFailed {
                    // The next one runs, too, if this one doesn't.
                    stand.folder = None;
                }
            }
        }
        if moved_perhaps {
            // Only the first one always runs.
            stand.folder = None;
        }
        if let Some(at) = list.background {
            self.add_unknowable("`&` leaves something running", at);
            *stand = before;
            return None;
        }
        Some(PlannedList { first: first?, rest: rest.into_iter().collect::<Option<_>>()? })
    }

    fn judge_pipeline(&mut self, pipeline: &Pipeline, stand: &mut CommandFolder) -> Option<PlannedPipeline> {
        let mut flow =
            DownloadFlow { here_documents: &self.here_documents, words_left: self.budget.flow_words };
        let runs_what_it_fetches = flow.runs_what_it_fetches(pipeline);
        self.budget.flow_words = flow.words_left;
        if runs_what_it_fetches {
            self.findings.add(GateReason::Destructive { what: "runs what it fetches from the network" });
        }
        let alone = pipeline.commands.len() == 1;
        let mut commands = Vec::new();
        for command in &pipeline.commands {
            // In a pipeline of several each has a folder of its own.
            let mut own = stand.clone();
            commands.push(self.judge_command(command, &mut own));
            if alone {
                *stand = own;
            }
        }
        Some(PlannedPipeline {
            negated: pipeline.negated,
            commands: commands.into_iter().collect::<Option<_>>()?,
        })
    }

    fn judge_command(&mut self, command: &ShellCommand, stand: &mut CommandFolder) -> Option<PlannedCommand> {
        match command {
            ShellCommand::Simple(simple) => {
                if stand.folder.is_none() {
                    self.add_unknowable("in which folder this runs is known only when it runs", simple.at);
                }
                let redirections = self.judge_redirections(&simple.redirections, stand);
                let folder = stand.folder.clone();
                let act = self.judge_simple_command(simple, stand);
                if matches!(act, Some(PlannedAction::ChangeFolder(_)))
                    && redirections.iter().flatten().any(opens_file)
                {
                    // It stays where it is if a file can't be opened.
                    stand.folder = None;
                }
                Some(PlannedCommand { action: act?, folder: folder?, redirections: redirections? })
            }
            ShellCommand::Compound(compound) => {
                self.judge_compound(compound, stand);
                None
            }
        }
    }

    fn judge_compound(&mut self, compound: &CompoundCommand, stand: &mut CommandFolder) {
        let what = match &compound.kind {
            CompoundKind::Subshell => "a subshell",
            CompoundKind::Group => "a group in braces",
            CompoundKind::If | CompoundKind::Case => "a choice is made only when it runs",
            CompoundKind::Loop | CompoundKind::For => "how often a loop runs is known only when it runs",
            CompoundKind::Test => "only some shells know `[[`",
            CompoundKind::Function(_) => "a function",
        };
        self.add_unknowable(what, compound.at);
        for word in &compound.words {
            self.judge_word_scripts(word, stand);
        }
        for script in &compound.scripts {
            self.judge_nested_script(script, stand);
        }
        self.judge_redirections(&compound.redirections, stand);
        if compound.kind != CompoundKind::Subshell {
            // Whatever it did may have changed the folder.
            stand.folder = None;
        }
    }

    /// Judges what a word runs before it is known. Whether there was anything unknown in it.
    pub(super) fn judge_word_scripts(&mut self, word: &ShellWord, stand: &CommandFolder) -> bool {
        let mut any = false;
        for unknown in word.unknowns() {
            any = true;
            self.judge_unknown_part(unknown, stand);
        }
        any
    }

    fn judge_unknown_part(&mut self, unknown: &UnknownPart, stand: &CommandFolder) {
        let what = match unknown.kind {
            UnknownPartKind::Variable => "a variable is known only when it runs",
            UnknownPartKind::CommandSubstitution => "what a command prints is known only when it runs",
            UnknownPartKind::ProcessSubstitution => "only some shells know `<(`",
            UnknownPartKind::Arithmetic => "a calculation is known only when it runs",
            UnknownPartKind::Braces => "only some shells expand braces; quote them or write the words out",
            UnknownPartKind::DollarQuote => "only some shells know `$'` and `$\"`",
            UnknownPartKind::Tilde => "shells read this `~` differently; quote it or write the path out",
            UnknownPartKind::Pattern => "shells read this pattern differently; quote it or write it simpler",
        };
        self.add_unknowable(what, unknown.at);
        for script in &unknown.scripts {
            self.judge_nested_script(script, stand);
        }
    }

    fn judge_redirections(
        &mut self,
        redirections: &[Redirection],
        stand: &CommandFolder,
    ) -> Option<Vec<PlannedRedirection>> {
        let planned: Vec<_> =
            redirections.iter().map(|redirection| self.judge_redirection(redirection, stand)).collect();
        planned.into_iter().collect()
    }

    fn judge_redirection(
        &mut self,
        redirection: &Redirection,
        stand: &CommandFolder,
    ) -> Option<PlannedRedirection> {
        let to = match &redirection.target {
            RedirectionTarget::Read(word) => self
                .judge_redirection_file(word, PathAccess::Read, stand)
                .map(|path| null_or_target(path, PlannedTarget::Read)),
            RedirectionTarget::Write(word) => self
                .judge_redirection_file(word, PathAccess::Write, stand)
                .map(|path| null_or_target(path, PlannedTarget::Write)),
            RedirectionTarget::Append(word) => self
                .judge_redirection_file(word, PathAccess::Write, stand)
                .map(|path| null_or_target(path, PlannedTarget::Append)),
            RedirectionTarget::ReadWrite(word) => {
                self.judge_redirection_file(word, PathAccess::Write, stand);
                self.add_unknowable("`<>` opens for reading and writing", redirection.at);
                return None;
            }
            RedirectionTarget::Descriptor(number) if *number <= 2 => Some(PlannedTarget::Duplicate(*number)),
            RedirectionTarget::Descriptor(_) | RedirectionTarget::Closed => {
                self.add_unknowable("only the descriptors 0, 1 and 2 can be led elsewhere", redirection.at);
                return None;
            }
            RedirectionTarget::HereDocument(id) => {
                let body = self.here_documents.get(id.0).cloned()?;
                let unknown = self.judge_word_scripts(&body, stand);
                body.literal().filter(|_| !unknown).map(PlannedTarget::Text)
            }
            RedirectionTarget::NonPortable(word) => {
                if !word.parts.is_empty() {
                    self.judge_redirection_file(word, PathAccess::Write, stand);
                }
                self.add_unknowable("only some shells know this redirection", redirection.at);
                return None;
            }
        };
        if redirection.descriptor > 2 {
            self.add_unknowable("only the descriptors 0, 1 and 2 can be led elsewhere", redirection.at);
            return None;
        }
        Some(PlannedRedirection { descriptor: redirection.descriptor, target: to? })
    }

    /// Judges the file of a redirection.
    fn judge_redirection_file(
        &mut self,
        word: &ShellWord,
        used: PathAccess,
        stand: &CommandFolder,
    ) -> Option<String> {
        if self.judge_word_scripts(word, stand) {
            return None;
        }
        let Some(path) = self.known_text(word) else {
            self.add_unknowable("a pattern as the file of a redirection", word.at);
            return None;
        };
        if path != DEV_NULL {
            self.judge_path(&path, used, stand);
        }
        Some(path)
    }

    /// Judges a path that a command names.
    pub(super) fn judge_path(&mut self, path: &str, used: PathAccess, stand: &CommandFolder) {
        let Some(left) = self.budget.paths.checked_sub(1) else {
            return self.add_limit_exceeded("there are more paths than can be looked at");
        };
        self.budget.paths = left;
        let from = self.base_folder(stand);
        path::judge(path, &from, used, (self.policy, self.facts), &mut self.findings);
    }

    /// Where relative paths begin. Without a known folder only what doesn't depend on it can be judged.
    pub(super) fn base_folder(&self, stand: &CommandFolder) -> PathBuf {
        stand.folder.clone().unwrap_or_else(|| self.policy.workspace.clone())
    }

    /// The text of a word without patterns, `~` expanded.
    pub(super) fn known_text(&self, word: &ShellWord) -> Option<String> {
        use crate::shell::WordPart;
        let mut text = String::new();
        for part in &word.parts {
            match part {
                WordPart::Literal(literal) => text.push_str(literal),
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
        stand: &mut CommandFolder,
    ) -> Option<PlannedAction> {
        use crate::facts::PathStatus;
        self.judge_path(path, PathAccess::Read, stand);
        let from = stand.folder.take()?;
        let place = path::normalize_path(&from.join(path));
        match self.facts.inspect_path(&from.join(path)) {
            PathStatus::Folder { leads_to } if leads_to != place => {
                self.add_unknowable("`cd` through a link: the way back is another to a shell", at);
                None
            }
            PathStatus::Folder { leads_to } => {
                stand.folder = Some(leads_to.clone());
                Some(PlannedAction::ChangeFolder(leads_to))
            }
            PathStatus::Missing { .. }
            | PathStatus::File { .. }
            | PathStatus::Special { .. }
            | PathStatus::Unreachable => {
                self.add_unknowable("`cd` needs a folder that is there", at);
                None
            }
        }
    }
}

/// The one device that everybody may use.
pub(super) const DEV_NULL: &str = "/dev/null";

/// Whether there is a file to be opened.
fn opens_file(redirection: &PlannedRedirection) -> bool {
    match redirection.target {
        PlannedTarget::Read(_) | PlannedTarget::Write(_) | PlannedTarget::Append(_) => true,
        PlannedTarget::Duplicate(_) | PlannedTarget::Text(_) | PlannedTarget::Null => false,
    }
}

fn null_or_target(path: String, to: impl FnOnce(String) -> PlannedTarget) -> PlannedTarget {
    if path == DEV_NULL { PlannedTarget::Null } else { to(path) }
}
