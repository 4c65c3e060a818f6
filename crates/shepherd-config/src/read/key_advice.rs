//! Advice about keys that don't exist: which key does what a plausible word means, and where keys of the whole file go.

mod words;

use ward_diag::{TomlTable, TomlValue, UnknownKeyAdvice, ValueKind};

/// The advice for entries, exceptions and days of modes that are not tables.
pub(super) const WRITE_ENTRY: &str =
    "write `[[entries]]` on a line of its own for each program, and below it its `id` and its `argv`";
pub(super) const WRITE_EXCEPTION: &str = "write `[[exceptions]]` on a line of its own for each day, and below it `on = 2026-12-24` and `closed = true`";
pub(super) const WRITE_MODE_DATES: &str =
    "write `[[modes.dates]]` on a line of its own, and below it `mode`, `from` and `to`";

/// Keys at the top of the file.
const TOP_KEYS: [&str; 10] = [
    "config_version",
    "timezone",
    "language",
    "suspended_time",
    "on_reload",
    "on_shutdown",
    "reload_on_change",
    "launch_timeout",
    "stop_grace",
    "expect",
];

/// Tables of the whole file, and how they are written.
const TOP_TABLES: [(&str, &str); 13] = [
    ("defaults", "[defaults]"),
    ("profiles", "[profiles.NAME]"),
    ("budgets", "[budgets.NAME]"),
    ("libraries", "[libraries.NAME]"),
    ("drivers", "[drivers.NAME]"),
    ("compositor", "[compositor]"),
    ("access", "[access]"),
    ("modes", "[modes]"),
    ("exceptions", "[[exceptions]]"),
    ("breaks", "[breaks]"),
    ("grants", "[grants]"),
    ("clock", "[clock]"),
    ("entries", "[[entries]]"),
];

/// Keys of `[access]`.
const ACCESS_KEYS: [&str; 4] = ["admins", "shells", "observers", "others"];

/// A part of the policy language with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicySection {
    Root,
    Defaults,
    Entry,
    Window,
    Warning,
    Profile,
    Bedtime,
    ModeBedtime,
    Budget,
    Library,
    Driver,
    Compositor,
    Access,
    Modes,
    ModeDates,
    Exception,
    Breaks,
    Grants,
    Clock,
    Earns,
    Unlock,
    Resources,
}

/// Words for a key under another name.
pub(super) struct KeyWords {
    words: &'static [&'static str],
    /// The key that was meant, as a path in the schema.
    key: &'static str,
    help: &'static str,
}

