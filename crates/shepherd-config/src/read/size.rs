//! Reads sizes and percentages, such as `"512MiB"` and `"150%"`.

use ward_diag::{InvalidValue, TomlValue, ValueKind, code};

use crate::raw::LimitSetting;

/// The units and their size in bytes.
const UNITS: [(&str, u64); 3] = [("KiB", KIB), ("MiB", MIB), ("GiB", GIB)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Largest percentage: a thousand processors at full load. More is a typing error.
const MAX_PERCENT: u32 = 100_000;

/// The allowed range of a size, and a usual value for help texts. A size that is too small mostly lacks its unit.
pub(super) struct SizeRange {
    least: u64,
    most: u64,
    usual: &'static str,
}

/// Range of memory limits. No program starts with less than the minimum.
pub(super) const MEMORY: SizeRange = SizeRange { least: MIB, most: 1 << 50, usual: "2GiB" };

/// Range of limits on the size of a file.
pub(super) const FILE: SizeRange = SizeRange { least: KIB, most: 1 << 50, usual: "100MiB" };

/// Range of limits on the output kept of a session. More could fill the disk.
pub(super) const OUTPUT: SizeRange = SizeRange { least: KIB, most: GIB, usual: "1MiB" };

/// Reads a size in a range: text with a unit, or a number of bytes.
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
            .help(format!("check the unit; a usual value is \"{usual}\"")),
    );
    None
}

/// Reads the memory of a virtual machine as a whole number of MiB.
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
                let message = format!("{} is not a size: {}", value.name(), wrong.problem);
                let invalid = InvalidValue::new(message).help(wrong.help);
                value.reject(match wrong.at {
                    Some(at) => invalid.at(at),
                    None => invalid,
                });
                None
            }
        },
        // A number that is too large for `u64` is above every limit.
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

struct SizeParseError {
    problem: &'static str,
    help: String,
    at: Option<std::ops::Range<usize>>,
}

fn parse_size(text: &str) -> Result<u64, SizeParseError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits).unwrap_or(("", text));
    let unit = rest.trim();
    let wrong = |problem, help: &str| SizeParseError { problem, help: help.to_owned(), at: None };
    if number.is_empty() {
        return Err(wrong("it does not start with a whole number", "write it like \"512MiB\" or \"2GiB\""));
    }
    if unit.starts_with(['.', ',']) {
        let help = "use a smaller unit: \"1536MiB\" for one and a half GiB";
        return Err(wrong("only whole numbers are allowed", help));
    }
    if unit.is_empty() {
        let help = "add `KiB`, `MiB` or `GiB`; a number of bytes has no quotes";
        return Err(wrong("the unit is missing", help));
    }
    let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let at = text.len() - rest.trim_start().len()..text.trim_end().len();
        return Err(SizeParseError {
            problem: "unknown unit",
            help: suggest_unit(number, unit),
            at: Some(at),
        });
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*length));
    bytes.ok_or_else(|| wrong("it is too large", "check the unit"))
}

/// Suggests the unit that was probably meant, by the first letter of `1G`, `1gb` or `1 GByte`.
fn suggest_unit(number: &str, unit: &str) -> String {
    let first = unit.chars().next().map(|first| first.to_ascii_uppercase());
    match UNITS.iter().find(|(name, _)| name.chars().next() == first) {
        Some((name, _)) if number.len() < 20 => format!("write \"{number}{name}\""),
        _ => "use `KiB`, `MiB` or `GiB`".to_owned(),
    }
}

/// Formats a size in the largest unit that divides it.
pub(crate) fn format_size(bytes: u64) -> String {
    let fits = |(_, length): &&(&str, u64)| bytes >= *length && bytes.is_multiple_of(*length);
    match UNITS.iter().rev().find(fits) {
        Some((name, length)) => format!("{}{name}", bytes / length),
        None => format!("{bytes} bytes"),
    }
}

/// Reads a percentage of processor time; `"150%"` is one and a half processors.
pub(super) fn read_percent(value: TomlValue<'_>) -> Option<u32> {
    let help = "write it like \"150%\", which is one and a half processors";
    if let ValueKind::Integer(number @ 1..=100_000) = value.kind() {
        let message = format!("{} needs a percent sign", value.name());
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
        let message = format!("{} must be a percentage from 1% to {MAX_PERCENT}%", value.name());
        value.reject(InvalidValue::new(message).help(help));
    }
    percent
}

pub(super) fn read_count(value: TomlValue<'_>, least: u32, most: u32) -> Option<u32> {
    let number = value.integer_in(i128::from(least)..=i128::from(most))?;
    u32::try_from(number).ok()
}

/// Reads a limit, or "unlimited" to remove the limit of the defaults.
pub(super) fn read_limit<T>(
    value: TomlValue<'_>,
    read: impl FnOnce(TomlValue<'_>) -> Option<T>,
) -> Option<LimitSetting<T>> {
    match value.kind() {
        ValueKind::Text("unlimited") => Some(LimitSetting::Unlimited),
        _ => read(value).map(LimitSetting::Limited),
    }
}
