//! What `~`, `$NAME` and `30s` mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_providers::secret::is_secret_name;
use ward_diag::InvalidValue;

/// What the configuration may refer to; read once, by the program's outermost function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigContext {
    /// CollieClaw's own folder, with all links followed where it exists.
    pub home: PathBuf,
    /// The person's home: what `~` means.
    pub user_home: PathBuf,
    /// The environment.
    pub variables: BTreeMap<String, String>,
}

impl ConfigContext {
    /// Puts in what `~`, `$NAME` and `${NAME}` stand for. `$$` is a `$`.
    ///
    /// # Errors
    /// When a variable is not set, or is not closed.
    pub fn expand(&self, text: &str) -> Result<String, InvalidValue> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        if let Some(after) = rest.strip_prefix('~') {
            if !(after.is_empty() || after.starts_with('/')) {
                return Err(InvalidValue::new("only your own home can be written with `~`")
                    .help("write the path out"));
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
                // What is written out is shown, logged and sent as what it is written into.
                return Err(InvalidValue::new(format!("the secret in `{name}` would be shown with this setting"))
                    .help("keys have settings of their own, which name a variable: `api_key_env`, `token_env`, `env`"));
            } else if let Some(value) = self.variables.get(name) {
                expanded.push_str(value);
            } else {
                return Err(InvalidValue::new(format!("the variable `{name}` is not set"))
                    .help(format!("set {name} before you start collieclaw, or write its value out")));
            }
            rest = tail;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// A path, written out: relative ones are meant from `base`.
    ///
    /// # Errors
    /// When it can't be expanded, is empty, or holds a NUL.
    pub fn expand_path(&self, text: &str, base: &Path) -> Result<PathBuf, InvalidValue> {
        let expanded = self.expand(text)?;
        if expanded.is_empty() || expanded.contains('\0') {
            return Err(InvalidValue::new("this is no path").help("write it like `~/folder` or `/folder`"));
        }
        Ok(collieclaw_gate::normalize_path(&base.join(expanded)))
    }
}

/// The name after a `$` and what follows it; an empty name for `$$`.
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
        Err(InvalidValue::new("no name of a variable follows the `$`").help("write `$$` for a dollar sign"))
    }
}

/// A day is longer than anything here should take.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// `500ms`, `30s`, `2m`.
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
            Err(InvalidValue::new("nothing can be done in no time").help("write it like `30s`"))
        }
        Some(length) if length > MAX_DURATION => {
            Err(InvalidValue::new("this is longer than a day").help("write it like `30s`"))
        }
        Some(length) => Ok(length),
        None => {
            Err(InvalidValue::new("this is no length of time").help("write it like `30s`, `500ms` or `2m`"))
        }
    }
}

/// As it is written.
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
    fn homes_and_variables_are_written_out() {
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
    fn what_can_not_be_known_is_refused() {
        for text in ["~root/x", "$NOWHERE", "$API_KEY", "a${github_token}b", "${WHERE", "$", "$1", "a\0b", ""]
        {
            assert!(sample_context().expand_path(text, Path::new("/base")).is_err(), "{text:?}");
        }
    }

    #[test]
    fn lengths_of_time_have_a_unit() {
        assert_eq!(parse_duration("1500ms").map(format_duration).unwrap(), "1500ms");
        assert_eq!(parse_duration("2m").map(format_duration).unwrap(), "120s");
        for text in ["", "30", "s", "0s", "-1s", "2d", "99999999999999999999s", "25000m", "1.5s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
