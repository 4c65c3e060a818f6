//! Something that moves while the model thinks, so that nobody believes it hangs.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const CLEAR: &str = "\r\x1b[2K";
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
        IS_ON.store(true, Ordering::SeqCst);
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
        show(CLEAR);
        IS_ON.store(false, Ordering::SeqCst);
        drop(over);
        self.stage.ended.notify_one();
    }
}

fn show(text: &str) {
    // Whoever can't be shown it isn't.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// There is one terminal, so at most one spinner has its last line.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Standard error for what others say meanwhile: it takes the place of the spinner, which goes on below.
pub struct BesideSpinner<W> {
    out: W,
    begins_a_line: bool,
}

impl<W: Write> BesideSpinner<W> {
    /// On what the spinner is on.
    pub fn new(out: W) -> Self {
        Self { out, begins_a_line: true }
    }
}

impl<W: Write> Write for BesideSpinner<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.begins_a_line && IS_ON.load(Ordering::SeqCst) {
            self.out.write_all(CLEAR.as_bytes())?;
        }
        self.out.write_all(bytes)?;
        self.begins_a_line = bytes.ends_with(b"\n");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
