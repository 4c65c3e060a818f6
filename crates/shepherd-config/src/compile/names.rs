//! The names that a policy defines, and the lookup of names that it uses.

use std::collections::{BTreeMap, BTreeSet};

use ward_diag::{ConfigFault, FaultCollector, MAX_FAULTS, Spanned, closest, code};

use crate::raw::{RawPolicy, SpannedName};
use crate::read::escape_name;
use crate::settings::BUILT_IN_TYPES;

/// All names that the policy defines.
pub(super) struct DefinedNames<'r> {
    pub(super) faults: &'r FaultCollector,
    /// True if parts of the file could not be parsed. A name that seems to be missing may be in such a part.
    incomplete: bool,
    known: BTreeMap<NameKind, BTreeSet<&'r str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameKind {
    Profile,
    Budget,
    Library,
    Driver,
    Mode,
    Entry,
}

impl NameKind {
    fn noun(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Budget => "budget",
            Self::Library => "library",
            Self::Driver => "driver",
            Self::Mode => "mode",
            Self::Entry => "entry",
        }
    }

    /// Returns help for a policy that defines no such name.
    fn definition_help(self) -> &'static str {
        match self {
            Self::Profile => "this file has no profile; add `[profiles.NAME]`",
            Self::Budget => "this file has no budget; add `[budgets.NAME]` with `daily = \"1h\"`",
            Self::Library => "this file has no library; add `[libraries.NAME]` with its `paths`",
            Self::Driver => "this file has no driver; add `[drivers.NAME]` with its `argv`",
            Self::Mode => "this file has no modes; add `[modes]` with `names = [\"school\", \"holiday\"]`",
            Self::Entry => "this file has no entry; add `[[entries]]`",
        }
    }
}

impl<'r> DefinedNames<'r> {
    pub(super) fn collect_from(raw: &'r RawPolicy, faults: &'r FaultCollector) -> Self {
        let text = |name: &'r SpannedName| name.value.as_str();
        let known = BTreeMap::from([
            (NameKind::Profile, raw.profiles.iter().map(|profile| text(&profile.id)).collect()),
            (NameKind::Budget, raw.budgets.iter().map(|budget| text(&budget.id)).collect()),
            (NameKind::Library, raw.libraries.iter().map(|(name, _)| text(name)).collect()),
            (
                NameKind::Driver,
                raw.drivers.iter().map(|(name, _)| text(name)).chain(BUILT_IN_TYPES).collect(),
            ),
            (NameKind::Mode, raw.modes.names.iter().map(text).collect()),
            (NameKind::Entry, raw.entries.iter().filter_map(|entry| entry.id.as_ref()).map(text).collect()),
        ]);
        Self { faults, incomplete: raw.incomplete, known }
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Records a fault if the policy does not define the name.
    pub(super) fn look_up(&self, what: NameKind, name: &SpannedName) {
        let Some(known) = self.known.get(&what) else { return };
        let is_default = what == NameKind::Profile && known.is_empty() && name.value == "default";
        if self.incomplete || is_default || known.contains(name.value.as_str()) {
            return;
        }
        // Each suggestion searches all names, so their number is limited.
        if known.is_empty() || self.faults.len() > MAX_FAULTS {
            let help = if known.is_empty() { what.definition_help() } else { "check the spelling" };
            let message = format!("there is no {} `{}`", what.noun(), escape_name(&name.value));
            self.faults.push(ConfigFault::new(code::UNKNOWN_NAME, name.span, message).help(help));
            return;
        }
        if what == NameKind::Driver {
            self.report_missing_driver(name, known);
            return;
        }
        let used = Spanned::new(name.value.as_str(), name.span);
        self.faults.report_unknown_name(what.noun(), used, known.iter().copied());
    }

    /// Records that a type has no driver, and suggests one.
    fn report_missing_driver(&self, name: &SpannedName, known: &BTreeSet<&str>) {
        let shown = escape_name(&name.value);
        let help = match closest(&name.value, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`flatpak`, `snap` and `steam` are built in; for any other type add `[drivers.NAME]` with the \
                     program that runs it: `argv = [\"/usr/bin/my-driver\"]`"
                .to_owned(),
        };
        let message = format!("there is no driver for the type `{shown}`");
        self.faults.push(ConfigFault::new(code::UNKNOWN_NAME, name.span, message).help(help));
    }

    /// Looks up the names of a list, and records names that are in it twice.
    pub(super) fn look_up_all(&self, what: NameKind, names: &[SpannedName]) {
        let mut seen = BTreeMap::new();
        for name in names {
            self.look_up(what, name);
            if let Some(first) = seen.insert(name.value.as_str(), name.span) {
                let message = format!("{} `{}` is in this list twice", what.noun(), escape_name(&name.value));
                self.faults.push(
                    ConfigFault::new(code::DUPLICATE, name.span, message)
                        .related(first, "first named here")
                        .help("remove one of them"),
                );
            }
        }
    }
}
