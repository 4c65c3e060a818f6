//! Who leads to whom: every name must be one, and nobody may lead back to itself.

use std::collections::{BTreeMap, BTreeSet};

use ward_diag::{Fault, Faults, Spanned, code};

use crate::config::read::words::unknown;

/// The providers by name, and those that ask others.
pub(super) struct Graph {
    known: BTreeSet<String>,
    leads: BTreeMap<String, Vec<Spanned<String>>>,
}

impl Graph {
    /// With those that are there by default.
    pub(super) fn new(known: impl Iterator<Item = String>) -> Self {
        Self { known: known.collect(), leads: BTreeMap::new() }
    }

    /// There is one of this name, be it a faulty one.
    pub(super) fn declare(&mut self, name: &str) {
        self.known.insert(name.to_owned());
    }

    /// One asks others.
    pub(super) fn lead(&mut self, name: &str, members: &[Spanned<String>]) {
        self.leads.entry(name.to_owned()).or_default().extend(members.iter().cloned());
    }

    pub(super) fn check(&self, faults: &Faults) {
        for (name, members) in &self.leads {
            for member in members.iter().filter(|member| !self.known.contains(&member.value)) {
                let what = format!("provider for `{name}` to ask called");
                let known = self.known.iter().map(String::as_str).filter(|known| known != name);
                faults.push(unknown(&what, member, known, "add it as `[providers.models.NAME]`"));
            }
            self.circle(name, faults);
        }
    }

    /// Reports the way from a provider back to itself; once, at the first of its names.
    fn circle(&self, name: &str, faults: &Faults) {
        let members = self.leads.get(name).map(Vec::as_slice).unwrap_or_default();
        for member in members {
            let mut way = vec![name];
            if !self.way_back(&member.value, name, &mut way) || way.iter().any(|passed| *passed < name) {
                continue;
            }
            way.push(name);
            let way = way.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" asks ");
            let said = format!("`{name}` leads back to itself: {way}");
            let help = "take one of them out, so that somebody answers in the end";
            faults.push(Fault::new(code::INVALID, member.span, said).help(help));
        }
    }

    /// Whether one leads to another; adds who lies between them to the way.
    fn way_back<'g>(&'g self, from: &'g str, to: &str, way: &mut Vec<&'g str>) -> bool {
        if from == to {
            return true;
        }
        if way.contains(&from) {
            return false;
        }
        way.push(from);
        let members = self.leads.get(from).map(Vec::as_slice).unwrap_or_default();
        let back = members.iter().any(|member| self.way_back(&member.value, to, way));
        if !back {
            way.retain(|passed| *passed != from);
        }
        back
    }
}
