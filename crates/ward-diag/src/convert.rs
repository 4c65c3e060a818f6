//! Conversion of TOML values into Rust types.

use std::collections::BTreeMap;

use crate::{Spanned, TomlTable, TomlValue};

/// A type that can be read from a [`TomlValue`]. If the value doesn't fit, an implementation records a fault
/// through the methods of [`TomlValue`] and returns `None`.
pub trait FromValue<'a>: Sized {
    /// Reads the value, or records a fault and returns `None`.
    fn from_value(value: TomlValue<'a>) -> Option<Self>;
}

impl<'a> FromValue<'a> for TomlValue<'a> {
    fn from_value(value: TomlValue<'a>) -> Option<Self> {
        Some(value)
    }
}

impl<'a> FromValue<'a> for TomlTable<'a> {
    fn from_value(value: TomlValue<'a>) -> Option<Self> {
        value.table()
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(value: TomlValue<'a>) -> Option<Self> {
        value.text()
    }
}

impl FromValue<'_> for String {
    fn from_value(value: TomlValue<'_>) -> Option<Self> {
        value.text().map(str::to_owned)
    }
}

impl FromValue<'_> for bool {
    fn from_value(value: TomlValue<'_>) -> Option<Self> {
        value.boolean()
    }
}

impl FromValue<'_> for f64 {
    fn from_value(value: TomlValue<'_>) -> Option<Self> {
        value.number_in(f64::MIN..=f64::MAX)
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Spanned<T> {
    fn from_value(value: TomlValue<'a>) -> Option<Self> {
        let span = value.span();
        T::from_value(value).map(|read| Spanned::new(read, span))
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Vec<T> {
    fn from_value(value: TomlValue<'a>) -> Option<Self> {
        // Two steps, so that the faults of all elements are recorded, not only those of the first bad
        // element.
        let read: Vec<Option<T>> = value.elements()?.into_iter().map(T::from_value).collect();
        read.into_iter().collect()
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for BTreeMap<String, T> {
    fn from_value(value: TomlValue<'a>) -> Option<Self> {
        let entries = value.table()?.entries();
        let read: Vec<_> = entries
            .into_iter()
            .map(|(key, value)| Some((key.value.to_owned(), T::from_value(value)?)))
            .collect();
        read.into_iter().collect()
    }
}

macro_rules! whole_numbers {
    ($($number:ty),*) => {$(
        impl FromValue<'_> for $number {
            fn from_value(value: TomlValue<'_>) -> Option<Self> {
                let limits = i128::from(<$number>::MIN)..=i128::from(<$number>::MAX);
                value.integer_in(limits).and_then(|number| number.try_into().ok())
            }
        }
    )*};
}

whole_numbers!(u8, u16, u32, u64, i32, i64);
