//! Popups over the live view: help, the rules of an entry, a request for time, the PIN.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use shepherd_api::TimeRequestView;
use ward_terminal::{TextTone, escape_label, wrap};

use super::styles::{parse_painted_line, style};
use crate::context::DisplaySettings;
use crate::entries::why_lines;
use crate::humanize;
use crate::watch::DaemonLifetime;
use crate::watch::model::{LiveViewModel, LiveViewPopup};

const HELP: [&str; 13] = [
    "↑ ↓ j k     choose an entry",
    "Enter       launch the entry",
    "w           show every rule for the entry",
    "r           ask your parents for time",
    "a           answer a request for time (parents)",
    "s           stop the entry, or what else this child runs",
    "S           kill it at once",
    "Ctrl-L      draw the view again, after other text has spoilt it",
    "q Ctrl-C    quit",
    "",
    "✓ can be launched now, for this long",
    "✗ can't be launched now, for this reason",
    "",
];

/// Returns the last line of the help.
fn closing_line(lifetime: DaemonLifetime) -> &'static str {
    match lifetime {
        DaemonLifetime::Independent => "Closing this view stops nothing and gives no extra time.",
        DaemonLifetime::EndsWithView => "Closing this view ends this temporary Shepherd and its programs.",
    }
}

/// Widest popup, for lines that are easy to read.
const MAX_POPUP_WIDTH: u16 = 90;

fn answer_lines(
    model: &LiveViewModel,
    request: &TimeRequestView,
    minutes: &str,
    width: usize,
) -> Vec<Line<'static>> {
    let question = format!("{}.", humanize::time_request(request, &model.display));
    let note = request.note.as_ref().map(|note| format!("“{}”", escape_label(note)));
    let asked = format!("Asked {}", humanize::time(request.asked_at, &model.display));
    let texts = std::iter::once(question).chain(note).chain([asked]);
    let mut lines: Vec<Line<'static>> = texts.flat_map(|text| wrap(&text, width)).map(Line::from).collect();
    if let Some(closed) = model.closed_entry(request) {
        let hint = format!("It is {}. A yes gives time, but doesn't open it.", closed.until);
        lines.extend(wrap(&hint, width).into_iter().map(|line| Line::styled(line, style(TextTone::Warn))));
    }
    lines.push(Line::styled(format!("Minutes: {minutes}▏"), style(TextTone::Strong)));
    lines.push(Line::styled("y or Enter to grant, n to deny, Esc to answer later", style(TextTone::Faint)));
    if model.time_requests.len() > 1 {
        let count = format!("↓ for the next of {} requests", model.time_requests.len());
        lines.push(Line::styled(count, style(TextTone::Faint)));
    }
    lines
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &LiveViewModel, area: Rect) {
    let Some(popup) = &model.popup else { return };
    let room = area.width.saturating_sub(4).min(MAX_POPUP_WIDTH);
    let text_width = usize::from(room.saturating_sub(4));
    let (title, lines, scroll) = match popup {
        LiveViewPopup::Help => {
            let lines = HELP.into_iter().chain([closing_line(model.lifetime)]).map(Line::from);
            (" Keys ", lines.collect(), 0)
        }
        LiveViewPopup::Why { why, scroll } => {
            let display = DisplaySettings { width: text_width, ..model.display.clone() };
            let lines = why_lines(why, &display).iter().map(|line| parse_painted_line(line)).collect();
            (" Why (↑↓ to scroll) ", lines, *scroll)
        }
        LiveViewPopup::RequestTime { label, minutes, .. } => {
            let question = format!("How many more minutes of {label}?");
            let mut lines: Vec<Line<'_>> = wrap(&question, text_width).into_iter().map(Line::from).collect();
            lines.push(Line::styled(format!("{minutes}▏"), style(TextTone::Strong)));
            lines.push(Line::styled("Enter to ask, Esc to cancel", style(TextTone::Faint)));
            (" Ask for time ", lines, 0)
        }
        LiveViewPopup::Answer { request, minutes } => {
            (" Request for time ", answer_lines(model, request, minutes, text_width), 0)
        }
        LiveViewPopup::Pin { message, typed, .. } => {
            let mut lines: Vec<Line<'_>> = wrap(message, text_width).into_iter().map(Line::from).collect();
            let hidden = "•".repeat(typed.chars().count());
            lines.push(Line::styled(format!("{hidden}▏"), style(TextTone::Strong)));
            lines.push(Line::styled("Enter to continue, Esc to cancel", style(TextTone::Faint)));
            (" Administrator's PIN ", lines, 0)
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
