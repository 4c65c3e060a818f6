//! The values that a function's body is replaced with, guessed from the return type.
//!
//! A guess may be wrong: the compiler then rejects the mutant, and it isn't counted.

use syn::{GenericArgument, Path, PathArguments, ReturnType, Type, TypeParamBound};

const DEFAULT: &str = "Default::default()";

/// The bodies that replace a function's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReplacementBody {
    /// The function returns one of these early.
    Values(Vec<String>),
    /// The function returns an opaque iterator, which is cut to nothing.
    EmptyIterator,
    /// The function returns another opaque type, or never returns.
    None,
}

/// Returns the bodies that replace a function with this return type.
pub(crate) fn replacement_body(output: &ReturnType) -> ReplacementBody {
    let ReturnType::Type(_, returned) = output else { return ReplacementBody::Values(vec!["()".to_owned()]) };
    match &**returned {
        Type::Never(_) => ReplacementBody::None,
        Type::ImplTrait(opaque) => {
            let mut traits = opaque.bounds.iter().filter_map(|bound| match bound {
                TypeParamBound::Trait(bound) => last_name(&bound.path),
                _ => None,
            });
            if traits.next().as_deref() == Some("Iterator") && traits.next().is_none() {
                ReplacementBody::EmptyIterator
            } else {
                ReplacementBody::None
            }
        }
        returned => ReplacementBody::Values(values(returned)),
    }
}

fn values(returned: &Type) -> Vec<String> {
    match returned {
        Type::Path(path) if path.qself.is_none() => path_values(&path.path),
        Type::Tuple(tuple) => combinations(&tuple.elems.iter().map(values).collect::<Vec<_>>()),
        Type::Array(array) => {
            values(&array.elem).iter().map(|value| format!("std::array::from_fn(|_| {value})")).collect()
        }
        Type::Paren(inner) => values(&inner.elem),
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => texts(&["\"\"", "\"xyzzy\""]),
            Type::Slice(slice) => {
                let one = values(&slice.elem).into_iter().map(|value| format!("Vec::leak(vec![{value}])"));
                std::iter::once("Vec::leak(Vec::new())".to_owned()).chain(one).collect()
            }
            inner => values(inner).iter().map(|value| format!("Box::leak(Box::new({value}))")).collect(),
        },
        _ => texts(&[DEFAULT]),
    }
}

fn path_values(path: &Path) -> Vec<String> {
    let Some(name) = last_name(path) else { return texts(&[DEFAULT]) };
    let arguments = type_arguments(path);
    let inner =
        |index: usize| arguments.get(index).map_or_else(|| texts(&[DEFAULT]), |argument| values(argument));
    let wrapped = |with: &str| inner(0).iter().map(|value| format!("{with}({value})")).collect::<Vec<_>>();
    match name.as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => texts(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => texts(&["0", "1", "-1"]),
        "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
        "char" => texts(&["'x'", DEFAULT]),
        "String" => texts(&["String::new()", "\"xyzzy\".into()"]),
        "Option" => std::iter::once("None".to_owned()).chain(wrapped("Some")).collect(),
        "Result" => wrapped("Ok"),
        "Box" | "Rc" | "Arc" => wrapped(&format!("{name}::new")),
        "Cow" => inner_cow(&arguments),
        "Vec" | "VecDeque" | "BTreeSet" | "HashSet" | "BinaryHeap" => {
            let one = inner(0).into_iter().map(|value| format!("[{value}].into_iter().collect()"));
            std::iter::once(DEFAULT.to_owned()).chain(one).collect()
        }
        "BTreeMap" | "HashMap" => {
            let pairs = combinations(&[inner(0), inner(1)]);
            let one = pairs.into_iter().map(|pair| format!("[{pair}].into_iter().collect()"));
            std::iter::once(DEFAULT.to_owned()).chain(one).collect()
        }
        _ => texts(&[DEFAULT]),
    }
}

/// Returns the owned values of a `Cow`.
fn inner_cow(arguments: &[&Type]) -> Vec<String> {
    match arguments.first() {
        Some(Type::Path(path)) if path.path.is_ident("str") => {
            texts(&["std::borrow::Cow::Borrowed(\"\")", "std::borrow::Cow::Borrowed(\"xyzzy\")"])
        }
        _ => texts(&[DEFAULT]),
    }
}

/// Returns every tuple with one value of each list.
fn combinations(lists: &[Vec<String>]) -> Vec<String> {
    let mut tuples = vec![String::new()];
    for list in lists {
        tuples = tuples
            .iter()
            .flat_map(|start| list.iter().map(move |value| format!("{start}{value}, ")))
            .collect();
    }
    tuples.into_iter().map(|inner| format!("({})", inner.trim_end())).collect()
}

fn type_arguments(path: &Path) -> Vec<&Type> {
    let Some(PathArguments::AngleBracketed(arguments)) =
        path.segments.last().map(|segment| &segment.arguments)
    else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(argument) => Some(argument),
        _ => None,
    });
    types.collect()
}

fn last_name(path: &Path) -> Option<String> {
    path.segments.last().map(|segment| segment.ident.to_string())
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, expected: &[&str]) {
        let output: ReturnType = syn::parse_str(output).unwrap();
        assert_eq!(replacement_body(&output), ReplacementBody::Values(texts(expected)));
    }

    #[test]
    fn values_follow_from_the_return_type() {
        check("", &["()"]);
        check("-> bool", &["true", "false"]);
        check("-> i64", &["0", "1", "-1"]);
        check("-> &'static str", &["\"\"", "\"xyzzy\""]);
        check("-> Option<bool>", &["None", "Some(true)", "Some(false)"]);
        check("-> io::Result<()>", &["Ok(())"]);
        check("-> fmt::Result", &["Ok(Default::default())"]);
        check("-> (bool, Policy)", &["(true, Default::default(),)", "(false, Default::default(),)"]);
        check(
            "-> Vec<u8>",
            &["Default::default()", "[0].into_iter().collect()", "[1].into_iter().collect()"],
        );
        check("-> &Policy", &["Box::leak(Box::new(Default::default()))"]);
    }

    #[test]
    fn only_plain_opaque_iterators_can_be_emptied() {
        let body = |output: &str| replacement_body(&syn::parse_str(output).unwrap());
        assert_eq!(body("-> impl Iterator<Item = u8> + use<'a>"), ReplacementBody::EmptyIterator);
        assert_eq!(body("-> impl Iterator<Item = u8> + Clone"), ReplacementBody::None);
        assert_eq!(body("-> impl Fn(u8) -> u8"), ReplacementBody::None);
        assert_eq!(body("-> !"), ReplacementBody::None);
    }
}
