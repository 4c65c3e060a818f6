//! The graph of providers that refer to other providers: every name must exist, and no cycle may occur.

use std::collections::{BTreeMap, BTreeSet};

use ward_diag::{ConfigFault, FaultCollector, Spanned, code};

use crate::config::read::values::unknown_name;

/// All provider names, and the members of providers that ask others.
pub(super) struct ProviderGraph {
    known: BTreeSet<String>,
    members: BTreeMap<String, Vec<Spanned<String>>>,
}

impl ProviderGraph {
    /// Creates a graph with the built-in providers.
    pub(super) fn new(known: impl Iterator<Item = String>) -> Self {
        Self { known: known.collect(), members: BTreeMap::new() }
    }

    /// Adds the name of a provider. A provider with faults counts as well, so that references to it are not
    /// reported.
    pub(super) fn declare(&mut self, name: &str) {
        self.known.insert(name.to_owned());
    }

    /// Adds the members that a provider asks.
    pub(super) fn add_members(&mut self, name: &str, members: &[Spanned<String>]) {
        self.members.entry(name.to_owned()).or_default().extend(members.iter().cloned());
    }

    pub(super) fn check(&self, faults: &FaultCollector) {
        for (name, members) in &self.members {
            for member in members.iter().filter(|member| !self.known.contains(&member.value)) {
                let known = self.known.iter().map(String::as_str).filter(|known| known != name);
                faults.push(unknown_name("provider", member, known, "add it as `[providers.models.NAME]`"));
            }
            self.report_cycle(name, faults);
        }
    }

    /// Reports a cycle from a provider back to itself. Each cycle is reported once, at its alphabetically
    /// first name.
    fn report_cycle(&self, name: &str, faults: &FaultCollector) {
        let members = self.members.get(name).map(Vec::as_slice).unwrap_or_default();
        for member in members {
            let mut path = vec![name];
            if !self.find_path(&member.value, name, &mut path) || path.iter().any(|passed| *passed < name) {
                continue;
            }
            path.push(name);
            let path = path.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" asks ");
            let message = format!("`{name}` leads back to itself: {path}");
            let help = "remove one of them, so that the chain ends";
            faults.push(ConfigFault::new(code::INVALID, member.span, message).help(help));
        }
    }

    /// Returns true if `from` leads to `to`, and appends the names on the way to `path`.
    fn find_path<'g>(&'g self, from: &'g str, to: &str, path: &mut Vec<&'g str>) -> bool {
        if from == to {
            return true;
        }
        if path.contains(&from) {
            return false;
        }
        path.push(from);
        let members = self.members.get(from).map(Vec::as_slice).unwrap_or_default();
        let is_found = members.iter().any(|member| self.find_path(&member.value, to, path));
        if !is_found {
            path.retain(|passed| *passed != from);
        }
        is_found
    }
}
