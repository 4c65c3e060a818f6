//! The difference between two texts, in the form of `diff -u`.

use std::time::Duration;

use similar::TextDiff;

/// The time after which a smaller difference is no longer searched for.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The number of unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Returns the difference between two texts, at most `max_bytes` long and cut at a line.
pub(super) fn unified_diff(path: &str, before: &str, after: &str, max_bytes: usize) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    let mut text = diff
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    if text.len() > max_bytes {
        let end = text.floor_char_boundary(max_bytes);
        let line_end = text.get(..end).and_then(|shown| shown.rfind('\n')).map_or(0, |at| at + 1);
        let missing = text.len() - line_end;
        text.truncate(line_end);
        text.push_str(&format!("[{missing} more bytes of the diff are not shown]\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_the_change_and_is_cut_at_a_line() {
        let diff = unified_diff("f", "a\nb\nc\n", "a\nx\nc\n", 1000);
        assert_eq!(diff, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        let cut = unified_diff("f", "a\nb\nc\n", "a\nx\nc\n", 20);
        assert!(cut.starts_with("--- a/f\n+++ b/f\n[") && cut.ends_with("not shown]\n"), "{cut}");
    }
}
