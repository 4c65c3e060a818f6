//! Questions about pieces of source.

use syn::{Attribute, Expr, Type};

/// The number of characters of the source that a change is named with.
const SHOWN_CHARS: usize = 70;

/// Returns whether an item is compiled only for tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let name = attribute.path().segments.last().map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some("test") => true,
            Some("cfg") => attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")),
            _ => false,
        }
    })
}

/// Returns whether an operand of a chain of `&&` is a `let`, whose names the rest of the chain uses.
pub(crate) fn contains_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => contains_let(&binary.left) || contains_let(&binary.right),
        _ => false,
    }
}

/// Returns the name of a type without its path and its arguments.
pub(crate) fn type_name(named: &Type) -> String {
    match named {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(reference) => Some(type_name(&reference.elem)),
        _ => None,
    }
    .unwrap_or_else(|| "_".to_owned())
}

/// Joins the lines of a piece of source.
pub(crate) fn compact(source: &str) -> String {
    source.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a piece of source that is too long for a name.
pub(crate) fn shorten(source: &str) -> String {
    if source.chars().count() <= SHOWN_CHARS {
        return source.to_owned();
    }
    source.chars().take(SHOWN_CHARS).chain(['…']).collect()
}
