//! What drivers are given: checked for those that are built in, and anything at all for the policy's own.

use serde_json::{Map, Number, Value as Json};
use ward_diag::{Fault, Invalid, Shape, Table, Value, code};

use super::{kind, size, values};
use crate::settings::{Form, Settings};

/// The settings of a built-in driver, under this key.
pub(super) fn required(table: &mut Table<'_>, key: &str, settings: &Settings) -> Option<Json> {
    let read = table.required_with(key, |value| checked(value, key, settings));
    table.if_missing(key, format!("add `{key} = {}`", settings.example));
    read
}

fn checked(value: Value<'_>, key: &str, settings: &Settings) -> Option<Json> {
    if !matches!(value.shape(), Shape::Table) {
        let message = format!("{} must be a table", value.name());
        let help = format!("write `{key} = {}`", settings.example);
        value.refuse(Invalid::new(message).code(code::WRONG_TYPE).help(help));
        return None;
    }
    let mut table = value.table()?;
    let faults = table.faults();
    let before = faults.len();
    let mut read = Map::new();
    for setting in settings.all {
        if let Some(said) = table.optional_with(setting.key, |value| form(value, setting.form)) {
            read.insert(setting.key.to_owned(), said);
        }
    }
    for (key, other) in settings.together {
        if let (Some(span), None) = (table.key_span(key), table.key_span(other)) {
            let message = format!("`{key}` does nothing without `{other}`");
            faults.push(
                Fault::new(code::MISSING_KEY, span, message).help(format!("add `{other}`, or take it out")),
            );
        }
    }
    let said = |key: &&str| table.key_span(key).is_some();
    let nothing_to_start = !settings.one_of.iter().any(said) && !table.is_incomplete();
    let span = table.span();
    table.finish();
    // A misspelt key is not also a missing one.
    if nothing_to_start && faults.len() == before {
        let wanted: Vec<String> = settings.one_of.iter().map(|key| format!("`{key}`")).collect();
        let message = format!("there is nothing to start: {} is missing", wanted.join(" or "));
        let help = format!("write `{key} = {}`", settings.example);
        faults.push(Fault::new(code::MISSING_KEY, span, message).help(help));
    }
    Some(Json::Object(read))
}

fn form(value: Value<'_>, form: Form) -> Option<Json> {
    let texts = |texts: Vec<String>| Json::from(texts);
    match form {
        Form::Memory => size::whole_mebibytes(value).map(Json::from),
        Form::Count { most } => size::count(value, 1, most).map(Json::from),
        Form::Path => values::absolute_path(value).map(Json::from),
        Form::Paths if matches!(value.shape(), Shape::Text(_)) => {
            values::absolute_path(value).map(Json::from)
        }
        Form::Paths => {
            let elements = values::filled(value, "name a file by its full path, or take it out")?;
            values::all(elements, values::absolute_path).map(texts)
        }
        Form::Text => values::system_text(value).map(Json::from),
        Form::Texts => values::all(value.elements()?, values::system_text).map(texts),
        Form::Truth => value.boolean().map(Json::from),
        Form::Program => kind::argv(value).map(texts),
        Form::Word(words) => word(value, words).map(Json::from),
        Form::FlatpakName => name(value, is_flatpak, "org.tuxpaint.Tuxpaint", "flatpak list"),
        Form::SnapName => name(value, is_snap, "gcompris", "snap list"),
    }
}

/// Who writes `true` for a word is told the words, not to put it in quotes.
fn word(value: Value<'_>, words: &[&'static str]) -> Option<&'static str> {
    if let Shape::Text(_) = value.shape() {
        let words: Vec<(&str, &'static str)> = words.iter().map(|word| (*word, *word)).collect();
        return value.one_of(&words);
    }
    let message = format!("{} can't be {}", value.name(), value.quoted());
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let help = format!("it can be {}", words.join(" or "));
    value.refuse(Invalid::new(message).code(code::WRONG_TYPE).help(help));
    None
}

/// A name in the form that its driver wants: whether there is one, the machine knows.
fn name(value: Value<'_>, fits: fn(&str) -> bool, example: &str, tells: &str) -> Option<Json> {
    let text = value.filled_text()?;
    if fits(text) {
        return Some(Json::from(text));
    }
    let message = format!("{} can't be {}", value.name(), value.quoted());
    value.refuse(
        Invalid::new(message).help(format!("write it like \"{example}\"; `{tells}` tells the names")),
    );
    None
}

/// Three parts or more, with a point between them.
fn is_flatpak(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
    };
    text.len() <= 255 && text.split('.').count() >= 3 && text.split('.').all(part)
}

/// A snap, perhaps with an instance, perhaps with one of its programs.
fn is_snap(text: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
    };
    text.len() <= 255 && text.split('.').count() <= 2 && text.split('.').all(part)
}

/// Whatever a driver of the policy understands.
pub(super) fn json(value: Value<'_>) -> Option<Json> {
    Some(match value.shape() {
        Shape::Text(text) | Shape::DateTime(text) => Json::from(text),
        Shape::Boolean(flag) => Json::from(flag),
        Shape::Integer(number) => Json::from(i64::try_from(number).ok().or_else(|| {
            value.refuse(Invalid::new("this number is too large").help("put it in quotes"));
            None
        })?),
        Shape::Float(number) => Json::Number(Number::from_f64(number).or_else(|| {
            value.refuse(Invalid::new("this is not a number that a driver can be given").help("take it out"));
            None
        })?),
        Shape::Array => Json::Array(values::all(value.elements()?, json)?),
        Shape::Table => Json::Object(object(&mut value.table()?)?),
    })
}

fn object(table: &mut Table<'_>) -> Option<Map<String, Json>> {
    let read: Vec<Option<_>> =
        table.entries().into_iter().map(|(key, value)| Some((key.value.to_owned(), json(value)?))).collect();
    read.into_iter().collect()
}
