//! Expansion of `~` and `$NAME`, and durations such as `30s`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_providers::secret::is_secret_name;
use ward_diag::InvalidValue;

/// The values that a configuration may refer to. They are read once, when the program starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigContext {
    /// CollieClaw's own folder, with symlinks resolved if the folder exists.
    pub home: PathBuf,
    /// The user's home folder, the meaning of `~`.
    pub user_home: PathBuf,
    pub variables: BTreeMap<String, String>,
}

impl ConfigContext {
    /// Replaces `~`, `$NAME` and `${NAME}` by their values, and `$$` by `$`.
    ///
    /// # Errors
    /// Fails if a variable is not set or holds a secret, or if a `${` is not closed.
    pub fn expand(&self, text: &str) -> Result<String, InvalidValue> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        if let Some(after) = rest.strip_prefix('~') {
            if !(after.is_empty() || after.starts_with('/')) {
                return Err(
                    InvalidValue::new("`~` can only name your own home folder").help("write the full path")
                );
            }
            expanded.push_str(&self.user_home.to_string_lossy());
            rest = after;
        }
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            let (name, tail) = split_variable(after)?;
            if name.is_empty() {
                expanded.push('$');
            } else if is_secret_name(name) {
                // An expanded value is shown, logged and sent like the rest of the setting.
                return Err(InvalidValue::new(format!(
                    "the secret in `{name}` would be shown with this setting"
                ))
                .help(
                    "settings for secrets take the name of a variable: `api_key_env`, `token_env`, `env`",
                ));
            } else if let Some(value) = self.variables.get(name) {
                expanded.push_str(value);
            } else {
                return Err(InvalidValue::new(format!("the variable `{name}` is not set"))
                    .help(format!("set {name} before you start collieclaw, or write the value itself")));
            }
            rest = tail;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Expands a path and makes it absolute. Relative paths start at `base`.
    ///
    /// # Errors
    /// Fails if the text can't be expanded, is empty, or contains a NUL.
    pub fn expand_path(&self, text: &str, base: &Path) -> Result<PathBuf, InvalidValue> {
        let expanded = self.expand(text)?;
        if expanded.is_empty() || expanded.contains('\0') {
            return Err(InvalidValue::new("this is not a path").help("write it like `~/folder` or `/folder`"));
        }
        Ok(collieclaw_gate::normalize_path(&base.join(expanded)))
    }
}

/// Splits the text after a `$` into a variable name and the rest. The name is empty for `$$`.
fn split_variable(after: &str) -> Result<(&str, &str), InvalidValue> {
    if let Some(tail) = after.strip_prefix('$') {
        return Ok(("", tail));
    }
    let (name, tail) = if let Some(braced) = after.strip_prefix('{') {
        let unclosed = || InvalidValue::new("`${` is never closed").help("close it like `${NAME}`");
        braced.split_once('}').ok_or_else(unclosed)?
    } else {
        let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        after.split_at(end.unwrap_or(after.len()))
    };
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name {
        Ok((name, tail))
    } else {
        Err(InvalidValue::new("expected the name of a variable after `$`")
            .help("write `$$` for a dollar sign"))
    }
}

/// The longest duration that any setting accepts.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses durations such as `500ms`, `30s` and `2m`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, InvalidValue> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let milliseconds = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        _ => None,
    };
    let length = milliseconds
        .zip(digits.parse::<u64>().ok())
        .and_then(|(unit, count)| count.checked_mul(unit))
        .map(Duration::from_millis);
    match length {
        Some(length) if length.is_zero() => {
            Err(InvalidValue::new("the duration must not be zero").help("write it like `30s`"))
        }
        Some(length) if length > MAX_DURATION => {
            Err(InvalidValue::new("the duration must not be longer than a day")
                .help("write it like `30s`, `500ms` or `2m`"))
        }
        Some(length) => Ok(length),
        None => Err(InvalidValue::new("this is not a duration").help("write it like `30s`, `500ms` or `2m`")),
    }
}

/// Formats a duration in the notation that `parse_duration` reads.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_context() -> ConfigContext {
        let variables = [("WHERE", "/data"), ("API_KEY", "sk"), ("github_token", "gh")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        ConfigContext { home: "/h/.collieclaw".into(), user_home: "/h".into(), variables }
    }

    #[test]
    fn tilde_and_variables_are_expanded() {
        let check = |text, path: &str| {
            assert_eq!(
                sample_context().expand_path(text, Path::new("/base")).unwrap(),
                Path::new(path),
                "{text}"
            );
        };
        check("~", "/h");
        check("~/work", "/h/work");
        check("$WHERE/x", "/data/x");
        check("${WHERE}x", "/datax");
        check("a$$b", "/base/a$b");
        check("a/../b", "/base/b");
    }

    #[test]
    fn unknown_homes_unset_variables_and_secrets_are_refused() {
        for text in ["~root/x", "$NOWHERE", "$API_KEY", "a${github_token}b", "${WHERE", "$", "$1", "a\0b", ""]
        {
            assert!(sample_context().expand_path(text, Path::new("/base")).is_err(), "{text:?}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("1500ms").map(format_duration).unwrap(), "1500ms");
        assert_eq!(parse_duration("2m").map(format_duration).unwrap(), "120s");
        for text in ["", "30", "s", "0s", "-1s", "2d", "99999999999999999999s", "25000m", "1.5s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