impl PolicySection {
    /// Returns the path of the section in the schema; `*` stands for a name, `[]` for an element of a list.
    fn path(self) -> &'static str {
        match self {
            Self::Root => "",
            Self::Defaults => "/defaults",
            Self::Entry => "/entries[]",
            Self::Window => "/entries[]/windows[]",
            Self::Warning => "/entries[]/warnings[]",
            Self::Profile => "/profiles/*",
            Self::Bedtime => "/profiles/*/bedtime",
            Self::ModeBedtime => "/profiles/*/bedtime/modes/*",
            Self::Budget => "/budgets/*",
            Self::Library => "/libraries/*",
            Self::Driver => "/drivers/*",
            Self::Compositor => "/compositor",
            Self::Access => "/access",
            Self::Modes => "/modes",
            Self::ModeDates => "/modes/dates[]",
            Self::Exception => "/exceptions[]",
            Self::Breaks => "/breaks",
            Self::Grants => "/grants",
            Self::Clock => "/clock",
            Self::Earns => "/entries[]/earns",
            Self::Unlock => "/entries[]/unlock",
            Self::Resources => "/entries[]/resources",
        }
    }

    fn words(self) -> &'static [&'static [KeyWords]] {
        match self {
            Self::Root => &[words::ROOT],
            Self::Defaults => &[words::SHARED],
            Self::Entry => &[words::ENTRY, words::SHARED],
            Self::Window => &[words::WINDOW],
            Self::Warning => &[words::WARNING],
            Self::Profile => &[words::PROFILE],
            Self::Bedtime | Self::ModeBedtime => &[words::BEDTIME],
            Self::Budget => &[words::BUDGET],
            Self::Library => &[words::LIBRARY],
            Self::Driver => &[words::DRIVER],
            Self::Compositor => &[],
            Self::Access => &[words::ACCESS],
            Self::Modes => &[words::MODES],
            Self::ModeDates => &[words::MODE_DATES],
            Self::Exception => &[words::EXCEPTION],
            Self::Breaks => &[words::BREAKS],
            Self::Grants => &[words::GRANTS],
            Self::Clock => &[words::CLOCK],
            Self::Earns => &[words::EARNS],
            Self::Unlock => &[words::UNLOCK],
            Self::Resources => &[words::RESOURCES],
        }
    }

    fn key_words(self, key: &str) -> Option<&'static KeyWords> {
        let word = key.to_lowercase().replace('-', "_");
        self.words().iter().copied().flatten().find(|entry| entry.words.contains(&word.as_str()))
    }

    /// Returns the key of this section that was meant, if it is one.
    fn own_key(self, words: &KeyWords) -> Option<String> {
        let (parent, key) = words.key.rsplit_once('/')?;
        // An entry shares its keys with `[defaults]`.
        let is_own = parent == self.path() || self == Self::Entry && parent == Self::Defaults.path();
        is_own.then(|| key.to_owned())
    }
}

/// Reports all unknown keys of a section, with advice where the word says what was meant.
pub(super) fn finish_table(mut table: TomlTable<'_>, section: PolicySection) {
    advise_about_keys(&mut table, section);
    table.finish();
}

/// Reports those unknown keys of a section whose word says what was meant.
pub(super) fn advise_about_keys(table: &mut TomlTable<'_>, section: PolicySection) {
    // In an entry, `accounts` rather stands for `profiles`.
    let lacks_profile_header = !matches!(section, PolicySection::Profile | PolicySection::Entry)
        && table.key_span("accounts").is_some();
    let has_entry = table.key_span("entry").is_some();
    table.advise_unknown_keys(|key, value| {
        if lacks_profile_header && matches!(key, "label" | "accounts") {
            return Some(UnknownKeyAdvice { help: words::WRITE_PROFILE.to_owned(), meant: None });
        }
        mode_advice(section, key, value).or_else(|| {
            // After the entry of `unlock`, only the time is missing.
            let is_time = section == PolicySection::Unlock && has_entry && key == "after";
            let words = section.key_words(if is_time { "time" } else { key });
            let from_words = words
                .map(|words| UnknownKeyAdvice { help: words.help.to_owned(), meant: section.own_key(words) });
            from_words.or_else(|| access_advice(section, key)).or_else(|| top_advice(section, key))
        })
    });
}

/// Returns the advice to move a key to the top of the file.
pub(super) fn top_key_help(key: &str) -> Option<String> {
    TOP_KEYS.contains(&key).then(|| "move it to the top of the file, above the first `[`".to_owned())
}

fn top_advice(section: PolicySection, key: &str) -> Option<UnknownKeyAdvice> {
    if section == PolicySection::Root {
        return None;
    }
    let table = || {
        let (_, header) = TOP_TABLES.iter().find(|(name, _)| *name == key)?;
        Some(format!("write `{header}` as a table of its own, not inside another one"))
    };
    let help = top_key_help(key).or_else(table)?;
    Some(UnknownKeyAdvice { help, meant: None })
}

/// Names the header `[access]` for its keys in another table. The header may be commented out, as in the policy of the
/// package.
fn access_advice(section: PolicySection, key: &str) -> Option<UnknownKeyAdvice> {
    if section == PolicySection::Root || !ACCESS_KEYS.contains(&key) {
        return None;
    }
    let help = format!(
        "`{key}` belongs under `[access]`: put `[access]` on the line above, or delete the `# ` before it"
    );
    Some(UnknownKeyAdvice { help, meant: None })
}

