//! Sizes and shares, as people write them: `"512MiB"`, `"150%"`.

use ward_diag::{InvalidValue, TomlValue, ValueKind, code};

use crate::raw::LimitSetting;

/// The units, and how many bytes each is.
const UNITS: [(&str, u64); 3] = [("KiB", KIB), ("MiB", MIB), ("GiB", GIB)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A thousand processors, each used to the full. More than that is a slip of the finger.
const MAX_PERCENT: u32 = 100_000;

/// What a size can be. Almost every one that is too small lacks its unit.
pub(super) struct SizeRange {
    least: u64,
    most: u64,
    usual: &'static str,
}

/// Memory: no program starts with less than the least.
pub(super) const MEMORY: SizeRange = SizeRange { least: MIB, most: 1 << 50, usual: "2GiB" };

/// One file.
pub(super) const FILE: SizeRange = SizeRange { least: KIB, most: 1 << 50, usual: "100MiB" };

/// Output that is kept of one session. More would be a way to fill the disk.
pub(super) const OUTPUT: SizeRange = SizeRange { least: KIB, most: GIB, usual: "1MiB" };

/// A size within its limits: text with a unit, or bytes.
pub(super) fn read_size(value: TomlValue<'_>, limits: &SizeRange) -> Option<u64> {
    let bytes = read_bytes(value)?;
    let usual = limits.usual;
    let bound = if bytes < limits.least {
        format!("must be at least {}", format_size(limits.least))
    } else if bytes > limits.most {
        format!("can't be more than {}", format_size(limits.most))
    } else {
        return Some(bytes);
    };
    let message = format!("{} {bound}", value.name());
    value.reject(
        InvalidValue::new(message)
            .code(code::OUT_OF_RANGE)
            .help(format!("check the unit; \"{usual}\" is usual")),
    );
    None
}

/// Memory of a machine, which comes in whole MiB: their number.
pub(super) fn read_whole_mebibytes(value: TomlValue<'_>) -> Option<u64> {
    let bytes = read_size(value, &MEMORY)?;
    if !bytes.is_multiple_of(MIB) {
        let message = format!("{} must be a whole number of MiB", value.name());
        value.reject(InvalidValue::new(message).help(format!("write \"{}MiB\"", bytes.div_ceil(MIB))));
        return None;
    }
    Some(bytes / MIB)
}

fn read_bytes(value: TomlValue<'_>) -> Option<u64> {
    match value.kind() {
        ValueKind::Text(text) => match parse_size(text) {
            Ok(bytes) => Some(bytes),
            Err(wrong) => {
                let message = format!("{} is no size: {}", value.name(), wrong.problem);
                let invalid = InvalidValue::new(message).help(wrong.help);
                value.reject(match wrong.at {
                    Some(at) => invalid.at(at),
                    None => invalid,
                });
                None
            }
        },
        // What is beyond all numbers is beyond every limit, too.
        ValueKind::Integer(bytes) => Some(u64::try_from(bytes.max(0)).unwrap_or(u64::MAX)),
        _ => {
            let message = format!("{} must be a size", value.name());
            value.reject(
                InvalidValue::new(message)
                    .code(code::WRONG_TYPE)
                    .help("write it like \"512MiB\" or \"2GiB\", or as a number of bytes"),
            );
            None
        }
    }
}

/// Why a text is no size.
struct SizeParseError {
    problem: &'static str,
    help: String,
    at: Option<std::ops::Range<usize>>,
}

/// A whole number and its unit.
fn parse_size(text: &str) -> Result<u64, SizeParseError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits).unwrap_or(("", text));
    let unit = rest.trim();
    let wrong = |problem, help: &str| SizeParseError { problem, help: help.to_owned(), at: None };
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
        return Err(SizeParseError {
            problem: "there is no such unit",
            help: suggest_unit(number, unit),
            at: Some(at),
        });
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*length));
    bytes.ok_or_else(|| wrong("it is larger than anything there is", "check the unit"))
}

/// What was probably meant: `1G`, `1gb` and `1 GByte` all begin with the same letter.
fn suggest_unit(number: &str, unit: &str) -> String {
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
pub(super) fn read_percent(value: TomlValue<'_>) -> Option<u32> {
    let help = "write it like \"150%\": that is one and a half processors";
    if let ValueKind::Integer(number @ 1..=100_000) = value.kind() {
        let message = format!("{} needs its unit", value.name());
        value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(format!("write \"{number}%\"")));
        return None;
    }
    let text = match value.kind() {
        ValueKind::Text(text) => text,
        _ => "",
    };
    let number = text.strip_suffix('%').map(str::trim_end);
    let plain = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let percent = plain.and_then(|digits| digits.parse().ok());
    let percent = percent.filter(|percent| (1..=MAX_PERCENT).contains(percent));
    if percent.is_none() {
        let message =
            format!("{} must be a share of the processors, from 1% to {MAX_PERCENT}%", value.name());
        value.reject(InvalidValue::new(message).help(help));
    }
    percent
}

/// A number of something.
pub(super) fn read_count(value: TomlValue<'_>, least: u32, most: u32) -> Option<u32> {
    let number = value.integer_in(i128::from(least)..=i128::from(most))?;
    u32::try_from(number).ok()
}

/// A bound, or "unlimited" where the defaults have one.
pub(super) fn read_limit<T>(
    value: TomlValue<'_>,
    read: impl FnOnce(TomlValue<'_>) -> Option<T>,
) -> Option<LimitSetting<T>> {
    match value.kind() {
        ValueKind::Text("unlimited") => Some(LimitSetting::Unlimited),
        _ => read(value).map(LimitSetting::Limited),
    }
}
