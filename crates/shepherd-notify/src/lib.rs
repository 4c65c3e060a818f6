//! `shepherd-notify`: shows Shepherd's warnings as notifications on the desktop of a child, and children's requests on
//! the desktop of a parent. Buttons ask for more time, and answer a request.
//!
//! The program is a client of the daemon's socket like any other. It decides and enforces nothing, and keeps no state
//! that matters: killing it ends the notifications and nothing else.
//!
//! Start with `notifier.rs`, the loop. `announcement.rs` decides what to show and is pure; `desktop.rs` talks to the
//! notification service over D-Bus, `tray.rs` to the tray, and `terminal.rs` writes to a text console.

mod announcement;
mod desktop;
mod listed_entry;
mod minute_timer;
mod notifier;
mod recipient;
mod screen;
mod sys;
mod terminal;
mod tray;
mod voice;
mod words;

pub use notifier::{NotifierError, NotifierOptions, run};
pub use voice::VoiceOptions;
