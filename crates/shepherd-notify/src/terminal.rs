//! Messages on a text console, such as a virtual terminal or an ssh login.
//!
//! The process writes to the terminal that it was started from, and to no other. A terminal that the person has stopped
//! with Ctrl-S, or whose line is slow, misses a message; it never holds the process up.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use shepherd_api::Command;
use shepherd_util::DurationText;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use ward_terminal::{escape_line, escape_lines};

use crate::announcement::{Announcement, AnnouncementSubject, AnnouncementUrgency};
use crate::sys;

/// The terminal of this process, whatever its input and output are.
const OWN_TERMINAL: &str = "/dev/tty";

/// The number of subjects that are remembered.
const MOST_SHOWN: usize = 64;

/// The terminal of a login.
pub(crate) struct TextConsole {
    terminal: AsyncFd<OwnedFd>,
    /// The subjects of announcements that still hold.
    shown: BTreeSet<AnnouncementSubject>,
}

impl TextConsole {
    /// Opens the terminal that this process was started from.
    pub(crate) fn open() -> io::Result<Self> {
        // A description of its own, so that other programs at the terminal still wait when they write.
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let terminal = rustix::fs::open(OWN_TERMINAL, flags, Mode::empty())?;
        // Typing doesn't wake the process; the end of the line does.
        let terminal = sys::register(terminal, Interest::PRIORITY)?;
        Ok(Self { terminal, shown: BTreeSet::new() })
    }

    /// Writes an announcement.
    pub(crate) fn show(&mut self, announcement: Announcement) -> io::Result<()> {
        let text = message_text(&announcement);
        if self.shown.len() >= MOST_SHOWN {
            self.shown.pop_first();
        }
        self.shown.insert(announcement.subject);
        match rustix::io::write(self.terminal.get_ref(), text.as_bytes()) {
            // The terminal is stopped or slow.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether an announcement on a subject was written and still holds.
    pub(crate) fn is_shown(&self, subject: &AnnouncementSubject) -> bool {
        self.shown.contains(subject)
    }

    /// Forgets the announcements that no longer hold.
    pub(crate) fn forget_stale(&mut self, holds: impl Fn(&AnnouncementSubject) -> bool) {
        self.shown.retain(|subject| holds(subject));
    }

    /// Waits until the terminal is gone.
    pub(crate) async fn wait_for_hangup(&self) {
        loop {
            let Ok(mut guard) = self.terminal.ready(Interest::PRIORITY).await else { return };
            if guard.ready().is_read_closed() {
                return;
            }
            guard.clear_ready();
        }
    }
}

/// Returns an announcement as a block of lines, like the messages of `wall`. A game that draws the whole screen overwrites
/// it, so an important one also rings the bell.
fn message_text(announcement: &Announcement) -> String {
    let Announcement { title, body, urgency, buttons, .. } = announcement;
    let bell = if *urgency == AnnouncementUrgency::Passing { "" } else { "\u{7}" };
    // The title of a warning is the label, which its message has, too.
    let title =
        if body.contains(title.as_str()) { String::new() } else { format!("{}: ", escape_line(title)) };
    let mut lines = vec![format!("Shepherd: {title}{}", escape_lines(body))];
    lines.extend(buttons.iter().filter_map(|button| {
        Some(format!("{}: {}", escape_line(&button.label), command_text(&button.command)?))
    }));
    let lines = lines.join("\n").replace('\n', "\r\n");
    format!("\r\n{bell}{lines}\r\n")
}

/// Returns the command line that does the same as a button.
fn command_text(command: &Command) -> Option<String> {
    match command {
        Command::RequestTime { entry_id, minutes, .. } => {
            let length = DurationText(std::time::Duration::from_secs(u64::from(*minutes) * 60));
            Some(format!("shepherd request {entry_id} {length}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announcement::AnswerButton;
    use shepherd_util::SessionId;

    // S19.3
    #[test]
    fn a_message_has_no_control_characters_and_names_the_command() {
        let command = Command::RequestTime {
            entry_id: "tuxkart".parse().unwrap(),
            minutes: 10,
            note: None,
            profile: None,
        };
        let announcement = Announcement {
            subject: AnnouncementSubject::Session(SessionId::from_random(1)),
            title: "Kart\u{1b}]0;x\u{7}".to_owned(),
            body: "Noch 5 Minuten.\nGleich\u{1b}[2J".to_owned(),
            urgency: AnnouncementUrgency::Important,
            buttons: vec![AnswerButton { label: "Um 10 Minuten mehr bitten".to_owned(), command }],
        };
        assert_eq!(
            message_text(&announcement),
            "\r\n\u{7}Shepherd: Kart\\u{1b}]0;x\\u{7}: Noch 5 Minuten.\r\nGleich\\u{1b}[2J\r\n\
             Um 10 Minuten mehr bitten: shepherd request tuxkart 10m\r\n"
        );
    }
}
