//! Canonical JSON (RFC 8785), and the part of JSON that a record may use.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};
use thiserror::Error;

/// The largest whole number that every JSON reader keeps exactly (RFC 7493): 2^53 - 1.
pub const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// How deep a record may nest. Records are flat; readers in other languages have small stacks.
pub const MAX_DEPTH: usize = 32;

/// A value that JSON tools disagree about, so that a record can't carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Tools print fractions differently, and a hash is over the printed form.
    #[error("a record carries whole numbers only: write the fraction as a string")]
    Fraction,
    /// Beyond [`MAX_SAFE_INTEGER`] readers round.
    #[error("a whole number in a record lies within ±(2^53 - 1): write larger ones as strings")]
    TooLarge,
    /// Deeper than [`MAX_DEPTH`].
    #[error("a record nests at most {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The beginning of a JSON object, without its end.
    #[error("the line ends in the middle of a JSON object")]
    CutOff,
    /// No JSON object at all.
    #[error("not a JSON object: {0}")]
    NotJson(String),
    /// JSON, with something no record carries: a name twice, a fraction, a huge number.
    #[error("{0}")]
    NotRecord(String),
}

impl ParseError {
    /// A member of the chain that a record must have.
    pub(crate) fn missing(name: &str) -> Self {
        Self::NotRecord(format!("the member `{name}` is missing or malformed"))
    }
}

/// The canonical form of an object: names sorted by UTF-16 units, no white space, one way to
/// write each string and number.
///
/// # Errors
/// When a value is outside of what a record may carry.
pub fn canonical_json(object: &Map<String, Value>) -> Result<Vec<u8>, ValueError> {
    check_object(object, 1)?;
    Ok(serde_json_canonicalizer::to_vec(object)
        .expect("checked values have finite numbers and a map has no name twice"))
}

fn check_object(object: &Map<String, Value>, depth: usize) -> Result<(), ValueError> {
    check_depth(depth)?;
    object.values().try_for_each(|value| check_value(value, depth + 1))
}

fn check_value(value: &Value, depth: usize) -> Result<(), ValueError> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => check_integer(whole),
            (None, Some(_)) => Err(ValueError::TooLarge),
            (None, None) => Err(ValueError::Fraction),
        },
        Value::Array(items) => {
            check_depth(depth)?;
            items.iter().try_for_each(|item| check_value(item, depth + 1))
        }
        Value::Object(object) => check_object(object, depth),
    }
}

fn check_integer(whole: i64) -> Result<(), ValueError> {
    if whole.unsigned_abs() > MAX_SAFE_INTEGER.unsigned_abs() {
        return Err(ValueError::TooLarge);
    }
    Ok(())
}

fn check_depth(depth: usize) -> Result<(), ValueError> {
    if depth > MAX_DEPTH {
        return Err(ValueError::TooDeep);
    }
    Ok(())
}

/// Reads one JSON object strictly: no name twice, whole numbers only, no lone surrogates.
///
/// # Errors
/// When the text is anything else.
pub fn parse_object(text: &[u8]) -> Result<Map<String, Value>, ParseError> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(ParseError::NotJson("the line is empty".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth: 1 }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ParseError::NotJson("it is another JSON value".to_owned())),
        Err(error) => Err(match error.classify() {
            Category::Eof => ParseError::CutOff,
            Category::Data => ParseError::NotRecord(error.to_string()),
            Category::Syntax | Category::Io => ParseError::NotJson(error.to_string()),
        }),
    }
}

/// Builds a [`Value`] that sits at this depth (1 is the record itself).
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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
        self.visit_i64(i64::try_from(value).map_err(|_| E::custom(ValueError::TooLarge))?)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Value, E> {
        Err(E::custom(ValueError::Fraction))
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
                return Err(A::Error::custom(format_args!("the member `{name}` is there twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
