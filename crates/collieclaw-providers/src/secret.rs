//! Secrets: values that are sent to a server and never printed.

mod redactor;

use std::fmt;

use zeroize::Zeroizing;

pub use redactor::SecretRedactor;

/// A credential that prints as `***` and is wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// The length from which a secret is redacted alone. A shorter secret occurs in many texts by chance, so the whole
/// text is hidden.
const MIN_REDACTABLE_BYTES: usize = 4;

/// The shortest key that services issue. A shorter key is a placeholder.
const MIN_ISSUED_BYTES: usize = 12;

impl Secret {
    /// Wraps a secret and trims the blanks around it, so the sent value is the redacted value.
    #[must_use]
    pub fn new(text: String) -> Self {
        let text = Zeroizing::new(text);
        Self(Zeroizing::new(text.trim().to_owned()))
    }

    /// Returns the plain text, for the code that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns true if this is a filler such as `none` or `ollama` for a local server that wants any key.
    /// Such words occur in many texts, so they are not redacted from what a model writes.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.0.len() < MIN_ISSUED_BYTES
    }

    /// Removes the secret from a server's text, because servers may repeat what they were sent.
    #[must_use]
    pub fn redact_in(&self, text: &str) -> String {
        match self.0.len() {
            0 => text.to_owned(),
            1..MIN_REDACTABLE_BYTES => "***".to_owned(),
            _ => text.replace(self.reveal(), "***"),
        }
    }
}

/// Returns true if an environment variable holds a secret, judged by its name.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let words = ["KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL", "BEARER"];
    let is_secret = |part: &str| part == "PAT" || words.iter().any(|word| part.contains(word));
    let name = name.to_ascii_uppercase();
    name.split('_').any(|part| !part.starts_with("AUTHOR") && is_secret(part))
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trimmed_secret_is_redacted() {
        let check = |key: &str, said: &str, shown: &str| {
            assert_eq!(Secret::new(key.to_owned()).redact_in(said), shown, "{key:?}");
        };
        check(" sk-4711\n", "bad key sk-4711", "bad key ***");
        check("abc", "bad key abc", "***");
        check("", "no key", "no key");
        assert_eq!(format!("{:?}", Secret::new("sk-4711".to_owned())), "***");
    }

    #[test]
    fn secret_variables_are_recognized_by_name() {
        for name in
            ["OPENAI_API_KEY", "github_token", "GH_PAT", "DBPASS", "OAUTH", "PGPASSWORD", "MY_PASSPHRASE"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["HOME", "PWD", "GIT_AUTHOR_NAME", "PATH", "WORK_DIR"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
