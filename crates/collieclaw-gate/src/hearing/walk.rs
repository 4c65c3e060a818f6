//! The way through the tree: what is judged in which order, and what can be planned.

use std::path::PathBuf;

use super::destructive;
use super::fetched::Flow;
use super::{Hearing, Stand};
use crate::path::{self, Use};
use crate::plan::{Act, Plan, PlannedCommand, PlannedList, PlannedPipeline, PlannedRedirection, To};
use crate::reason::Reason;
use crate::shell::{
    At, Command, Compound, CompoundKind, Join, List, Pipeline, Redirection, Script, Target, Unknown,
    UnknownKind, Word,
};

impl Hearing<'_> {
    /// Judges a whole line. The plan is there if all of it can be carried out from the tree.
    pub(super) fn hear(&mut self, script: &Script) -> Option<Plan> {
        let mut stand = Stand { folder: Some(self.policy.workspace.clone()) };
        if destructive::in_script(script) {
            self.findings.add(Reason::Destructive { what: "calls itself until nothing else can run" });
        }
        let lists: Vec<_> = script.lists.iter().map(|list| self.list(list, &mut stand)).collect();
        if lists.is_empty() {
            self.findings.add(Reason::LooksOnly);
        }
        Some(Plan { lists: lists.into_iter().collect::<Option<_>>()? })
    }

    /// Judges a script that can't be planned: inside a construct, a substitution, or a line for another shell.
    pub(super) fn inside(&mut self, script: &Script, stand: &Stand) {
        let mut stand = stand.clone();
        if destructive::in_script(script) {
            self.findings.add(Reason::Destructive { what: "calls itself until nothing else can run" });
        }
        for list in &script.lists {
            self.list(list, &mut stand);
        }
    }

    fn list(&mut self, list: &List, stand: &mut Stand) -> Option<PlannedList> {
        let before = stand.clone();
        let first = self.pipeline(&list.first, stand);
        let mut moved = stand.folder != before.folder;
        let mut moved_perhaps = false;
        let mut rest = Vec::new();
        for (join, pipeline) in &list.rest {
            if *join == Join::IfFailed && moved {
                // Which folder this runs in depends on how far the list went.
                stand.folder = None;
            }
            let from = stand.folder.clone();
            rest.push(self.pipeline(pipeline, stand).map(|pipeline| (*join, pipeline)));
            if stand.folder != from {
                (moved, moved_perhaps) = (true, true);
                if *join == Join::IfFailed {
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
            self.unknowable("`&` leaves something running", at);
            *stand = before;
            return None;
        }
        Some(PlannedList { first: first?, rest: rest.into_iter().collect::<Option<_>>()? })
    }

    fn pipeline(&mut self, pipeline: &Pipeline, stand: &mut Stand) -> Option<PlannedPipeline> {
        let mut flow = Flow { here: &self.here, left: self.patience.flow };
        let runs_what_it_fetches = flow.runs_what_it_fetches(pipeline);
        self.patience.flow = flow.left;
        if runs_what_it_fetches {
            self.findings.add(Reason::Destructive { what: "runs what it fetches from the network" });
        }
        let alone = pipeline.commands.len() == 1;
        let mut commands = Vec::new();
        for command in &pipeline.commands {
            // In a pipeline of several each has a folder of its own.
            let mut own = stand.clone();
            commands.push(self.command(command, &mut own));
            if alone {
                *stand = own;
            }
        }
        Some(PlannedPipeline {
            negated: pipeline.negated,
            commands: commands.into_iter().collect::<Option<_>>()?,
        })
    }

    fn command(&mut self, command: &Command, stand: &mut Stand) -> Option<PlannedCommand> {
        match command {
            Command::Simple(simple) => {
                if stand.folder.is_none() {
                    self.unknowable("in which folder this runs is known only when it runs", simple.at);
                }
                let redirections = self.redirections(&simple.redirections, stand);
                let folder = stand.folder.clone();
                let act = self.simple(simple, stand);
                if matches!(act, Some(Act::Enter(_))) && redirections.iter().flatten().any(may_fail) {
                    // It stays where it is if a file can't be opened.
                    stand.folder = None;
                }
                Some(PlannedCommand { act: act?, folder: folder?, redirections: redirections? })
            }
            Command::Compound(compound) => {
                self.compound(compound, stand);
                None
            }
        }
    }

    fn compound(&mut self, compound: &Compound, stand: &mut Stand) {
        let what = match &compound.kind {
            CompoundKind::Subshell => "a subshell",
            CompoundKind::Group => "a group in braces",
            CompoundKind::If | CompoundKind::Case => "a choice is made only when it runs",
            CompoundKind::Loop | CompoundKind::For => "how often a loop runs is known only when it runs",
            CompoundKind::Test => "only some shells know `[[`",
            CompoundKind::Function(_) => "a function",
        };
        self.unknowable(what, compound.at);
        for word in &compound.words {
            self.word_scripts(word, stand);
        }
        for script in &compound.scripts {
            self.inside(script, stand);
        }
        self.redirections(&compound.redirections, stand);
        if compound.kind != CompoundKind::Subshell {
            // Whatever it did may have changed the folder.
            stand.folder = None;
        }
    }

    /// Judges what a word runs before it is known. Whether there was anything unknown in it.
    pub(super) fn word_scripts(&mut self, word: &Word, stand: &Stand) -> bool {
        let mut any = false;
        for unknown in word.unknowns() {
            any = true;
            self.unknown(unknown, stand);
        }
        any
    }

    fn unknown(&mut self, unknown: &Unknown, stand: &Stand) {
        let what = match unknown.kind {
            UnknownKind::Variable => "a variable is known only when it runs",
            UnknownKind::CommandSubstitution => "what a command prints is known only when it runs",
            UnknownKind::ProcessSubstitution => "only some shells know `<(`",
            UnknownKind::Arithmetic => "a calculation is known only when it runs",
            UnknownKind::Braces => "only some shells expand braces; quote them or write the words out",
            UnknownKind::DollarQuote => "only some shells know `$'` and `$\"`",
            UnknownKind::Tilde => "shells read this `~` differently; quote it or write the path out",
            UnknownKind::Pattern => "shells read this pattern differently; quote it or write it simpler",
        };
        self.unknowable(what, unknown.at);
        for script in &unknown.scripts {
            self.inside(script, stand);
        }
    }

    fn redirections(
        &mut self,
        redirections: &[Redirection],
        stand: &Stand,
    ) -> Option<Vec<PlannedRedirection>> {
        let planned: Vec<_> =
            redirections.iter().map(|redirection| self.redirection(redirection, stand)).collect();
        planned.into_iter().collect()
    }

    fn redirection(&mut self, redirection: &Redirection, stand: &Stand) -> Option<PlannedRedirection> {
        let to = match &redirection.target {
            Target::Read(word) => self.file(word, Use::Look, stand).map(|path| null_or(path, To::Read)),
            Target::Write(word) => self.file(word, Use::Write, stand).map(|path| null_or(path, To::Write)),
            Target::Append(word) => self.file(word, Use::Write, stand).map(|path| null_or(path, To::Append)),
            Target::ReadWrite(word) => {
                self.file(word, Use::Write, stand);
                self.unknowable("`<>` opens for reading and writing", redirection.at);
                return None;
            }
            Target::Descriptor(number) if *number <= 2 => Some(To::Copy(*number)),
            Target::Descriptor(_) | Target::Closed => {
                self.unknowable("only the descriptors 0, 1 and 2 can be led elsewhere", redirection.at);
                return None;
            }
            Target::HereDocument(id) => {
                let body = self.here.get(id.0).cloned()?;
                let unknown = self.word_scripts(&body, stand);
                body.literal().filter(|_| !unknown).map(To::Text)
            }
            Target::Dialect(word) => {
                if !word.parts.is_empty() {
                    self.file(word, Use::Write, stand);
                }
                self.unknowable("only some shells know this redirection", redirection.at);
                return None;
            }
        };
        if redirection.descriptor > 2 {
            self.unknowable("only the descriptors 0, 1 and 2 can be led elsewhere", redirection.at);
            return None;
        }
        Some(PlannedRedirection { descriptor: redirection.descriptor, to: to? })
    }

    /// Judges the file of a redirection.
    fn file(&mut self, word: &Word, used: Use, stand: &Stand) -> Option<String> {
        if self.word_scripts(word, stand) {
            return None;
        }
        let Some(path) = self.known(word) else {
            self.unknowable("a pattern as the file of a redirection", word.at);
            return None;
        };
        if path != NULL {
            self.path(&path, used, stand);
        }
        Some(path)
    }

    /// Judges a path that a command names.
    pub(super) fn path(&mut self, path: &str, used: Use, stand: &Stand) {
        let Some(left) = self.patience.paths.checked_sub(1) else {
            return self.tired("there are more paths than can be looked at");
        };
        self.patience.paths = left;
        let from = self.from(stand);
        path::judge(path, &from, used, (self.policy, self.facts), &mut self.findings);
    }

    /// Where relative paths begin. Without a known folder only what doesn't depend on it can be judged.
    pub(super) fn from(&self, stand: &Stand) -> PathBuf {
        stand.folder.clone().unwrap_or_else(|| self.policy.workspace.clone())
    }

    /// The text of a word without patterns, `~` expanded.
    pub(super) fn known(&self, word: &Word) -> Option<String> {
        use crate::shell::Part;
        let mut text = String::new();
        for part in &word.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Home => text.push_str(self.policy.user_home.to_str()?),
                Part::Glob(_) | Part::Unknown(_) => return None,
            }
        }
        Some(text)
    }

    pub(super) fn enter(&mut self, path: &str, at: At, stand: &mut Stand) -> Option<Act> {
        use crate::facts::Seen;
        self.path(path, Use::Look, stand);
        let from = stand.folder.take()?;
        let place = path::plain(&from.join(path));
        match self.facts.look(&from.join(path)) {
            Seen::Folder { leads_to } if leads_to != place => {
                self.unknowable("`cd` through a link: the way back is another to a shell", at);
                None
            }
            Seen::Folder { leads_to } => {
                stand.folder = Some(leads_to.clone());
                Some(Act::Enter(leads_to))
            }
            Seen::Nothing { .. } | Seen::File { .. } | Seen::Special { .. } | Seen::Unreachable => {
                self.unknowable("`cd` needs a folder that is there", at);
                None
            }
        }
    }
}

/// The one device that everybody may use.
pub(super) const NULL: &str = "/dev/null";

/// Whether there is a file to be opened.
fn may_fail(redirection: &PlannedRedirection) -> bool {
    match redirection.to {
        To::Read(_) | To::Write(_) | To::Append(_) => true,
        To::Copy(_) | To::Text(_) | To::Null => false,
    }
}

fn null_or(path: String, to: impl FnOnce(String) -> To) -> To {
    if path == NULL { To::Null } else { to(path) }
}