/// Explains that a mode has no settings of its own.
fn mode_advice(section: PolicySection, key: &str, value: TomlValue<'_>) -> Option<UnknownKeyAdvice> {
    if section != PolicySection::Modes || !matches!(value.kind(), ValueKind::Table) {
        return None;
    }
    let name = super::escape_name(key);
    let help = format!(
        "a mode has no settings of its own: list it in `names`, and give its quota in the entry or budget, such as \
         `daily_quota = {{ all = \"1h\", modes = {{ {name} = \"2h\" }} }}`; its hours are a window with \
         `modes = [\"{name}\"]`"
    );
    Some(UnknownKeyAdvice { help, meant: None })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::json_schema;

    const SECTIONS: [PolicySection; 22] = [
        PolicySection::Root,
        PolicySection::Defaults,
        PolicySection::Entry,
        PolicySection::Window,
        PolicySection::Warning,
        PolicySection::Profile,
        PolicySection::Bedtime,
        PolicySection::ModeBedtime,
        PolicySection::Budget,
        PolicySection::Library,
        PolicySection::Driver,
        PolicySection::Compositor,
        PolicySection::Access,
        PolicySection::Modes,
        PolicySection::ModeDates,
        PolicySection::Exception,
        PolicySection::Breaks,
        PolicySection::Grants,
        PolicySection::Clock,
        PolicySection::Earns,
        PolicySection::Unlock,
        PolicySection::Resources,
    ];

    /// Returns true if the schema has a key at this path.
    fn exists(schema: &Value, path: &str) -> bool {
        let forms = schema["anyOf"].as_array().into_iter().flatten();
        if forms.into_iter().any(|form| exists(form, path)) {
            return true;
        }
        if let Some(rest) = path.strip_prefix("[]") {
            return schema["items"].is_object() && exists(&schema["items"], rest);
        }
        let Some(rest) = path.strip_prefix('/') else { return path.is_empty() };
        let end = rest.find(['/', '[']).unwrap_or(rest.len());
        let (key, rest) = rest.split_at(end);
        let inner = if key == "*" { &schema["additionalProperties"] } else { &schema["properties"][key] };
        inner.is_object() && exists(inner, rest)
    }

    #[test]
    fn every_advised_key_exists_and_no_word_is_a_key_itself() {
        let schema = json_schema();
        for section in SECTIONS {
            assert!(exists(&schema, section.path()), "{section:?}");
            let mut seen = std::collections::BTreeSet::new();
            for KeyWords { words, key, help } in section.words().iter().copied().flatten() {
                assert!(exists(&schema, key), "{section:?}: {key}");
                let name = key.rsplit('/').next().unwrap().trim_end_matches("[]");
                assert!(help.contains(name), "{section:?}: {key}: {help}");
                for word in *words {
                    assert!(!exists(&schema, &format!("{}/{word}", section.path())), "{section:?}: {word}");
                    assert!(seen.insert(word), "{section:?}: {word} twice");
                }
            }
        }
    }

    #[test]
    fn the_keys_of_access_are_those_of_the_schema() {
        let schema = json_schema();
        for key in ACCESS_KEYS {
            assert!(exists(&schema, &format!("/access/{key}")), "{key}");
        }
    }

    #[test]
    fn the_keys_and_tables_at_the_top_are_those_of_the_schema() {
        let schema = json_schema();
        let mut known: Vec<&str> =
            TOP_KEYS.into_iter().chain(TOP_TABLES.iter().map(|(name, _)| *name)).collect();
        known.sort_unstable();
        let keys: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut keys = keys;
        keys.sort_unstable();
        assert_eq!(known, keys);
    }
}
