//! Who leads to whom: every name must be one, and nobody may lead back to itself.

use std::collections::{BTreeMap, BTreeSet};

use ward_diag::{ConfigFault, FaultCollector, Spanned, code};

use crate::config::read::values::unknown_name;

/// The providers by name, and those that ask others.
pub(super) struct ProviderGraph {
    known: BTreeSet<String>,
    members: BTreeMap<String, Vec<Spanned<String>>>,
}

impl ProviderGraph {
    /// With those that are there by default.
    pub(super) fn new(known: impl Iterator<Item = String>) -> Self {
        Self { known: known.collect(), members: BTreeMap::new() }
    }

    /// There is one of this name, be it a faulty one.
    pub(super) fn declare(&mut self, name: &str) {
        self.known.insert(name.to_owned());
    }

    /// One asks others.
    pub(super) fn add_members(&mut self, name: &str, members: &[Spanned<String>]) {
        self.members.entry(name.to_owned()).or_default().extend(members.iter().cloned());
    }

    pub(super) fn check(&self, faults: &FaultCollector) {
        for (name, members) in &self.members {
            for member in members.iter().filter(|member| !self.known.contains(&member.value)) {
                let what = format!("provider for `{name}` to ask called");
                let known = self.known.iter().map(String::as_str).filter(|known| known != name);
                faults.push(unknown_name(&what, member, known, "add it as `[providers.models.NAME]`"));
            }
            self.report_cycle(name, faults);
        }
    }

    /// Reports the way from a provider back to itself; once, at the first of its names.
    fn report_cycle(&self, name: &str, faults: &FaultCollector) {
        let members = self.members.get(name).map(Vec::as_slice).unwrap_or_default();
        for member in members {
            let mut way = vec![name];
            if !self.find_path(&member.value, name, &mut way) || way.iter().any(|passed| *passed < name) {
                continue;
            }
            way.push(name);
            let way = way.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" asks ");
            let said = format!("`{name}` leads back to itself: {way}");
            let help = "take one of them out, so that somebody answers in the end";
            faults.push(ConfigFault::new(code::INVALID, member.span, said).help(help));
        }
    }

    /// Whether one leads to another; adds who lies between them to the way.
    fn find_path<'g>(&'g self, from: &'g str, to: &str, way: &mut Vec<&'g str>) -> bool {
        if from == to {
            return true;
        }
        if way.contains(&from) {
            return false;
        }
        way.push(from);
        let members = self.members.get(from).map(Vec::as_slice).unwrap_or_default();
        let back = members.iter().any(|member| self.find_path(&member.value, to, way));
        if !back {
            way.retain(|passed| *passed != from);
        }
        back
    }
}
