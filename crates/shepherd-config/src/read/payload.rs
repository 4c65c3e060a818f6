//! Reads the settings of drivers. Settings of built-in drivers are checked, others are passed on as JSON.

use serde_json::{Map, Number, Value as Json};
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::{entry_kind, size, values};
use crate::settings::{DriverSettings, SettingType};

/// Reads the settings of a built-in driver, which are required.
pub(super) fn read_required_settings(
    table: &mut TomlTable<'_>,
    key: &str,
    settings: &DriverSettings,
) -> Option<Json> {
    let read = table.required_with(key, |value| read_settings(value, key, settings));
    table.help_if_missing(key, format!("add `{key} = {}`", settings.example));
    read
}

fn read_settings(value: TomlValue<'_>, key: &str, settings: &DriverSettings) -> Option<Json> {
    if !matches!(value.kind(), ValueKind::Table) {
        let message = format!("{} must be a table", value.name());
        let help = format!("write `{key} = {}`", settings.example);
        value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
        return None;
    }
    let mut table = value.table()?;
    let faults = table.faults();
    let before = faults.len();
    let mut read = Map::new();
    for setting in settings.all {
        if let Some(read_value) =
            table.optional_with(setting.key, |value| read_setting(value, setting.setting_type))
        {
            read.insert(setting.key.to_owned(), read_value);
        }
    }
    for (key, other) in settings.depends_on {
        if let (Some(span), None) = (table.key_span(key), table.key_span(other)) {
            let message = format!("`{key}` has no effect without `{other}`");
            faults.push(
                ConfigFault::new(code::MISSING_KEY, span, message)
                    .help(format!("add `{other}`, or remove `{key}`")),
            );
        }
    }
    let is_set = |key: &&str| table.key_span(key).is_some();
    let lacks_required = !settings.require_one_of.iter().any(is_set) && !table.is_incomplete();
    let span = table.span();
    table.finish();
    // A misspelt key is not reported as missing as well.
    if lacks_required && faults.len() == before {
        let wanted: Vec<String> = settings.require_one_of.iter().map(|key| format!("`{key}`")).collect();
        let message = format!("{} is missing", wanted.join(" or "));
        let help = format!("write `{key} = {}`", settings.example);
        faults.push(ConfigFault::new(code::MISSING_KEY, span, message).help(help));
    }
    Some(Json::Object(read))
}

fn read_setting(value: TomlValue<'_>, setting_type: SettingType) -> Option<Json> {
    let texts = |texts: Vec<String>| Json::from(texts);
    match setting_type {
        SettingType::Memory => size::read_whole_mebibytes(value).map(Json::from),
        SettingType::Count { most } => size::read_count(value, 1, most).map(Json::from),
        SettingType::Path => values::read_absolute_path(value).map(Json::from),
        SettingType::PathList if matches!(value.kind(), ValueKind::Text(_)) => {
            values::read_absolute_path(value).map(Json::from)
        }
        SettingType::PathList => {
            let elements = values::non_empty_list(value, "add the full path of a file, or remove this key")?;
            values::read_all(elements, values::read_absolute_path).map(texts)
        }
        SettingType::Text => values::read_system_text(value).map(Json::from),
        SettingType::TextList => values::read_all(value.elements()?, values::read_system_text).map(texts),
        SettingType::Boolean => value.boolean().map(Json::from),
        SettingType::Program => entry_kind::read_argv(value).map(texts),
        SettingType::OneOf(words) => read_word(value, words).map(Json::from),
        SettingType::FlatpakName => {
            read_app_name(value, is_flatpak_name, "org.tuxpaint.Tuxpaint", "flatpak list")
        }
        SettingType::SnapName => read_app_name(value, is_snap_name, "gcompris", "snap list"),
    }
}

/// Reads one of several words. For `true` and `false` the help lists the words instead of asking for quotes.
fn read_word(value: TomlValue<'_>, words: &[&'static str]) -> Option<&'static str> {
    if let ValueKind::Text(_) = value.kind() {
        let words: Vec<(&str, &'static str)> = words.iter().map(|word| (*word, *word)).collect();
        return value.one_of(&words);
    }
    let message = format!("{} can't be {}", value.name(), value.quoted());
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let help = format!("write {}", words.join(" or "));
    value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
    None
}

/// Reads the name of an application in the form of its driver. The application need not be installed.
fn read_app_name(
    value: TomlValue<'_>,
    is_valid: fn(&str) -> bool,
    example: &str,
    command: &str,
) -> Option<Json> {
    let text = value.non_empty_text()?;
    if is_valid(text) {
        return Some(Json::from(text));
    }
    let message = format!("{} can't be {}", value.name(), value.quoted());
    value.reject(
        InvalidValue::new(message).help(format!("write it like \"{example}\"; `{command}` lists the names")),
    );
    None
}

/// Returns true for at least three parts separated by dots.
fn is_flatpak_name(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
    };
    text.len() <= 255 && text.split('.').count() >= 3 && text.split('.').all(part)
}

/// Returns true for the name of a snap, optionally with an instance and a program.
fn is_snap_name(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
    };
    text.len() <= 255 && text.split('.').count() <= 2 && text.split('.').all(part)
}

/// Converts any value to JSON for a driver defined in the policy.
pub(super) fn read_json(value: TomlValue<'_>) -> Option<Json> {
    Some(match value.kind() {
        ValueKind::Text(text) | ValueKind::DateTime(text) => Json::from(text),
        ValueKind::Boolean(flag) => Json::from(flag),
        ValueKind::Integer(number) => Json::from(i64::try_from(number).ok().or_else(|| {
            value.reject(InvalidValue::new("this number is too large").help("write it in quotes"));
            None
        })?),
        ValueKind::Float(number) => Json::Number(Number::from_f64(number).or_else(|| {
            value.reject(InvalidValue::new("this number can't be passed to a driver").help("remove it"));
            None
        })?),
        ValueKind::Array => Json::Array(values::read_all(value.elements()?, read_json)?),
        ValueKind::Table => Json::Object(read_json_object(&mut value.table()?)?),
    })
}

fn read_json_object(table: &mut TomlTable<'_>) -> Option<Map<String, Json>> {
    let read: Vec<Option<_>> = table
        .entries()
        .into_iter()
        .map(|(key, value)| Some((key.value.to_owned(), read_json(value)?)))
        .collect();
    read.into_iter().collect()
}
