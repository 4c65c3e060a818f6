//! Our own colours, for the full screen.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::screen::Tone;

pub(super) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Warn => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
        Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
    }
}

/// A line that was painted for a plain terminal. Others' text in it was cleaned, so every escape is one of ours.
pub(super) fn painted(line: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut current = Style::new();
    for (number, part) in line.split("\x1b[").enumerate() {
        let text = match part.split_once('m') {
            Some((code, text)) if number > 0 => {
                current = style_of(code);
                text
            }
            _ => part,
        };
        if !text.is_empty() {
            spans.push(Span::styled(text.to_owned(), current));
        }
    }
    Line::from(spans)
}

fn style_of(code: &str) -> Style {
    match code {
        "32" => style(Tone::Good),
        "33" => style(Tone::Warn),
        "31" => style(Tone::Bad),
        "2" => style(Tone::Faint),
        "1" => style(Tone::Strong),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::paint;

    #[test]
    fn what_was_painted_keeps_its_colours() {
        for tone in [Tone::Good, Tone::Warn, Tone::Bad, Tone::Faint, Tone::Strong] {
            let line = painted(&format!("a{}m b", paint(tone, "mm")));
            let expected = [Span::raw("a"), Span::styled("mm", style(tone)), Span::raw("m b")];
            assert_eq!(line.spans, expected);
        }
    }
}
