//! Reading the arguments of drivers, which the policy language passes on unread.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::start_job::LaunchError;

/// The arguments of a driver: each is taken once, and what is left over at the end is a mistake.
pub(super) struct DriverArguments<'a> {
    /// For messages: ``driver `qemu` ``.
    driver: &'a str,
    remaining: BTreeMap<&'a str, &'a Value>,
}

impl<'a> DriverArguments<'a> {
    pub(super) fn new(of: &'a str, all: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Self {
        Self { driver: of, remaining: all.into_iter().map(|(key, value)| (key.as_str(), value)).collect() }
    }

    pub(super) fn take<T>(
        &mut self,
        key: &'a str,
        read: fn(&Value) -> Option<T>,
        wanted: &str,
    ) -> Result<Option<T>, LaunchError> {
        let Some(value) = self.remaining.remove(key) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(LaunchError::new(
                format!("{} does not understand `{key} = {value}`", self.driver),
                format!("`{key}` is {wanted}"),
            )),
        }
    }

    pub(super) fn text(&mut self, key: &'a str) -> Result<Option<String>, LaunchError> {
        self.take(key, text, "a text")
    }

    pub(super) fn texts(&mut self, key: &'a str) -> Result<Vec<String>, LaunchError> {
        Ok(self.take(key, texts, "a text or a list of texts")?.unwrap_or_default())
    }

    pub(super) fn require<T>(&self, key: &str, value: Option<T>) -> Result<T, LaunchError> {
        value
            .ok_or_else(|| LaunchError::new(format!("{} needs `{key}`", self.driver), format!("add `{key}`")))
    }

    /// Nothing may be left: a misspelt bound would be none.
    pub(super) fn reject_unknown(self, known: &str) -> Result<(), LaunchError> {
        match self.remaining.keys().next() {
            None => Ok(()),
            Some(key) => Err(LaunchError::new(
                format!("{} knows no `{key}`", self.driver),
                format!("it knows {known}"),
            )),
        }
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A text, or a number as text.
pub(super) fn text_or_number(value: &Value) -> Option<String> {
    text(value).or_else(|| value.as_u64().map(|number| number.to_string()))
}

pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(text_or_number).collect(),
        value => text_or_number(value).map(|text| vec![text]),
    }
}
