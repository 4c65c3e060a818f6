//! The animation shown while the model thinks.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ward_terminal::{TextTone, paint};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const CLEAR_LINE: &str = "\r\x1b[2K";
const FRAME_TIME: Duration = Duration::from_millis(100);

/// A running spinner; dropping it ends the animation.
pub(super) struct Spinner {
    state: Arc<SpinnerState>,
}

/// The state shared with the animation thread. Only the holder of the lock writes to the terminal.
#[derive(Default)]
struct SpinnerState {
    stopped: Mutex<bool>,
    stop_signal: Condvar,
}

impl Spinner {
    /// Starts a spinner, or returns `None` if no terminal would show it.
    pub(super) fn start() -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let state = Arc::new(SpinnerState::default());
        let spinner = Self { state: Arc::clone(&state) };
        SPINNER_ACTIVE.store(true, Ordering::SeqCst);
        std::thread::Builder::new().name("spinner".to_owned()).spawn(move || state.spin()).ok()?;
        Some(spinner)
    }
}

impl SpinnerState {
    fn spin(&self) {
        let started = Instant::now();
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in FRAMES.iter().cycle() {
            if *stopped {
                return;
            }
            let seconds = started.elapsed().as_secs();
            let line = format!("{frame} thinking, {seconds} s (Ctrl-C cancels)");
            write_stderr(&format!("\r{}", paint(TextTone::Faint, &line)));
            stopped = self
                .stop_signal
                .wait_timeout_while(stopped, FRAME_TIME, |stopped| !*stopped)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for Spinner {
    /// Clears the line on the calling thread, so that the first word of an answer doesn't wait for the animation thread.
    fn drop(&mut self) {
        let mut stopped = self.state.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        *stopped = true;
        write_stderr(CLEAR_LINE);
        SPINNER_ACTIVE.store(false, Ordering::SeqCst);
        drop(stopped);
        self.state.stop_signal.notify_one();
    }
}

fn write_stderr(text: &str) {
    // A failed write to the terminal is ignored.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The state of the current spinner. One process has one terminal, so at most one spinner is active.
static SPINNER_ACTIVE: AtomicBool = AtomicBool::new(false);

/// A writer to standard error for other output: it overwrites the spinner, which continues on the next line.
pub struct SpinnerAwareWriter<W> {
    out: W,
    at_line_start: bool,
}

impl<W: Write> SpinnerAwareWriter<W> {
    /// Wraps `out`, which must be the stream that the spinner writes to.
    pub fn new(out: W) -> Self {
        Self { out, at_line_start: true }
    }
}

impl<W: Write> Write for SpinnerAwareWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.at_line_start && SPINNER_ACTIVE.load(Ordering::SeqCst) {
            self.out.write_all(CLEAR_LINE.as_bytes())?;
        }
        self.out.write_all(bytes)?;
        self.at_line_start = bytes.ends_with(b"\n");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
