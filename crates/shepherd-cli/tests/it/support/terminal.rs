//! A real terminal for tests, run by a private tmux server.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use rustix::fs::OFlags;
use rustix::process::Pid;
use rustix::termios::tcgetwinsize;
use tempfile::TempDir;

use super::{becomes_true_in_time, wait_until, zone_at_noon};

pub(crate) struct TmuxTerminal {
    folder: TempDir,
}

impl TmuxTerminal {
    /// Runs a shell command in a terminal of this size. Afterwards the terminal shows `EXIT` with the code, and stays open.
    pub(crate) fn run(width: u16, height: u16, line: &str) -> Self {
        let terminal = Self { folder: tempfile::Builder::new().prefix("tm-").tempdir_in("/tmp").unwrap() };
        let line = format!("{line}; echo EXIT $?; exec sleep 600");
        let (width, height) = (width.to_string(), height.to_string());
        terminal.tmux(&["new-session", "-d", "-x", &width, "-y", &height, &line]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.folder.path().join("socket"))
            .args(["-f", "/dev/null"])
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", zone_at_noon())
            .env("SHELL", "/bin/sh")
            .output()
            .expect("tmux is missing; `cargo xtask setup` installs it");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// Waits until the screen shows a text, and returns the screen.
    pub(crate) fn wait_for_text(&self, text: &str) -> String {
        let mut screen = String::new();
        let is_shown = becomes_true_in_time(|| {
            screen = self.screen();
            screen.contains(text)
        });
        assert!(is_shown, "the screen does not show `{text}`:\n{screen}");
        screen
    }

    /// Waits until the screen no longer shows a text.
    pub(crate) fn wait_until_hidden(&self, text: &str) {
        wait_until(&format!("`{text}` goes away"), || !self.screen().contains(text));
    }

    /// Returns the pid of the program in the terminal.
    pub(crate) fn program(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap()).unwrap()
    }

    fn device(&self) -> File {
        let path = self.tmux(&["display-message", "-p", "#{pane_tty}"]);
        File::options()
            .write(true)
            .custom_flags(OFlags::NOCTTY.bits().cast_signed())
            .open(path.trim())
            .unwrap()
    }

    /// Writes to the terminal as another program does.
    pub(crate) fn write(&self, text: &str) {
        self.device().write_all(text.as_bytes()).unwrap();
    }

    /// Returns the height that programs in the terminal are told. tmux tells them a moment after a resize.
    pub(crate) fn kernel_height(&self) -> u16 {
        tcgetwinsize(self.device()).unwrap().ws_row
    }
}

impl Drop for TmuxTerminal {
    fn drop(&mut self) {
        let _ =
            Command::new("tmux").arg("-S").arg(self.folder.path().join("socket")).arg("kill-server").output();
    }
}
