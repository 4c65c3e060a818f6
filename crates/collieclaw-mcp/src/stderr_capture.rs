//! What a server complains of on its standard error, for whoever looks why it does not work.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collieclaw_agent::tools::truncate_text;

/// Of what a server complained of before it ended.
const MAX_STDERR_CHARS: usize = 500;

/// One that has ended has said its last word; it may not have been heard yet.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct StderrCapture {
    captured: Arc<Mutex<Vec<u8>>>,
    /// Closed when there is nothing more to hear.
    end: Mutex<Receiver<()>>,
}

impl StderrCapture {
    /// Keeps the beginning, and reads the rest, so that the server never waits for us.
    pub(super) fn start(from: OwnedFd) -> io::Result<Self> {
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (ended, end) = channel::<()>();
        let kept = Arc::clone(&heard);
        let listen = move || {
            let _ended_with_this = ended;
            let mut from = File::from(from);
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = (4 * MAX_STDERR_CHARS).saturating_sub(kept.len());
                kept.extend(buffer.iter().take(count.min(room)));
            }
        };
        std::thread::Builder::new().name("mcp-complaint".to_owned()).spawn(listen)?;
        Ok(Self { captured: heard, end: Mutex::new(end) })
    }

    /// What went wrong, with the server's own words if it has said any.
    pub(super) fn append_to(&self, why: String) -> String {
        let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(STDERR_DRAIN_TIMEOUT);
        let heard = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&heard).trim() {
            "" => why,
            said => format!("{why}; it said: {}", truncate_text(said, MAX_STDERR_CHARS)),
        }
    }
}
