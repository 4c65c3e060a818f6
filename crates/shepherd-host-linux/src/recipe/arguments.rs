//! Reading the arguments of drivers, which the policy language passes on unread.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::start::Fault;

/// The arguments of a driver: each is taken once, and what is left over at the end is a mistake.
pub(super) struct Arguments<'a> {
    /// For messages: ``driver `qemu` ``.
    of: &'a str,
    left: BTreeMap<&'a str, &'a Value>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(of: &'a str, all: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Self {
        Self { of, left: all.into_iter().map(|(key, value)| (key.as_str(), value)).collect() }
    }

    pub(super) fn take<T>(
        &mut self,
        key: &'a str,
        read: fn(&Value) -> Option<T>,
        wanted: &str,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.left.remove(key) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Fault::new(
                format!("{} does not understand `{key} = {value}`", self.of),
                format!("`{key}` is {wanted}"),
            )),
        }
    }

    pub(super) fn text(&mut self, key: &'a str) -> Result<Option<String>, Fault> {
        self.take(key, text, "a text")
    }

    pub(super) fn texts(&mut self, key: &'a str) -> Result<Vec<String>, Fault> {
        Ok(self.take(key, texts, "a text or a list of texts")?.unwrap_or_default())
    }

    pub(super) fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T, Fault> {
        value.ok_or_else(|| Fault::new(format!("{} needs `{key}`", self.of), format!("add `{key}`")))
    }

    /// Nothing may be left: a misspelt bound would be none.
    pub(super) fn finish(self, known: &str) -> Result<(), Fault> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(key) => {
                Err(Fault::new(format!("{} knows no `{key}`", self.of), format!("it knows {known}")))
            }
        }
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A text, or a number as text.
pub(super) fn word(value: &Value) -> Option<String> {
    text(value).or_else(|| value.as_u64().map(|number| number.to_string()))
}

pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(word).collect(),
        value => word(value).map(|text| vec![text]),
    }
}
