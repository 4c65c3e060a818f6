//! Colours of the live view.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ward_terminal::TextTone;

pub(super) fn style(tone: TextTone) -> Style {
    match tone {
        TextTone::Good => Style::new().fg(Color::Green),
        TextTone::Warn => Style::new().fg(Color::Yellow),
        TextTone::Bad => Style::new().fg(Color::Red),
        TextTone::Faint => Style::new().add_modifier(Modifier::DIM),
        TextTone::Strong => Style::new().add_modifier(Modifier::BOLD),
    }
}

/// Converts a line painted for a plain terminal. Text from elsewhere was escaped before, so every escape sequence in the
/// line comes from this program.
pub(super) fn parse_painted_line(line: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut current = Style::new();
    for (number, part) in line.split("\x1b[").enumerate() {
        let text = match part.split_once('m') {
            Some((code, text)) if number > 0 => {
                current = style_for_code(code);
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

fn style_for_code(code: &str) -> Style {
    match code {
        "32" => style(TextTone::Good),
        "33" => style(TextTone::Warn),
        "31" => style(TextTone::Bad),
        "2" => style(TextTone::Faint),
        "1" => style(TextTone::Strong),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ward_terminal::paint;

    #[test]
    fn a_painted_line_keeps_its_colours() {
        for tone in [TextTone::Good, TextTone::Warn, TextTone::Bad, TextTone::Faint, TextTone::Strong] {
            let line = parse_painted_line(&format!("a{}m b", paint(tone, "mm")));
            let expected = [Span::raw("a"), Span::styled("mm", style(tone)), Span::raw("m b")];
            assert_eq!(line.spans, expected);
        }
    }
}
