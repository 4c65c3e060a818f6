//! An index of the flags of all programs, so that a long line of flags costs no more than linear time.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::LazyLock;

use super::{FlagEffect, FlagSpec, OperandRule, ProgramSpec, all_programs};

/// The flags of a program by their names.
#[derive(Debug)]
pub(super) struct FlagIndex {
    by_name: HashMap<&'static str, &'static FlagSpec>,
    /// The long flags, sorted by their names.
    long: Vec<(&'static str, &'static FlagSpec)>,
    /// The short flags by their letter, which is ASCII.
    short: HashMap<char, &'static FlagSpec>,
}

impl FlagIndex {
    fn new(program: &'static ProgramSpec) -> Self {
        let mut index = Self { by_name: HashMap::new(), long: Vec::new(), short: HashMap::new() };
        for flag in program.flags {
            for name in flag.names.split(' ') {
                index.by_name.entry(name).or_insert(flag);
                if name.starts_with("--") {
                    index.long.push((name, flag));
                }
                let mut letters = name.chars();
                if let (Some('-'), Some(letter), None) = (letters.next(), letters.next(), letters.next()) {
                    index.short.entry(letter).or_insert(flag);
                }
            }
        }
        index.long.sort_by_key(|(name, _)| *name);
        index
    }

    /// Returns the index of a program or a subcommand of the table.
    fn of(program: &'static ProgramSpec) -> Option<&'static Self> {
        static ALL: LazyLock<HashMap<usize, FlagIndex>> = LazyLock::new(|| {
            let mut all = HashMap::new();
            all_programs().for_each(|program| add(program, &mut all));
            all
        });
        ALL.get(&address(program))
    }

    pub(super) fn find(&self, name: &str) -> Option<&'static FlagSpec> {
        self.by_name.get(name).copied()
    }

    pub(super) fn find_short(&self, letter: char) -> Option<&'static FlagSpec> {
        self.short.get(&letter).copied()
    }

    /// Finds the long flag that a text abbreviates, preferring flags with an effect.
    pub(super) fn find_abbreviated(&self, text: &str) -> Option<&'static FlagSpec> {
        let from = self.long.partition_point(|(name, _)| *name < text);
        let matches = || {
            let rest = self.long.get(from..).unwrap_or_default().iter();
            rest.take_while(|(name, _)| name.starts_with(text)).map(|(_, flag)| *flag)
        };
        matches().find(has_effect).or_else(|| matches().next())
    }
}

/// The index of a program's flags.
#[derive(Debug)]
pub(super) enum FlagLookup {
    Indexed(&'static FlagIndex),
    /// The index of a program that isn't in the table.
    Built(FlagIndex),
}

impl FlagLookup {
    pub(super) fn of(program: &'static ProgramSpec) -> Self {
        FlagIndex::of(program).map_or_else(|| Self::Built(FlagIndex::new(program)), Self::Indexed)
    }
}

impl Deref for FlagLookup {
    type Target = FlagIndex;

    fn deref(&self) -> &FlagIndex {
        match self {
            Self::Indexed(index) => index,
            Self::Built(index) => index,
        }
    }
}

fn has_effect(flag: &&'static FlagSpec) -> bool {
    matches!(flag.effect, FlagEffect::SideEffect(_) | FlagEffect::SideEffectWithValue(_))
}

fn address(program: &'static ProgramSpec) -> usize {
    std::ptr::from_ref(program).addr()
}

fn add(program: &'static ProgramSpec, all: &mut HashMap<usize, FlagIndex>) {
    all.insert(address(program), FlagIndex::new(program));
    if let OperandRule::Subcommands(subcommands) = program.operands {
        subcommands.iter().for_each(|subcommand| add(subcommand, all));
    }
}

#[cfg(test)]
mod tests {
    use super::{FlagLookup, OperandRule, ProgramSpec, all_programs};

    fn check(program: &'static ProgramSpec) {
        let [FlagLookup::Indexed(first), FlagLookup::Indexed(second)] =
            [(); 2].map(|()| FlagLookup::of(program))
        else {
            panic!("{} is not indexed", program.names);
        };
        assert!(std::ptr::eq(first, second), "{}", program.names);
        if let OperandRule::Subcommands(subcommands) = program.operands {
            subcommands.iter().for_each(check);
        }
    }

    #[test]
    fn programs_and_their_subcommands_at_any_depth_are_indexed_once() {
        all_programs().for_each(check);
    }
}
