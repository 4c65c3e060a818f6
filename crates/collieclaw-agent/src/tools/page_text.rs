//! Turns a web page into readable text: headings, paragraphs, lists, tables and links, without scripts and styles.
//!
//! The page is untrusted. It is read once from the beginning to the end, nothing in it is run or loaded, and tags that
//! don't fit together do no harm.

mod entities;
mod page_writer;

use entities::decode_entities;
use page_writer::PageWriter;

/// Elements whose content isn't text for readers.
const HIDDEN_ELEMENTS: [&str; 9] =
    ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head"];

/// Returns true if a content type is that of a web page.
pub(super) fn is_page(content_type: Option<&str>) -> bool {
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
}

/// Returns the readable text of a page.
pub(super) fn page_text(html: &str) -> String {
    let mut writer = PageWriter::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, from) = rest.split_at(at);
        writer.write_text(&decode_entities(text));
        rest = match read_tag(from) {
            TagRead::Tag { tag, rest } => write_tag(&mut writer, &tag, rest),
            TagRead::Skipped { rest } => rest,
            TagRead::Text => {
                writer.write_text("<");
                from.get(1..).unwrap_or_default()
            }
        };
    }
    writer.write_text(&decode_entities(rest));
    writer.finish()
}

/// A tag of the page.
struct PageTag<'t> {
    /// The name in lower case.
    name: String,
    closes: bool,
    attributes: &'t str,
}

enum TagRead<'t> {
    Tag {
        tag: PageTag<'t>,
        rest: &'t str,
    },
    /// A comment or a declaration.
    Skipped {
        rest: &'t str,
    },
    /// The character `<` stands for itself.
    Text,
}

/// Reads the tag at the beginning of a text, which starts with `<`.
fn read_tag(text: &str) -> TagRead<'_> {
    if let Some(comment) = text.strip_prefix("<!--") {
        let rest = comment.find("-->").and_then(|end| comment.get(end + 3..)).unwrap_or_default();
        return TagRead::Skipped { rest };
    }
    if text.starts_with("<!") || text.starts_with("<?") {
        let rest = text.find('>').and_then(|end| text.get(end + 1..)).unwrap_or_default();
        return TagRead::Skipped { rest };
    }
    let inside = text.get(1..).unwrap_or_default();
    let (closes, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
    if !inside.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return TagRead::Text;
    }
    let name_end = inside
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-' || letter == ':'))
        .unwrap_or(inside.len());
    let (name, after) = inside.split_at(name_end);
    let end = find_tag_end(after);
    let attributes = after.get(..end).unwrap_or_default();
    let rest = after.get(end + 1..).unwrap_or_default();
    TagRead::Tag { tag: PageTag { name: name.to_ascii_lowercase(), closes, attributes }, rest }
}

/// Returns the position of the `>` that ends a tag, outside of quoted attributes.
fn find_tag_end(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // A quote that is never closed hides the rest of the page, so it ends with the tag.
    if quote.is_some() { text.find('>').unwrap_or(text.len()) } else { text.len() }
}

/// Writes the effect of a tag, and returns the text after it. The content of hidden elements is skipped.
fn write_tag<'t>(writer: &mut PageWriter, tag: &PageTag<'_>, rest: &'t str) -> &'t str {
    let name = tag.name.as_str();
    if name == "title" && !tag.closes {
        let end = find_closing_tag(rest, "title").unwrap_or(rest.len());
        writer.write_title(&decode_entities(rest.get(..end).unwrap_or_default()));
        return rest.get(end..).unwrap_or_default();
    }
    if !tag.closes && name == "head" {
        // The title is the only text of the head, and it is found on its own.
        return rest;
    }
    if !tag.closes && HIDDEN_ELEMENTS.contains(&name) && !tag.attributes.ends_with('/') {
        let end = find_closing_tag(rest, name).unwrap_or(rest.len());
        return rest.get(end..).unwrap_or_default();
    }
    let href = if name == "a" { attribute(tag.attributes, "href") } else { None };
    let alternative = if name == "img" { attribute(tag.attributes, "alt") } else { None };
    writer.write_element(name, tag.closes, href.as_deref(), alternative.as_deref());
    rest
}

/// Returns the position of `</name`, in any case of letters.
fn find_closing_tag(text: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("</").map(|at| from + at) {
        let after = text.get(at + 2..)?;
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return Some(at);
        }
        from = at + 2;
    }
    None
}

/// Returns the value of an attribute.
fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '/');
        let name_end =
            rest.find(|letter: char| letter.is_ascii_whitespace() || letter == '=').unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        if name.is_empty() && after.is_empty() {
            return None;
        }
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inside = value.get(1..).unwrap_or_default();
                inside.split_once(quote).unwrap_or((inside, ""))
            }
            _ => {
                let end = value.find(|letter: char| letter.is_ascii_whitespace()).unwrap_or(value.len());
                value.split_at(end)
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(decode_entities(value).into_owned());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_readable_text() {
        let html = r#"<!DOCTYPE html><html><head><title>A &amp; B</title><style>p { color: red }</style>
            <script>if (a < b) alert("</p>");</script></head><body><!-- no > comment -->
            <h1>Heading</h1><p>One   paragraph
            with <b>bold</b> text, a <a href="/page?a=1&amp;b=2">link</a> and 1 &lt; 2.</p>
            <ul><li>first</li><li>second<ul><li>inner</li></ul></li></ul>
            <ol><li>one<li>two</ol>
            <table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann</td><td>7</td></tr></table>
            <pre>keep
  this</pre><SCRIPT>evil()</SCRIPT><p>The end&nbsp;&mdash; &#8364;&#x20AC;</p></body></html>"#;
        let expected = "A & B\n\n# Heading\n\nOne paragraph with bold text, a link (/page?a=1&b=2) and 1 < 2.\n\n- first\n- second\n  - inner\n\n1. one\n2. two\n\nName | Age\nAnn | 7\n\nkeep\n  this\n\nThe end — €€\n";
        assert_eq!(page_text(html), expected);
    }

    #[test]
    fn broken_pages_do_no_harm() {
        assert_eq!(page_text("a < b > c"), "a < b > c\n");
        assert_eq!(page_text("<p>text<script>never closed"), "text\n");
        assert_eq!(page_text("<p title=\"never closed>text"), "text\n");
        assert_eq!(page_text("<a href=x>y"), "y (x)\n");
        assert_eq!(page_text("</li></ul></table></a>text"), "text\n");
        assert_eq!(page_text(&"<ul><li>".repeat(5000)), "\n");
        assert_eq!(page_text("<"), "<\n");
        assert_eq!(page_text("&#0;&#xD800;&nosuch;&"), "\u{fffd}\u{fffd}&nosuch;&\n");
    }

    #[test]
    fn only_pages_are_converted() {
        assert!(is_page(Some("text/html; charset=utf-8")) && is_page(Some("application/xhtml+xml")));
        assert!(!is_page(Some("application/json")) && !is_page(Some("text/plain")) && !is_page(None));
    }
}
