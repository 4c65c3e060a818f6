//! Sizes and shares, as people write them: `"512MiB"`, `"150%"`.

use ward_diag::{Invalid, Shape, Value, code};

use crate::raw::Bound;

/// The units, and how many bytes each is.
const UNITS: [(&str, u64); 3] = [("KiB", KIB), ("MiB", MIB), ("GiB", GIB)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A thousand processors, each used to the full. More than that is a slip of the finger.
const MAX_PERCENT: u32 = 100_000;

/// What a size can be. Almost every one that is too small lacks its unit.
pub(super) struct Sizes {
    least: u64,
    most: u64,
    usual: &'static str,
}

/// Memory: no program starts with less than the least.
pub(super) const MEMORY: Sizes = Sizes { least: MIB, most: 1 << 50, usual: "2GiB" };

/// One file.
pub(super) const FILE: Sizes = Sizes { least: KIB, most: 1 << 50, usual: "100MiB" };

/// Output that is kept of one session. More would be a way to fill the disk.
pub(super) const OUTPUT: Sizes = Sizes { least: KIB, most: GIB, usual: "1MiB" };

/// A size within its limits: text with a unit, or bytes.
pub(super) fn size(value: Value<'_>, limits: &Sizes) -> Option<u64> {
    let bytes = bytes(value)?;
    let usual = limits.usual;
    let bound = if bytes < limits.least {
        format!("must be at least {}", format_size(limits.least))
    } else if bytes > limits.most {
        format!("can't be more than {}", format_size(limits.most))
    } else {
        return Some(bytes);
    };
    let message = format!("{} {bound}", value.name());
    value.refuse(
        Invalid::new(message).code(code::OUT_OF_RANGE).help(format!("check the unit; \"{usual}\" is usual")),
    );
    None
}

/// Memory of a machine, which comes in whole MiB: their number.
pub(super) fn whole_mebibytes(value: Value<'_>) -> Option<u64> {
    let bytes = size(value, &MEMORY)?;
    if !bytes.is_multiple_of(MIB) {
        let message = format!("{} must be a whole number of MiB", value.name());
        value.refuse(Invalid::new(message).help(format!("write \"{}MiB\"", bytes.div_ceil(MIB))));
        return None;
    }
    Some(bytes / MIB)
}

fn bytes(value: Value<'_>) -> Option<u64> {
    match value.shape() {
        Shape::Text(text) => match parse_size(text) {
            Ok(bytes) => Some(bytes),
            Err(wrong) => {
                let message = format!("{} is no size: {}", value.name(), wrong.problem);
                let invalid = Invalid::new(message).help(wrong.help);
                value.refuse(match wrong.at {
                    Some(at) => invalid.at(at),
                    None => invalid,
                });
                None
            }
        },
        // What is beyond all numbers is beyond every limit, too.
        Shape::Integer(bytes) => Some(u64::try_from(bytes.max(0)).unwrap_or(u64::MAX)),
        _ => {
            let message = format!("{} must be a size", value.name());
            value.refuse(
                Invalid::new(message)
                    .code(code::WRONG_TYPE)
                    .help("write it like \"512MiB\" or \"2GiB\", or as a number of bytes"),
            );
            None
        }
    }
}

/// Why a text is no size.
struct NoSize {
    problem: &'static str,
    help: String,
    at: Option<std::ops::Range<usize>>,
}

/// A whole number and its unit.
fn parse_size(text: &str) -> Result<u64, NoSize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits).unwrap_or(("", text));
    let unit = rest.trim();
    let wrong = |problem, help: &str| NoSize { problem, help: help.to_owned(), at: None };
    if number.is_empty() {
        return Err(wrong("it does not begin with a whole number", "write it like \"512MiB\" or \"2GiB\""));
    }
    if unit.starts_with(['.', ',']) {
        let help = "use a smaller unit: \"1536MiB\" for one and a half GiB";
        return Err(wrong("it has whole numbers only", help));
    }
    if unit.is_empty() {
        let help = "add `KiB`, `MiB` or `GiB`; a number of bytes has no quotes";
        return Err(wrong("the unit is missing", help));
    }
    let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let at = text.len() - rest.trim_start().len()..text.trim_end().len();
        return Err(NoSize { problem: "there is no such unit", help: meant(number, unit), at: Some(at) });
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*length));
    bytes.ok_or_else(|| wrong("it is larger than anything there is", "check the unit"))
}

/// What was probably meant: `1G`, `1gb` and `1 GByte` all begin with the same letter.
fn meant(number: &str, unit: &str) -> String {
    let first = unit.chars().next().map(|first| first.to_ascii_uppercase());
    match UNITS.iter().find(|(name, _)| name.chars().next() == first) {
        Some((name, _)) if number.len() < 20 => format!("write \"{number}{name}\""),
        _ => "use `KiB`, `MiB` or `GiB`".to_owned(),
    }
}

/// A size in the largest unit that leaves nothing over.
pub(crate) fn format_size(bytes: u64) -> String {
    let fits = |(_, length): &&(&str, u64)| bytes >= *length && bytes.is_multiple_of(*length);
    match UNITS.iter().rev().find(fits) {
        Some((name, length)) => format!("{}{name}", bytes / length),
        None => format!("{bytes} bytes"),
    }
}

/// A share of the processors: `"150%"` is one and a half of them.
pub(super) fn percent(value: Value<'_>) -> Option<u32> {
    let help = "write it like \"150%\": that is one and a half processors";
    if let Shape::Integer(number @ 1..=100_000) = value.shape() {
        let message = format!("{} needs its unit", value.name());
        value.refuse(Invalid::new(message).code(code::WRONG_TYPE).help(format!("write \"{number}%\"")));
        return None;
    }
    let text = match value.shape() {
        Shape::Text(text) => text,
        _ => "",
    };
    let number = text.strip_suffix('%').map(str::trim_end);
    let plain = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let percent = plain.and_then(|digits| digits.parse().ok());
    let percent = percent.filter(|percent| (1..=MAX_PERCENT).contains(percent));
    if percent.is_none() {
        let message =
            format!("{} must be a share of the processors, from 1% to {MAX_PERCENT}%", value.name());
        value.refuse(Invalid::new(message).help(help));
    }
    percent
}

/// A number of something.
pub(super) fn count(value: Value<'_>, least: u32, most: u32) -> Option<u32> {
    let number = value.integer_in(i128::from(least)..=i128::from(most))?;
    u32::try_from(number).ok()
}

/// A bound, or "unlimited" where the defaults have one.
pub(super) fn bound<T>(value: Value<'_>, read: impl FnOnce(Value<'_>) -> Option<T>) -> Option<Bound<T>> {
    match value.shape() {
        Shape::Text("unlimited") => Some(Bound::Unlimited),
        _ => read(value).map(Bound::Limited),
    }
}
