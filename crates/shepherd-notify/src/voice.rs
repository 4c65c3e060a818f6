//! Optional speech and sounds, by programs that the desktop may have. None is waited for: what can't be played now is left
//! out.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use shepherd_api::Language;

use crate::announcement::{Announcement, AnnouncementUrgency};

/// The longest text that is spoken, in bytes. It fits the pipe to the program, so that writing never waits.
const MOST_SPOKEN: usize = 1000;

/// The folder of the sound theme that every desktop has.
const SOUND_FOLDER: &str = "/usr/share/sounds/freedesktop/stereo";

/// What is played beside the notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceOptions {
    /// Read the notifications aloud.
    pub speaks: bool,
    /// Play a sound with each notification.
    pub sounds: bool,
}

/// Plays announcements.
#[derive(Debug, Default)]
pub(crate) struct AnnouncementVoice {
    options: VoiceOptions,
    speech: PlayingProgram,
    sound: PlayingProgram,
}

/// A program that is playing, or has just ended. The next one replaces it.
#[derive(Debug, Default)]
struct PlayingProgram(Option<Child>);

impl AnnouncementVoice {
    pub(crate) fn new(options: VoiceOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Plays an announcement, in place of an earlier one that still plays.
    pub(crate) fn play(&mut self, announcement: &Announcement, language: Language) {
        if self.options.sounds {
            let commands = sound_commands(announcement.urgency);
            self.sound.replace(commands.into_iter().find_map(|mut command| command.spawn().ok()));
        }
        if self.options.speaks {
            let text = spoken_text(announcement);
            let speak = |mut command: Command| {
                let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
                // A program that doesn't listen says nothing.
                let _ = child.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
                Some(child)
            };
            self.speech.replace(speech_commands(language).into_iter().find_map(speak));
        }
    }

    /// Releases the programs that have ended.
    pub(crate) fn release_ended(&mut self) {
        self.speech.release_ended();
        self.sound.release_ended();
    }
}

impl PlayingProgram {
    fn replace(&mut self, next: Option<Child>) {
        if let Some(mut before) = std::mem::replace(&mut self.0, next) {
            // Both fail only if it has ended.
            let _ = before.kill();
            let _ = before.wait();
        }
    }

    fn release_ended(&mut self) {
        if self.0.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
            self.0 = None;
        }
    }
}

impl Drop for PlayingProgram {
    fn drop(&mut self) {
        self.replace(None);
    }
}

/// Returns the programs that can speak, best first. They get the text as input, so that no text is taken for an option and
/// no other user sees it in the list of processes.
fn speech_commands(language: Language) -> [Command; 2] {
    let code = language.code();
    [program("spd-say", &["--pipe-mode", "--language", code]), program("espeak-ng", &["-v", code, "--stdin"])]
}

/// Returns the programs that can play the sound of an urgency, best first.
fn sound_commands(urgency: AnnouncementUrgency) -> [Command; 2] {
    let name = match urgency {
        AnnouncementUrgency::Passing => "message",
        AnnouncementUrgency::Important | AnnouncementUrgency::Lasting => "dialog-warning",
    };
    [
        program("canberra-gtk-play", &["--id", name]),
        program("paplay", &[&format!("{SOUND_FOLDER}/{name}.oga")]),
    ]
}

fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the text to speak, in one line. The title of a warning is the label, which its message has, too.
fn spoken_text(announcement: &Announcement) -> String {
    let Announcement { title, body, .. } = announcement;
    let text = if body.contains(title.as_str()) { body.clone() } else { format!("{title}. {body}") };
    let one_line: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    // `spd-say` takes a line with this mark as a command.
    let spoken = one_line.replace("!-!", " ");
    let end = spoken.floor_char_boundary(MOST_SPOKEN);
    format!("{}\n", spoken.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announcement::AnnouncementSubject;
    use shepherd_util::SessionId;

    fn announcement(title: &str, body: &str) -> Announcement {
        Announcement {
            subject: AnnouncementSubject::Session(SessionId::from_random(1)),
            title: title.to_owned(),
            body: body.to_owned(),
            urgency: AnnouncementUrgency::Important,
            buttons: Vec::new(),
        }
    }

    // S19.3
    #[test]
    fn the_title_is_spoken_unless_the_message_has_it() {
        assert_eq!(
            spoken_text(&announcement("Maths", "Maths ends in 5 minutes.")),
            "Maths ends in 5 minutes.\n"
        );
        assert_eq!(spoken_text(&announcement("Yes", "More\ntime.")), "Yes. More time.\n");
    }

    #[test]
    fn a_label_is_no_command_to_the_speech_program() {
        assert_eq!(spoken_text(&announcement("", "!-!SET self VOLUME 100")), " SET self VOLUME 100\n");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let spoken = spoken_text(&announcement("", &"ä".repeat(2_000)));
        assert_eq!(spoken, format!("{}\n", "ä".repeat(MOST_SPOKEN / 2)));
    }
}
