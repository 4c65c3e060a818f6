//! Something that moves while the model thinks, so that nobody believes it hangs.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PAUSE: Duration = Duration::from_millis(100);

/// It moves until this is dropped.
pub(super) struct Spinner {
    stage: Arc<Stage>,
}

/// Whoever has the lock writes. Once it is over nobody moves any more.
#[derive(Default)]
struct Stage {
    over: Mutex<bool>,
    ended: Condvar,
}

impl Spinner {
    /// `None` where nobody would see it.
    pub(super) fn start() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let stage = Arc::new(Stage::default());
        let spinner = Self { stage: Arc::clone(&stage) };
        std::thread::Builder::new().name("spinner".to_owned()).spawn(move || stage.spin()).ok()?;
        Some(spinner)
    }
}

impl Stage {
    fn spin(&self) {
        let started = Instant::now();
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in FRAMES.iter().cycle() {
            if *over {
                return;
            }
            let seconds = started.elapsed().as_secs();
            show(&format!("\r\x1b[2m{frame} thinking, {seconds} s (Ctrl-C cancels)\x1b[0m"));
            over = self
                .ended
                .wait_timeout_while(over, PAUSE, |over| !*over)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for Spinner {
    /// Clears the line here and now: the first word of an answer does not wait for another thread to be woken.
    fn drop(&mut self) {
        let mut over = self.stage.over.lock().unwrap_or_else(PoisonError::into_inner);
        *over = true;
        show("\r\x1b[2K");
        drop(over);
        self.stage.ended.notify_one();
    }
}

fn show(text: &str) {
    // Whoever can't be shown it isn't.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
