//! Captures the error output of an MCP server, to explain why the server failed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collieclaw_agent::tools::truncate_text;

const MAX_STDERR_CHARS: usize = 500;

/// The output of a server that has ended may still be in the pipe.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The beginning of a server's error output.
pub(super) struct StderrCapture {
    captured: Arc<Mutex<Vec<u8>>>,
    /// Closed when the error output has ended.
    end: Mutex<Receiver<()>>,
}

impl StderrCapture {
    /// Starts a thread that keeps the beginning of the output and discards the rest, so the server never
    /// blocks.
    pub(super) fn start(from: OwnedFd) -> io::Result<Self> {
        let captured: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (ended, end) = channel::<()>();
        let kept = Arc::clone(&captured);
        let read_all = move || {
            let _closed_with_this_thread = ended;
            let mut from = File::from(from);
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = (4 * MAX_STDERR_CHARS).saturating_sub(kept.len());
                kept.extend(buffer.iter().take(count.min(room)));
            }
        };
        std::thread::Builder::new().name("mcp-stderr".to_owned()).spawn(read_all)?;
        Ok(Self { captured, end: Mutex::new(end) })
    }

    /// Appends the server's error output, if any, to an error message.
    pub(super) fn append_to(&self, why: String) -> String {
        let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(STDERR_DRAIN_TIMEOUT);
        let captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&captured).trim() {
            "" => why,
            text => format!("{why}; its error output: {}", truncate_text(text, MAX_STDERR_CHARS)),
        }
    }
}
