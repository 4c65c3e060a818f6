//! What lies over the picture for a moment.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::styles::{parse_painted_line, style};
use crate::context::DisplaySettings;
use crate::entries::why_lines;
use crate::output::TextTone;
use crate::text::wrap;
use crate::watch::model::{LiveViewModel, LiveViewPopup};

const HELP: [&str; 12] = [
    "↑ ↓ j k     choose an entry",
    "Enter       launch it",
    "w           why, or why not: every rule",
    "r           ask your parents for time",
    "s           end what is running",
    "S           end it at once",
    "q Ctrl-C    leave this view",
    "",
    "✓ could be launched now, and for how long",
    "✗ could not, and the first reason",
    "",
    "This view enforces nothing: the daemon does.",
];

/// Columns of a popup: a line that is easy to read.
const MAX_POPUP_WIDTH: u16 = 90;

pub(super) fn draw(frame: &mut Frame<'_>, model: &LiveViewModel, area: Rect) {
    let Some(popup) = &model.popup else { return };
    let room = area.width.saturating_sub(4).min(MAX_POPUP_WIDTH);
    let text_width = usize::from(room.saturating_sub(4));
    let (title, lines, scroll) = match popup {
        LiveViewPopup::Help => (" Keys ", HELP.map(Line::from).to_vec(), 0),
        LiveViewPopup::Why { why, scroll } => {
            let look = DisplaySettings { width: text_width, ..model.display.clone() };
            let lines = why_lines(why, &look).iter().map(|line| parse_painted_line(line)).collect();
            (" Why (↑↓ to scroll) ", lines, *scroll)
        }
        LiveViewPopup::RequestTime { label, minutes, .. } => {
            let question = format!("How many minutes more of {label}?");
            let mut lines: Vec<Line<'_>> = wrap(&question, text_width).into_iter().map(Line::from).collect();
            lines.push(Line::styled(format!("{minutes}▏"), style(TextTone::Strong)));
            lines.push(Line::styled("Enter asks, Esc does not", style(TextTone::Faint)));
            (" Ask for time ", lines, 0)
        }
        LiveViewPopup::Pin { message: told, typed, .. } => {
            let mut lines: Vec<Line<'_>> = wrap(told, text_width).into_iter().map(Line::from).collect();
            let hidden = "•".repeat(typed.chars().count());
            lines.push(Line::styled(format!("{hidden}▏"), style(TextTone::Strong)));
            lines.push(Line::styled("Enter does it with the PIN, Esc does not", style(TextTone::Faint)));
            (" The administrator's PIN ", lines, 0)
        }
    };
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(title.chars().count());
    let width = u16::try_from(widest + 4).unwrap_or(room).min(room.max(area.width.min(10)));
    let place = Rect {
        x: area.x + area.width.saturating_sub(width) / 2,
        y: area.y + area.height.saturating_sub(height) / 2,
        width: width.min(area.width),
        height,
    };
    let hidden = lines.len().saturating_sub(usize::from(height.saturating_sub(2)));
    let scroll = scroll.min(u16::try_from(hidden).unwrap_or(0));
    let block = Block::bordered().title(title).border_style(style(TextTone::Strong));
    let block = block.padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)).block(block), place);
}
