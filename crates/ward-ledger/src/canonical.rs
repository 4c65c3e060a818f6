//! Canonical JSON (RFC 8785), restricted to the values that a record may contain.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};
use thiserror::Error;

/// The largest whole number that every JSON reader represents exactly (RFC 7493): 2^53 - 1.
pub const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The maximum depth of nested arrays and objects in a record. Records are usually flat, and readers in other
/// languages may have small stacks.
pub const MAX_DEPTH: usize = 32;

/// The error for a value that JSON tools don't agree about, so a record can't contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JsonValueError {
    /// The value is a fraction. Tools print fractions differently, and the hash is computed over the printed
    /// form.
    #[error("a record can't contain fractions; write the number as a string")]
    Fraction,
    /// The value is a whole number beyond [`MAX_SAFE_INTEGER`], which some readers would round.
    #[error("a record can't contain whole numbers beyond ±(2^53 - 1); write the number as a string")]
    TooLarge,
    /// The value is nested more deeply than [`MAX_DEPTH`].
    #[error("a record can be nested at most {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// The error for a line that is not a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordParseError {
    /// The line contains only the beginning of a JSON object.
    #[error("the line ends in the middle of a JSON object")]
    UnexpectedEnd,
    /// The line is not a JSON object.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// The line is a JSON object with something that a record can't contain, such as a duplicate name or a
    /// fraction.
    #[error("{0}")]
    NotRecord(String),
}

impl RecordParseError {
    /// Creates the error for a member of the chain that is missing or malformed.
    pub(crate) fn missing_member(name: &str) -> Self {
        Self::NotRecord(format!("the member `{name}` is missing or malformed"))
    }
}

/// Returns the canonical form of an object: names sorted by UTF-16 units, no white space, and exactly one way
/// to write each string and number.
///
/// # Errors
/// Fails if the object contains a value that a record can't contain.
pub fn canonical_json(object: &Map<String, Value>) -> Result<Vec<u8>, JsonValueError> {
    check_object(object, 1)?;
    Ok(serde_json_canonicalizer::to_vec(object)
        .expect("checked values have finite numbers and a map has no name twice"))
}

fn check_object(object: &Map<String, Value>, depth: usize) -> Result<(), JsonValueError> {
    check_depth(depth)?;
    object.values().try_for_each(|value| check_value(value, depth + 1))
}

fn check_value(value: &Value, depth: usize) -> Result<(), JsonValueError> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => check_integer(whole),
            (None, Some(_)) => Err(JsonValueError::TooLarge),
            (None, None) => Err(JsonValueError::Fraction),
        },
        Value::Array(items) => {
            check_depth(depth)?;
            items.iter().try_for_each(|item| check_value(item, depth + 1))
        }
        Value::Object(object) => check_object(object, depth),
    }
}

fn check_integer(whole: i64) -> Result<(), JsonValueError> {
    if whole.unsigned_abs() > MAX_SAFE_INTEGER.unsigned_abs() {
        return Err(JsonValueError::TooLarge);
    }
    Ok(())
}

fn check_depth(depth: usize) -> Result<(), JsonValueError> {
    if depth > MAX_DEPTH {
        return Err(JsonValueError::TooDeep);
    }
    Ok(())
}

/// Parses a JSON object strictly: no duplicate names, whole numbers only, no lone surrogates.
///
/// # Errors
/// Fails if the text is anything else.
pub fn parse_object(text: &[u8]) -> Result<Map<String, Value>, RecordParseError> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(RecordParseError::NotJson("the line is empty".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value =
        StrictJsonSeed { depth: 1 }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(RecordParseError::NotJson("it is a different JSON value".to_owned())),
        Err(error) => Err(match error.classify() {
            Category::Eof => RecordParseError::UnexpectedEnd,
            Category::Data => RecordParseError::NotRecord(error.to_string()),
            Category::Syntax | Category::Io => RecordParseError::NotJson(error.to_string()),
        }),
    }
}

/// A deserialiser for a [`Value`] at a depth, where 1 is the record itself.
#[derive(Clone, Copy)]
struct StrictJsonSeed {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for StrictJsonSeed {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJsonSeed {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        check_integer(value).map_err(E::custom)?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.visit_i64(i64::try_from(value).map_err(|_| E::custom(JsonValueError::TooLarge))?)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Value, E> {
        Err(E::custom(JsonValueError::Fraction))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        check_depth(self.depth).map_err(A::Error::custom)?;
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(Self { depth: self.depth + 1 })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        check_depth(self.depth).map_err(A::Error::custom)?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Self { depth: self.depth + 1 })?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the member `{name}` occurs twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
