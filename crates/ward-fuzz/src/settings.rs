//! How long and with which seed, from the environment of the test.

use std::time::Duration;

/// How long a target runs in the normal tests.
pub const DEFAULT_SECONDS: u64 = 2;

/// Seconds for each target.
pub const SECONDS_VARIABLE: &str = "WARD_FUZZ_SECONDS";

/// The seed; a number.
pub const SEED_VARIABLE: &str = "WARD_FUZZ_SEED";

/// The seed of the normal tests: a failure there is a failure for everyone.
const DEFAULT_SEED: u64 = 1;

/// Reads both through `variable`; a value that is not a number is named instead of being passed over.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<(Duration, u64), String> {
    let number = |name: &str, otherwise: u64| {
        let Some(text) = variable(name) else { return Ok(otherwise) };
        text.parse().map_err(|_| format!("{name} must be a whole number, not {text:?}"))
    };
    let seconds = number(SECONDS_VARIABLE, DEFAULT_SECONDS)?;
    Ok((Duration::from_secs(seconds), number(SEED_VARIABLE, DEFAULT_SEED)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variables_it_is_short_and_always_the_same() {
        assert_eq!(read(|_| None), Ok((Duration::from_secs(DEFAULT_SECONDS), DEFAULT_SEED)));
    }

    #[test]
    fn the_variables_count_and_nonsense_is_named() {
        let both = |name: &str| Some(if name == SECONDS_VARIABLE { "60" } else { "7" }.to_owned());
        assert_eq!(read(both), Ok((Duration::from_secs(60), 7)));
        let error = read(|_| Some("long".to_owned())).unwrap_err();
        assert_eq!(error, "WARD_FUZZ_SECONDS must be a whole number, not \"long\"");
    }
}
