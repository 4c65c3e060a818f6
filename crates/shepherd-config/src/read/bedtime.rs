//! Reads the `bedtime` of a profile.

use shepherd_core::policy::{NightHours, NightHoursError};
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::key_advice::{self, PolicySection};
use super::{time, windows};
use crate::raw::{NightSetting, RawBedtime, RawBedtimeNights, SpannedName};

const WRITE_NIGHT: &str = "write it like \"20:00-07:00\", or \"none\" for no bedtime";

const WRITE_BEDTIME: &str = "write `bedtime = \"20:00-07:00\"` for all nights, or \
                             `bedtime = { school_nights = \"20:00-07:00\", weekends = \"21:30-08:00\" }`";

/// The fault of a text that isn't the hours of a night.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidNight {
    /// The fault, such as "is not a bedtime: it is longer than 16 hours".
    pub message: String,
    pub help: String,
}

/// Parses a night such as `20:00-07:00`.
///
/// # Errors
/// Fails if the text has another form, or a bedtime can't have these hours.
pub fn parse_night(text: &str) -> Result<NightHours, InvalidNight> {
    let times = text.split_once('-').and_then(|(start, end)| {
        Some((time::parse_time_of_day(start.trim()).ok()?, time::parse_time_of_day(end.trim()).ok()?))
    });
    let Some((start, end)) = times else {
        let help = windows::suggest_hours(text).map(|(start, end)| format!("write \"{start}-{end}\""));
        return Err(InvalidNight {
            message: "is not a bedtime".to_owned(),
            help: help.unwrap_or_else(|| WRITE_NIGHT.to_owned()),
        });
    };
    NightHours::new(start, end).map_err(|error| {
        let help = match error {
            NightHoursError::Empty => WRITE_NIGHT.to_owned(),
            NightHoursError::BeginsInTheMorning if NightHours::new(end, start).is_ok() => {
                format!("the times seem to be swapped; write \"{end}-{start}\"")
            }
            NightHoursError::BeginsInTheMorning => {
                "a bedtime begins between 12:00 and 06:00; hours by day are `windows` of the entries"
                    .to_owned()
            }
            NightHoursError::TooLong => {
                "check the times; to close a whole day, write `[[exceptions]]` with `closed = true`"
                    .to_owned()
            }
        };
        InvalidNight { message: format!("is not a bedtime: {error}"), help }
    })
}

/// Reads a night for all nights, or a table of nights by kind and by mode.
pub(super) fn read_bedtime(value: TomlValue<'_>) -> Option<RawBedtime> {
    match value.kind() {
        ValueKind::Text(_) => {
            let night = read_night(value)?;
            let nights = RawBedtimeNights { school_nights: Some(night), weekends: Some(night) };
            Some(RawBedtime { nights, by_mode: Vec::new() })
        }
        ValueKind::Table => {
            let mut table = value.table()?;
            let faults = table.faults();
            let modes =
                table.optional_with("modes", |value| value.inline_table("{ holiday = \"22:00-09:00\" }"));
            let by_mode = modes.map(read_nights_by_mode).unwrap_or_default();
            let (nights, span, found) = (read_nights(&mut table), table.span(), faults.len());
            let missing = ["school_nights", "weekends"].into_iter().find(|key| table.key_span(key).is_none());
            key_advice::finish_table(table, PolicySection::Bedtime);
            // A misspelt key isn't reported as missing as well.
            if let Some(missing) = missing.filter(|_| faults.len() == found) {
                let help =
                    format!("add `{missing} = \"21:30-08:00\"`, or `{missing} = \"none\"` for no bedtime");
                let message = format!("this bedtime has no `{missing}`");
                faults.push(ConfigFault::new(code::MISSING_KEY, span, message).help(help));
            }
            Some(RawBedtime { nights, by_mode })
        }
        _ => {
            let message = format!("{} must be the hours of a night", value.name());
            value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(WRITE_BEDTIME));
            None
        }
    }
}

fn read_nights(table: &mut TomlTable<'_>) -> RawBedtimeNights {
    RawBedtimeNights {
        school_nights: table.optional_with("school_nights", read_night),
        weekends: table.optional_with("weekends", read_night),
    }
}

fn read_nights_by_mode(mut table: TomlTable<'_>) -> Vec<(SpannedName, RawBedtimeNights)> {
    let modes = table.entries().into_iter();
    modes.filter_map(|(mode, value)| Some((mode.map(str::to_owned), read_nights_of_mode(value)?))).collect()
}

fn read_nights_of_mode(value: TomlValue<'_>) -> Option<RawBedtimeNights> {
    if !matches!(value.kind(), ValueKind::Table) {
        let night = read_night(value)?;
        return Some(RawBedtimeNights { school_nights: Some(night), weekends: Some(night) });
    }
    let mut table = value.table()?;
    let nights = read_nights(&mut table);
    key_advice::finish_table(table, PolicySection::ModeBedtime);
    Some(nights)
}

/// Reads a night such as `"20:00-07:00"`, or `"none"`.
fn read_night(value: TomlValue<'_>) -> Option<NightSetting> {
    let ValueKind::Text(text) = value.kind() else {
        let message = format!("{} must be the hours of a night", value.name());
        value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(WRITE_NIGHT));
        return None;
    };
    if text == "none" {
        return Some(NightSetting::NoBedtime);
    }
    match parse_night(text) {
        Ok(night) => Some(NightSetting::Hours(night)),
        Err(error) => {
            value.reject(InvalidValue::new(format!("{} {}", value.quoted(), error.message)).help(error.help));
            None
        }
    }
}
