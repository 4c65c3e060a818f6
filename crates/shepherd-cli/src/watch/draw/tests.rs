use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shepherd_api::{ExplanationView, ReasonCode, RuleOutcomeView, RuleView, StopMode};
use shepherd_util::SessionId;

use super::*;
use crate::watch::DaemonLifetime;
use crate::watch::inputs::{LiveViewInput, LiveViewReply, LiveViewRequest};
use crate::watch::model::LiveViewPopup;
use crate::watch::model::tests::{at, closed_racing, connected, entry, household, session, time_request};

fn render_at(model: &mut LiveViewModel, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, at(5))).unwrap();
    let shown = terminal.backend().to_string();
    // The backend quotes its lines, and lists after them the cells that wide characters cover.
    let lines = shown.lines().map(|line| line.trim_start_matches('"').rsplit_once('"').unwrap().0.trim_end());
    lines.map(|line| line.split("\" Hidden by").next().unwrap()).collect::<Vec<_>>().join("\n")
}

fn sample() -> LiveViewModel {
    let mut model = connected(Some(session(Some(20_000), SessionPhase::Running)));
    let closed = shepherd_api::EntryView {
        enabled: false,
        reasons: vec![ReasonCode::OutsideHours { next_opening: None }],
        max_run_if_started_now: None,
        ..entry("closed", "A label that is longer than it has any right to be, by far")
    };
    let running = shepherd_api::EntryView {
        enabled: false,
        reasons: vec![ReasonCode::SessionActive {
            session_id: SessionId::from_random(1),
            entry_id: "racing".parse().unwrap(),
        }],
        max_run_if_started_now: None,
        ..entry("racing", "Racing")
    };
    model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::Entries(vec![
        running,
        entry("maths", "数学の練習"),
        closed,
    ])));
    model.warnings = [(SessionId::from_random(1), (TextTone::Bad, "Save your game.".to_owned()))].into();
    model
}

