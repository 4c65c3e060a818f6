//! A value that is used and never shown.

mod redactor;

use std::fmt;

use zeroize::Zeroizing;

pub use redactor::SecretRedactor;

/// A credential. It prints as `***`, and is wiped when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// A shorter one is in many texts by chance: then nothing of the text is shown.
const MIN_REDACTABLE_BYTES: usize = 4;

/// No service gives out a shorter one.
const MIN_ISSUED_BYTES: usize = 12;

impl Secret {
    /// Takes it over, without the blanks around it: what is sent is what is hidden.
    #[must_use]
    pub fn new(text: String) -> Self {
        let text = Zeroizing::new(text);
        Self(Zeroizing::new(text.trim().to_owned()))
    }

    /// For the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is only there because a server of one's own wants some word: `none`, `ollama`. Such a word is in many
    /// texts, and what a model says or asks for with it in it must not be changed.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.0.len() < MIN_ISSUED_BYTES
    }

    /// A text of someone else, without the secret in it: servers like to repeat what they were sent.
    #[must_use]
    pub fn redact_in(&self, text: &str) -> String {
        match self.0.len() {
            0 => text.to_owned(),
            1..MIN_REDACTABLE_BYTES => "***".to_owned(),
            _ => text.replace(self.reveal(), "***"),
        }
    }
}

/// Whether a variable holds what nobody should see, by what people call such.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let within = ["KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL", "BEARER"];
    let is_secret = |part: &str| part == "PAT" || within.iter().any(|word| part.contains(word));
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
    fn what_is_sent_is_what_is_hidden() {
        let check = |key: &str, said: &str, shown: &str| {
            assert_eq!(Secret::new(key.to_owned()).redact_in(said), shown, "{key:?}");
        };
        check(" sk-4711\n", "bad key sk-4711", "bad key ***");
        check("abc", "bad key abc", "***");
        check("", "no key", "no key");
        assert_eq!(format!("{:?}", Secret::new("sk-4711".to_owned())), "***");
    }

    #[test]
    fn secrets_are_known_by_what_people_call_them() {
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
