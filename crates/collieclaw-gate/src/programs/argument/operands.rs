//! Gives the operands of a program their meanings, once all its flags are known.

use super::super::{OperandRule, WordMeaning};
use super::{ArgumentParser, FileTransfer, ParsedArgument};

impl<'a> ArgumentParser<'a> {
    pub(super) fn finish(&mut self) {
        let operands = std::mem::take(&mut self.operands);
        let count = operands.len();
        match self.program.operands {
            OperandRule::SourcesThenTarget(_) if self.links_symbolically => {
                return self.add_symbolic_links(&operands);
            }
            OperandRule::SourcesThenTarget(_) => self.add_transfers(&operands),
            OperandRule::SettingAndValue => self.add_changed_setting(&operands),
            _ => {}
        }
        for (place, text) in operands.into_iter().enumerate() {
            let meaning = match self.program.operands {
                _ if self.operand_meaning.is_some() => self.operand_meaning.unwrap_or(WordMeaning::Text),
                OperandRule::All(meaning) => meaning,
                OperandRule::FirstThenRest(first, rest) => {
                    if place == 0 && self.operand_replacement.is_none() { first } else { rest }
                }
                OperandRule::SourcesThenTarget(_)
                    if place + 1 == count && self.operand_replacement.is_none() =>
                {
                    WordMeaning::WrittenPath
                }
                OperandRule::SourcesThenTarget(source) => source,
                OperandRule::Command { .. }
                | OperandRule::VariablesThenCommand
                | OperandRule::CommandAnywhere
                | OperandRule::Applet
                | OperandRule::SettingAndValue
                | OperandRule::SideEffect(_)
                | OperandRule::Subcommands(_) => WordMeaning::Text,
            };
            match self.backup_suffix {
                Some(suffix) if matches!(meaning, WordMeaning::ReadPath | WordMeaning::PossiblePath) => {
                    self.parsed.push(ParsedArgument::Value(WordMeaning::WrittenPath, text));
                    self.parsed.extend((!suffix.is_empty()).then_some(ParsedArgument::Backup(text, suffix)));
                }
                _ => self.parsed.push(ParsedArgument::Value(meaning, text)),
            }
        }
    }

    /// Adds the setting that `git config` changes, if it changes one.
    fn add_changed_setting(&mut self, operands: &[&'a str]) {
        let changed = match operands {
            _ if self.operand_meaning.is_some() => None,
            ["edit", ..] => Some("edit"),
            ["get" | "list", ..] | [] | [_] => None,
            ["set" | "unset" | "rename-section" | "remove-section", name, ..] | [name, ..] => Some(*name),
        };
        self.parsed.extend(changed.map(ParsedArgument::ChangedSetting));
    }

    /// Splits operands into the sources and the target of a transfer.
    fn split_target<'o>(&self, operands: &'o [&'a str]) -> Option<(&'o [&'a str], &'a str)> {
        match (self.operand_replacement, operands) {
            (Some(target), sources) => Some((sources, target)),
            // `ln src/x` creates `./x`.
            (None, [_]) => Some((operands, ".")),
            (None, [sources @ .., target]) => Some((sources, *target)),
            (None, []) => None,
        }
    }

    fn add_symbolic_links(&mut self, operands: &[&'a str]) {
        let Some((sources, target)) = self.split_target(operands) else { return };
        self.parsed.push(ParsedArgument::Value(WordMeaning::WrittenPath, target));
        if self.may_have_flag('r', "--r") {
            // With `-r`, the sources start in the current folder instead.
            self.parsed
                .extend(sources.iter().map(|source| ParsedArgument::Value(WordMeaning::WrittenPath, source)));
        }
        self.parsed.extend(sources.iter().map(|source| ParsedArgument::SymbolicLink(source, target)));
    }

    fn add_transfers(&mut self, operands: &[&'a str]) {
        let Some((sources, target)) = self.split_target(operands) else { return };
        let replaces_target = self.may_have_flag('T', "--no-t");
        let recursive = ['r', 'R', 'a'].into_iter().any(|letter| self.may_have_flag(letter, "--r"))
            || self.may_have_flag('a', "--a")
            || self.program.operands == OperandRule::SourcesThenTarget(WordMeaning::MovedPath);
        let keeps_links = ['P', 'd'].into_iter().any(|letter| self.may_have_flag(letter, "--no-d"));
        let transfer = |source: &&'a str| {
            ParsedArgument::Transfer(FileTransfer { source, target, replaces_target, recursive, keeps_links })
        };
        self.parsed.extend(sources.iter().map(transfer));
    }

    /// Returns true if a flag may be among the words; `long` is the beginning of its long spelling.
    fn may_have_flag(&self, letter: char, long: &str) -> bool {
        let mut words = self.arguments.iter().filter_map(|argument| argument.text.as_deref());
        words.any(|word| match word.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => letters.contains(letter),
            Some(_) => word.starts_with(long),
            None => false,
        })
    }
}
