//! Reads the arguments of drivers, which the policy language passes on unread.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::launch_error::LaunchError;

/// The arguments of a driver. Each is taken once; an argument that is left at the end is unknown.
pub(super) struct DriverArguments<'a> {
    /// The driver as messages name it: ``driver `qemu` ``.
    driver: &'a str,
    remaining: BTreeMap<&'a str, &'a Value>,
}

impl<'a> DriverArguments<'a> {
    pub(super) fn new(driver: &'a str, all: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Self {
        Self { driver, remaining: all.into_iter().map(|(key, value)| (key.as_str(), value)).collect() }
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
                format!("invalid value `{key} = {value}` for {}", self.driver),
                format!("`{key}` must be {wanted}"),
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

    /// Fails if an argument is left: a misspelt limit would not limit anything.
    pub(super) fn reject_unknown(self, known: &str) -> Result<(), LaunchError> {
        match self.remaining.keys().next() {
            None => Ok(()),
            Some(key) => Err(LaunchError::new(
                format!("unknown key `{key}` for {}", self.driver),
                format!("valid keys are {known}"),
            )),
        }
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Reads a text, or a number as text.
pub(super) fn text_or_number(value: &Value) -> Option<String> {
    text(value).or_else(|| value.as_u64().map(|number| number.to_string()))
}

pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(text_or_number).collect(),
        value => text_or_number(value).map(|text| vec![text]),
    }
}
