//! Finds the commands and modules that a program runs.

use super::super::{OperandRule, WordMeaning, interpreters};
use super::{ArgumentParser, CommandArgument, ForEachCommand, ParsedArgument};

impl<'a> ArgumentParser<'a> {
    /// Adds an inner command for each remaining word at which it could start.
    pub(super) fn command_anywhere(&mut self) {
        let starts = (self.next..self.arguments.len()).filter_map(|from| self.arguments.get(from..));
        let commands = starts.filter(|words| !words.first().is_some_and(is_flag));
        self.parsed.extend(commands.map(ParsedArgument::Command));
    }

    /// Adds a flag that may or may not take the next word as its value. The start of an inner command isn't
    /// known then, so every possible start is judged.
    pub(super) fn add_ambiguous_flag(&mut self, text: &'a str) {
        self.parsed.push(ParsedArgument::UnknownFlag(text));
        if matches!(
            self.program.operands,
            OperandRule::Command { .. } | OperandRule::VariablesThenCommand | OperandRule::Applet
        ) {
            self.command_anywhere();
        }
    }

    /// Passes all remaining words to a module, whose facts are those of the tool with its name.
    pub(super) fn take_module(&mut self, joined: Option<&'a str>) {
        let name = match joined {
            Some(name) => Some(name),
            None => self.next_argument().and_then(|argument| argument.text.as_deref()),
        };
        let rest = self.arguments.get(self.next..).unwrap_or_default();
        self.next = self.arguments.len();
        let Some(name) = name else {
            return self.parsed.push(ParsedArgument::UnknownFlag("-m"));
        };
        self.parsed.push(ParsedArgument::Value(WordMeaning::Code, name));
        self.parsed.push(ParsedArgument::Subcommand(interpreters::find_module(name), rest));
    }

    pub(super) fn command_until_end(&mut self) {
        let rest = self.arguments.get(self.next..).unwrap_or_default();
        let text = |place: usize| rest.get(place).and_then(|argument| argument.text.as_deref());
        // Without `{}` before it, `+` is an argument of the command.
        let ends = |place: &usize| match text(*place) {
            Some(";") => true,
            Some("+") => place.checked_sub(1).and_then(text) == Some("{}"),
            _ => false,
        };
        let length = (0..rest.len()).find(ends).unwrap_or(rest.len());
        let words = rest.get(..length).unwrap_or_default();
        self.parsed.push(ParsedArgument::CommandForEach(ForEachCommand {
            words,
            takes_many_names: text(length) == Some("+"),
            name_pattern: self.find_name_pattern(),
        }));
        self.next += length + 1;
    }

    /// Returns the pattern of a `-name` that all found files must match. `None` if the expression has
    /// operators other than "and", or if anything but simple conditions precedes the `-name`.
    fn find_name_pattern(&self) -> Option<&'a str> {
        let texts = |words: &'a [CommandArgument]| words.iter().map(|word| word.text.as_deref());
        let or =
            |text: Option<&str>| matches!(text, None | Some("-o" | "-or" | "," | "!" | "-not" | "(" | ")"));
        if texts(self.arguments).any(or) {
            return None;
        }
        let before = self.arguments.get(..self.next)?;
        let mut words = texts(before).flatten().skip_while(|word| !word.starts_with('-'));
        loop {
            match words.next()? {
                "-name" => return words.next(),
                "-type" | "-maxdepth" | "-mindepth" | "-size" | "-mtime" | "-mmin" | "-newer" => {
                    words.next()?;
                }
                _ => return None,
            }
        }
    }
}

fn is_flag(argument: &CommandArgument) -> bool {
    argument.text.as_deref().is_some_and(|text| text.starts_with('-'))
}
