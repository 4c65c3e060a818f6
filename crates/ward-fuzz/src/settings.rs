//! Reads the duration and the seed of a run from the environment of the test.

use std::time::Duration;

/// Seconds that a target runs in the normal tests.
pub const DEFAULT_SECONDS: u64 = 2;

/// Environment variable with the number of seconds for each target.
pub const SECONDS_VARIABLE: &str = "WARD_FUZZ_SECONDS";

/// Environment variable with the seed, a whole number.
pub const SEED_VARIABLE: &str = "WARD_FUZZ_SEED";

/// Seed of the normal tests. It is fixed so that a failure appears on every machine.
const DEFAULT_SEED: u64 = 1;

/// Reads both variables through `variable`. A value that isn't a number is an error instead of being ignored.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<(Duration, u64), String> {
    let number = |name: &str, default: u64| {
        let Some(text) = variable(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("{name} must be a whole number, not {text:?}"))
    };
    let seconds = number(SECONDS_VARIABLE, DEFAULT_SECONDS)?;
    Ok((Duration::from_secs(seconds), number(SEED_VARIABLE, DEFAULT_SEED)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_apply_when_the_variables_are_unset() {
        assert_eq!(read(|_| None), Ok((Duration::from_secs(DEFAULT_SECONDS), DEFAULT_SEED)));
    }

    #[test]
    fn variables_are_parsed_and_an_invalid_number_is_an_error() {
        let both = |name: &str| Some(if name == SECONDS_VARIABLE { "60" } else { "7" }.to_owned());
        assert_eq!(read(both), Ok((Duration::from_secs(60), 7)));
        let error = read(|_| Some("long".to_owned())).unwrap_err();
        assert_eq!(error, "WARD_FUZZ_SECONDS must be a whole number, not \"long\"");
    }
}
