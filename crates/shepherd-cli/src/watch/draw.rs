//! Draws the live view in a terminal of any size. Parts that do not fit are left out, the countdown last.

mod popup;
mod styles;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, List, ListItem, ListState, Paragraph};
use shepherd_api::{DaemonStateSnapshot, Millis, ProfileView, SessionPhase, SessionView};
use ward_terminal::{TextTone, display_width, escape_label, pad_or_truncate, truncate, wrap};

use crate::context::DisplaySettings;
use crate::entries::{describe_entry, entry_mark, is_running};
use crate::humanize;
use crate::status::{draw_bar, remaining_fraction};
use crate::watch::model::{LiveViewConnection, LiveViewEntry, LiveViewModel};
use styles::style;

/// From this width on, events are drawn beside the entries instead of below them.
const WIDE_LAYOUT_WIDTH: u16 = 110;

/// Requests for time that are drawn; the others can be reached with keys.
const MAX_REQUEST_LINES: usize = 3;

/// Most lines of a notice, such as one with a command to type.
const MAX_NOTICE_LINES: usize = 3;

/// Below this height only the session is drawn.
const FULL_LAYOUT_HEIGHT: u16 = 9;

pub(super) fn draw(frame: &mut Frame<'_>, model: &mut LiveViewModel, now: Timestamp) {
    let area = frame.area();
    model.display.now = now;
    model.display.width = usize::from(area.width);
    let state = model.state_at(now);
    if area.height < FULL_LAYOUT_HEIGHT {
        let lines = session_lines(model, state.as_ref(), area.width);
        frame.render_widget(Paragraph::new(lines), area);
    } else {
        let has_notice = model.old_rules.is_some() && area.height > FULL_LAYOUT_HEIGHT;
        let spare = usize::from(area.height - FULL_LAYOUT_HEIGHT) - usize::from(has_notice);
        let footer = footer_lines(model, usize::from(area.width), (spare + 1).min(MAX_NOTICE_LINES));
        let [top, notice, middle, bottom] = Layout::vertical([
            Constraint::Length(session_height(model, state.as_ref(), area)),
            Constraint::Length(u16::from(has_notice)),
            Constraint::Min(3),
            Constraint::Length(u16::try_from(footer.len()).unwrap_or(1)),
        ])
        .areas(area);
        draw_session(frame, model, state.as_ref(), top);
        if let Some(old_rules) = &model.old_rules {
            let text = truncate(&format!("! {old_rules}"), usize::from(notice.width));
            frame.render_widget(Paragraph::new(styled_line(TextTone::Warn, &text)), notice);
        }
        let asking = u16::try_from(model.time_requests.len().min(MAX_REQUEST_LINES)).unwrap_or(0);
        // The entries keep at least three lines.
        let requests = if asking > 0 && middle.height >= asking + 5 { asking + 2 } else { 0 };
        let [asked, middle] =
            Layout::vertical([Constraint::Length(requests), Constraint::Min(3)]).areas(middle);
        if requests > 0 {
            draw_requests(frame, model, asked);
        }
        let (entries, events) = split_area(middle, model.entries.len());
        draw_entries(frame, model, entries);
        draw_events(frame, model, events);
        frame.render_widget(Paragraph::new(footer), bottom);
    }
    popup::draw(frame, model, area);
}

/// Returns the height of the sessions with their frame: three lines or more, and at most half of the terminal.
fn session_height(model: &LiveViewModel, state: Option<&DaemonStateSnapshot>, area: Rect) -> u16 {
    let lines = session_lines(model, state, area.width).len().max(3);
    u16::try_from(lines + 2).unwrap_or(u16::MAX).min((area.height / 2).max(5))
}

