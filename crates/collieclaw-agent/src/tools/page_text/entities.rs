//! Decodes character references such as `&amp;` and `&#8364;`.

use std::borrow::Cow;

/// The names that pages use for ordinary text. Others are shown as they are.
const NAMED: [(&str, &str); 38] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ensp", " "),
    ("emsp", " "),
    ("thinsp", " "),
    ("shy", ""),
    ("zwnj", ""),
    ("zwj", ""),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("hellip", "…"),
    ("mdash", "—"),
    ("ndash", "–"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("bull", "•"),
    ("middot", "·"),
    ("deg", "°"),
    ("times", "×"),
    ("euro", "€"),
    ("pound", "£"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
];

/// The maximum length of a reference, without `&` and `;`.
const MAX_REFERENCE_BYTES: usize = 10;

/// Replaces the references in a text.
pub(super) fn decode_entities(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        decoded.push_str(before);
        let inside = from.get(1..).unwrap_or_default();
        let end = inside.bytes().take(MAX_REFERENCE_BYTES + 1).position(|byte| byte == b';');
        let name = end.and_then(|end| inside.get(..end));
        match name.and_then(decode_reference) {
            Some(letter) => {
                decoded.push_str(&letter);
                rest = inside.get(end.unwrap_or_default() + 1..).unwrap_or_default();
            }
            None => {
                decoded.push('&');
                rest = inside;
            }
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

fn decode_reference(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        let letter = char::from_u32(number).filter(|letter| *letter != '\0');
        return Some(letter.unwrap_or(char::REPLACEMENT_CHARACTER).to_string());
    }
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, letter)| (*letter).to_owned())
}
