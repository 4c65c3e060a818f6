//! Something that moves while the model thinks, so that nobody believes it hangs.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PAUSE: Duration = Duration::from_millis(100);

/// It moves until this is dropped.
pub(super) struct Spinner {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// `None` where nobody would see it.
    pub(super) fn start() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let (end, ended) = channel();
        let started = Instant::now();
        let spin = move || {
            for frame in FRAMES.iter().cycle() {
                let mut err = std::io::stderr().lock();
                let _ = write!(
                    err,
                    "\r\x1b[2m{frame} thinking, {} s (Ctrl-C cancels)\x1b[0m",
                    started.elapsed().as_secs()
                );
                let _ = err.flush();
                drop(err);
                if ended.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        };
        let thread = std::thread::Builder::new().name("spinner".to_owned()).spawn(spin).ok()?;
        Some(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