#[test]
fn session_entries_and_events_fit_80_columns() {
    insta::assert_snapshot!(render_at(&mut sample(), 80, 20), @r"
    ┌ Shepherd ─────────────────────────────────────────────────────── mode school ┐
    │▶ Racing · running · anna                                                     │
    │0:15 ██████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░ │
    │! Save your game.                                                             │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌ Entries ─────────────────────────────────────────────────────────────────────┐
    │▸ ▶ Racing                                 running                            │
    │  ✓ 数学の練習                             up to 20 seconds                   │
    │  ✗ A label that is longer than it has a…  Not allowed at this time.          │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌ Events ──────────────────────────────────────────────────────────────────────┐
    │                                                                              │
    │                                                                              │
    │                                                                              │
    │                                                                              │
    │                                                                              │
    │                                                                              │
    │                                                                              │
    └──────────────────────────────────────────────────────────────────────────────┘
    ↑↓ choose  Enter launch  s stop  w why  r ask for time  ? help  q quit
    ");
}

#[test]
fn a_low_terminal_shows_the_session_alone() {
    insta::assert_snapshot!(render_at(&mut sample(), 40, 4), @r"
    ▶ Racing · running · anna
    0:15 █████████████████████████▌░░░░░░░░
    ! Save your game.
    ");
}

#[test]
fn a_lost_connection_is_shown() {
    let mut model = sample();
    model.handle_input(LiveViewInput::Disconnected { why: "no daemon listens\x1b there".to_owned() });
    let shown = render_at(&mut model, 60, 20);
    assert!(shown.contains("Not connected: no daemon listens\\u{1b} there"), "{shown}");
    assert!(!shown.contains('█'), "no countdown without a connection:\n{shown}");
}

#[test]
fn the_rules_popup_can_be_scrolled() {
    let mut model = sample();
    let rule = |number: usize| RuleView {
        rule: "hours".to_owned(),
        facts: format!("rule-{number} "),
        outcome: RuleOutcomeView::Passes,
    };
    let why = ExplanationView {
        at: at(0),
        profile: "anna".parse().unwrap(),
        entry: entry("racing", "Racing"),
        rules: (0..40).map(rule).collect(),
    };
    let shown = |scroll, model: &mut LiveViewModel| {
        model.popup = Some(LiveViewPopup::Why { why: Box::new(why.clone()), scroll });
        render_at(model, 60, 20)
    };
    let top = shown(0, &mut model);
    assert!(top.contains("rule-1 ") && !top.contains("rule-39"), "{top}");
    let end = shown(1_000, &mut model);
    assert!(end.contains("rule-39") && !end.contains("rule-1 "), "{end}");
}

#[test]
fn the_help_says_what_closing_the_view_ends() {
    let mut model = sample();
    model.popup = Some(LiveViewPopup::Help);
    let shown = render_at(&mut model, 80, 24);
    assert!(shown.contains("Closing this view stops nothing and gives no extra time."), "{shown}");
    model.lifetime = DaemonLifetime::EndsWithView;
    let shown = render_at(&mut model, 80, 24);
    assert!(shown.contains("Closing this view ends this temporary Shepherd and its programs."), "{shown}");
}

#[test]
fn any_terminal_size_is_drawn() {
    let mut model = sample();
    let request = || LiveViewPopup::RequestTime {
        entry_id: "racing".parse().unwrap(),
        label: "Racing".to_owned(),
        minutes: "15".to_owned(),
    };
    let pin = || LiveViewPopup::Pin {
        request: LiveViewRequest::Stop(StopMode::Force, None),
        message: "Only an administrator may do this.".to_owned(),
        typed: "4711".to_owned(),
    };
    for (width, height) in [(1, 1), (2, 2), (5, 3), (10, 9), (20, 10), (9, 40), (300, 5), (300, 100)] {
        for popup in [None, Some(LiveViewPopup::Help), Some(request()), Some(pin())] {
            model.popup = popup;
            render_at(&mut model, width, height);
        }
    }
}

#[test]
fn a_pin_is_not_shown_while_it_is_typed() {
    let mut model = sample();
    let message = "Only an administrator may do this.".to_owned();
    model.popup = Some(LiveViewPopup::Pin {
        request: LiveViewRequest::Stop(StopMode::Force, None),
        message,
        typed: "4711".to_owned(),
    });
    let shown = render_at(&mut model, 80, 24);
    assert!(shown.contains("Only an administrator may do this.") && shown.contains("••••▏"), "{shown}");
    assert!(!shown.contains("4711"), "{shown}");
}

#[test]
fn a_parent_sees_all_children_and_their_requests() {
    let mut model = household();
    let screen = render_at(&mut model, 80, 24);
    assert!(screen.contains("│? Ben asks for 15 minutes of Racing: “nearly\\u{1b} done”"), "{screen}");
    assert!(screen.contains("▶ Anna: Racing  running"), "{screen}");
    assert!(screen.contains("✗ Ben: Racing   when Racing has ended"), "{screen}");
    model.handle_input(LiveViewInput::Key(ratatui::crossterm::event::KeyEvent::from(
        ratatui::crossterm::event::KeyCode::Char('a'),
    )));
    let screen = render_at(&mut model, 80, 24);
    for text in ["Ben asks for 15 minutes of Racing.", "“nearly\\u{1b} done”", "Minutes: 15", "n to deny"]
    {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
}

// S2.7
#[test]
fn the_answer_dialog_says_that_a_yes_opens_no_hours() {
    let mut model = connected(None);
    let minutes = "15".to_owned();
    model.popup = Some(LiveViewPopup::Answer { request: Box::new(time_request(1, "anna", None)), minutes });
    let screen = render_at(&mut model, 80, 24);
    assert!(!screen.contains("hours"), "{screen}");
    model.handle_input(LiveViewInput::ReplyReceived(LiveViewReply::Entries(vec![closed_racing()])));
    let screen = render_at(&mut model, 80, 24);
    assert!(screen.contains("It is closed until ") && screen.contains("doesn't open it."), "{screen}");
}

#[test]
fn a_long_notice_shows_its_command() {
    let mut model = sample();
    let command = "`shepherd grant --open-until 10:00 --entry racing --for anna`";
    let notice = format!("The request was granted. It stays closed until Sat 10:00. To open it: {command}");
    model.notice = Some((TextTone::Good, notice));
    for height in [10, 20] {
        let screen = render_at(&mut model, 80, height);
        assert!(screen.contains("--for anna`"), "{screen}");
    }
    model.notice = Some((TextTone::Good, "word ".repeat(100)));
    for height in 1..12 {
        render_at(&mut model, 20, height);
    }
}