/// Draws the requests for time that wait for an answer.
fn draw_requests(frame: &mut Frame<'_>, model: &LiveViewModel, area: Rect) {
    let block =
        Block::bordered().title(" Requests · parents press a to answer ").border_style(style(TextTone::Warn));
    let width = usize::from(block.inner(area).width);
    let lines = model.time_requests.iter().take(MAX_REQUEST_LINES).map(|request| {
        let note = request.note.as_ref().map(|note| format!(": “{}”", escape_label(note)));
        let text = humanize::time_request(request, &model.display) + &note.unwrap_or_default();
        styled_line(TextTone::Strong, &truncate(&format!("? {text}"), width))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

/// Splits the area between entries and events.
fn split_area(area: Rect, entries: usize) -> (Rect, Rect) {
    if area.width >= WIDE_LAYOUT_WIDTH {
        let [left, right] = Layout::horizontal([Constraint::Percentage(60), Constraint::Fill(1)]).areas(area);
        return (left, right);
    }
    let wanted = u16::try_from(entries + 2).unwrap_or(u16::MAX).max(3);
    let most = area.height.saturating_sub(4).max(area.height / 2);
    let [upper, lower] =
        Layout::vertical([Constraint::Length(wanted.min(most)), Constraint::Fill(1)]).areas(area);
    (upper, lower)
}

fn draw_session(
    frame: &mut Frame<'_>,
    model: &LiveViewModel,
    state: Option<&DaemonStateSnapshot>,
    area: Rect,
) {
    let mode = state.map(|state| truncate(&escape_label(&state.mode), 20)).filter(|mode| !mode.is_empty());
    let mode = mode.map_or(String::new(), |mode| format!(" mode {mode} "));
    let name = |profile| format!("for {} ", humanize::profile_name(profile, &model.display));
    let profile = model.profile.as_ref().map(name).unwrap_or_default();
    let block = Block::bordered()
        .title(Span::styled(format!(" Shepherd {profile}"), style(TextTone::Strong)))
        .title(Line::from(mode).right_aligned())
        .border_style(style(TextTone::Faint));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let mut lines = session_lines(model, state, inner.width);
    let height = usize::from(inner.height);
    if lines.len() > height {
        lines.truncate(height.saturating_sub(1));
        lines.push(styled_line(TextTone::Faint, "… `shepherd status` shows all sessions"));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn session_lines(
    model: &LiveViewModel,
    state: Option<&DaemonStateSnapshot>,
    width: u16,
) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines = Vec::new();
    match &model.connection {
        LiveViewConnection::Disconnected { why } => {
            lines.push(styled_line(TextTone::Bad, &truncate(&format!("Not connected: {why}"), width)));
            lines.push(styled_line(
                TextTone::Faint,
                &truncate("Trying to reconnect. The rest of this view may be out of date.", width),
            ));
            return lines;
        }
        LiveViewConnection::Connecting => {
            lines.push(styled_line(TextTone::Faint, "Connecting …"));
            return lines;
        }
        LiveViewConnection::Connected => {}
    }
    let Some(state) = state else { return lines };
    if state.sessions.is_empty() && state.clock_trusted {
        lines.push(Line::from(model.display.catalogue().nothing_running()));
        lines.push(styled_line(TextTone::Faint, &truncate("Choose an entry and press Enter.", width)));
    } else if state.sessions.is_empty() {
        let problem = "The clock was set back, so nothing can be launched.";
        let help = "A parent can correct the clock or run `shepherd clock confirm`.";
        lines.push(styled_line(TextTone::Bad, &truncate(problem, width)));
        lines.push(styled_line(TextTone::Faint, &truncate(help, width)));
    }
    for session in &state.sessions {
        let child = humanize::profile_name(&session.profile, &model.display);
        lines.push(session_line(session, &child, &model.display, width));
        lines.extend(countdown_line(session, state.at, &model.display, width));
        if let Some((tone, warning)) = model.warnings.get(&session.session_id) {
            lines.push(styled_line(*tone, &truncate(&format!("! {warning}"), width)));
        }
    }
    lines
}

fn session_line(
    session: &SessionView,
    child: &str,
    display: &DisplaySettings,
    width: usize,
) -> Line<'static> {
    let rest = format!(" · {} · {child}", humanize::session_state(session, display));
    let label =
        truncate(&escape_label(&session.label), width.saturating_sub(display_width(&rest) + 2).max(8));
    Line::from(vec![
        Span::styled("▶ ", style(TextTone::Good)),
        Span::styled(label, style(TextTone::Strong)),
        Span::raw(rest),
    ])
}

fn countdown_line(
    session: &SessionView,
    now: Timestamp,
    display: &DisplaySettings,
    width: usize,
) -> Option<Line<'static>> {
    if session.phase == SessionPhase::Expiring {
        return Some(styled_line(TextTone::Warn, "stopping …"));
    }
    let Some(remaining) = session.remaining else {
        return Some(Line::from(display.catalogue().no_time_limit()));
    };
    let Millis(left) = remaining;
    let share = remaining_fraction(session, remaining, now);
    let colour = match share {
        share if share > 0.5 => Color::Green,
        share if share > 0.2 => Color::Yellow,
        _ => Color::Red,
    };
    let clock = humanize::countdown(remaining);
    let bar = width.saturating_sub(clock.len() + 2);
    let mut emphasis = Style::new().fg(colour).add_modifier(Modifier::BOLD);
    if left < 10_000 {
        emphasis = emphasis.add_modifier(Modifier::REVERSED);
    }
    let spans = vec![
        Span::styled(clock, emphasis),
        Span::raw(" "),
        Span::styled(if bar > 3 { draw_bar(share, bar) } else { String::new() }, Style::new().fg(colour)),
    ];
    Some(Line::from(spans))
}

fn draw_entries(frame: &mut Frame<'_>, model: &LiveViewModel, area: Rect) {
    let block = Block::bordered().title(" Entries ").border_style(style(TextTone::Faint));
    let width = usize::from(block.inner(area).width).saturating_sub(4);
    let longest = model.entries.iter().map(|entry| display_width(&entry_label(entry))).max().unwrap_or(0);
    let sessions = model.sessions_at(model.display.now);
    let label_width = longest.min(width / 2).max(8);
    let items: Vec<ListItem<'_>> = model
        .entries
        .iter()
        .map(|entry| {
            let is_players = |child: &ProfileView| {
                let runs = |session: &SessionView| {
                    session.profile == child.profile && session.entry_id == entry.view.entry_id
                };
                sessions.iter().any(runs)
            };
            let running = is_running(&entry.view) && entry.child.as_ref().is_none_or(is_players);
            let (tone, mark) = entry_mark(&entry.view, running);
            let bright = entry.view.enabled || running;
            let label_style = style(if bright { TextTone::Strong } else { TextTone::Faint });
            let status = truncate(
                &describe_entry(&entry.view, running, &model.display),
                width.saturating_sub(label_width + 2),
            );
            ListItem::new(Line::from(vec![
                Span::styled(format!("{mark} "), style(tone)),
                Span::styled(pad_or_truncate(&entry_label(entry), label_width), label_style),
                Span::raw("  "),
                Span::raw(status),
            ]))
        })
        .collect();
    let list = List::new(items)
        .block(block)
        .highlight_symbol("▸ ")
        .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = ListState::default().with_selected((!model.entries.is_empty()).then_some(model.selected));
    frame.render_stateful_widget(list, area, &mut state);
}

/// Returns the label of an entry, with the child's label if the view shows several children.
fn entry_label(entry: &LiveViewEntry) -> String {
    let label = escape_label(&entry.view.label);
    match &entry.child {
        Some(child) => format!("{}: {label}", escape_label(&child.label)),
        None => label,
    }
}

/// Draws the events with the newest at the bottom.
fn draw_events(frame: &mut Frame<'_>, model: &LiveViewModel, area: Rect) {
    let block = Block::bordered().title(" Events ").border_style(style(TextTone::Faint));
    let inner = block.inner(area);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for event in &model.event_lines {
        let at = event.at.to_zoned(model.display.zone.clone()).strftime("%H:%M:%S ").to_string();
        let parts = wrap(&event.text, usize::from(inner.width).saturating_sub(11));
        for (number, part) in parts.into_iter().enumerate() {
            lines.push(if number == 0 {
                let mark = Span::styled(event.mark, style(event.tone));
                Line::from(vec![
                    Span::styled(at.clone(), style(TextTone::Faint)),
                    mark,
                    Span::raw(format!(" {part}")),
                ])
            } else {
                Line::from(format!("{}{part}", " ".repeat(11)))
            });
        }
    }
    let hidden = lines.len().saturating_sub(usize::from(inner.height));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(hidden).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// Returns the lines at the bottom, at most so many: the result of the last key, or the keys.
fn footer_lines(model: &LiveViewModel, width: usize, most: usize) -> Vec<Line<'static>> {
    match &model.notice {
        Some((tone, notice)) if !notice.is_empty() => {
            let mut lines = wrap(notice, width);
            if lines.len() > most {
                let rest = lines.split_off(most.saturating_sub(1)).join(" ");
                lines.push(truncate(&rest, width));
            }
            lines.iter().map(|line| styled_line(*tone, line)).collect()
        }
        _ => {
            let keys = "↑↓ choose  Enter launch  s stop  w why  r ask for time  ? help  q quit";
            vec![styled_line(TextTone::Faint, &truncate(keys, width))]
        }
    }
}

fn styled_line(tone: TextTone, text: &str) -> Line<'static> {
    Line::from(Span::styled(text.to_owned(), style(tone)))
}

#[cfg(test)]
mod tests;
