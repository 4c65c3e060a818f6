//! Colours, chosen by meaning.

/// The meaning of a text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTone {
    /// A success: green.
    Good,
    /// A warning: yellow.
    Warn,
    /// A failure: red.
    Bad,
    /// A detail that most readers skip: dimmed.
    Faint,
    /// A heading or a name: bold.
    Strong,
}

/// Wraps a text in the escape sequences of its tone. The text must not contain a painted text itself.
#[must_use]
pub fn paint(tone: TextTone, text: &str) -> String {
    let code = match tone {
        TextTone::Good => 32,
        TextTone::Warn => 33,
        TextTone::Bad => 31,
        TextTone::Faint => 2,
        TextTone::Strong => 1,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Wraps a text in the escape sequences of its tone, or returns it unchanged if it has none.
#[must_use]
pub fn paint_optional(tone: Option<TextTone>, text: &str) -> String {
    tone.map_or_else(|| text.to_owned(), |tone| paint(tone, text))
}
