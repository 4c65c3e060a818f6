//! Keeps results within the size that a model's window bears.

/// A note about the parts of a result that were left out, and how to get them.
const REST_HINT: &str =
    "for the rest, ask for less at once, or write the output to a file and read it in parts";

/// Shortens a text to about `max_bytes`: keeps whole lines of its beginning and its end, and says what is missing.
pub(crate) fn limit_output(text: &str, max_bytes: usize) -> Option<String> {
    if text.len() <= max_bytes {
        return None;
    }
    // The end of an output often has its result, such as the summary of a test run.
    let tail_bytes = max_bytes / 3;
    let head = cut_at_line(text, max_bytes - tail_bytes);
    let tail_start = text.ceil_char_boundary(text.len() - tail_bytes);
    let tail = text.get(tail_start..).unwrap_or_default();
    let tail = match tail.find('\n') {
        // Long lines are cut inside, or little would be left of the tail.
        Some(at) if at < tail.len() / 2 => tail.get(at + 1..).unwrap_or_default(),
        _ => tail,
    };
    let missing = text.len() - head.len() - tail.len();
    let line_end = if head.ends_with('\n') { "" } else { "\n" };
    Some(format!(
        "{head}{line_end}[{missing} of {} bytes are left out here; {REST_HINT}]\n{tail}",
        text.len()
    ))
}

/// Returns the beginning of a text, at most `max_bytes` long. It ends with a line, unless a line is longer than half of
/// the limit.
pub(super) fn cut_at_line(text: &str, max_bytes: usize) -> &str {
    let head = text.get(..text.floor_char_boundary(max_bytes)).unwrap_or(text);
    if head.len() == text.len() {
        return head;
    }
    match head.rfind('\n') {
        Some(at) if at >= head.len() / 2 => head.get(..=at).unwrap_or(head),
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_of_the_beginning_and_the_end_are_kept() {
        let text: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let limited = limit_output(&text, 1000).unwrap();
        assert!(
            limited.starts_with("line 0\nline 1\n") && limited.ends_with("line 998\nline 999\n"),
            "{limited}"
        );
        assert!(limited.contains(&format!("of {} bytes are left out here", text.len())), "{limited}");
        assert!(limited.lines().all(|line| line.starts_with("line ") || line.starts_with('[')), "{limited}");
        assert!(limited.len() < 1200);
        assert_eq!(limit_output(&text, text.len()), None);
    }

    #[test]
    fn a_text_without_lines_is_cut_between_characters() {
        let text = "€".repeat(1000);
        for max_bytes in 10..40 {
            let limited = limit_output(&text, max_bytes).unwrap();
            assert!(limited.starts_with('€') && limited.ends_with('€'), "{limited}");
        }
        assert_eq!(cut_at_line("a\nbbbbbbbb", 6), "a\nbbbb");
        assert_eq!(cut_at_line("aaaa\nbb", 6), "aaaa\n");
    }
}
