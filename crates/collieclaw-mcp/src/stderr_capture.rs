//! Captures the error output of an MCP server, to explain why the server failed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collieclaw_agent::tools::truncate_text;

use super::failure::McpFailure;

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

    /// Returns the reason why the server ended, with its error output, if any.
    pub(super) fn explain(&self, why: String) -> McpFailure {
        let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(STDERR_DRAIN_TIMEOUT);
        let captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        explain_end(why, String::from_utf8_lossy(&captured).trim())
    }
}

fn explain_end(why: String, stderr: &str) -> McpFailure {
    if stderr.is_empty() {
        return McpFailure::Other(why);
    }
    let shown = truncate_text(stderr, MAX_STDERR_CHARS);
    let why = format!("{why}; its error output: {shown}");
    // The error output of a server is free text, and these are the kernel's words in it.
    if ["Permission denied", "No such file"].iter().any(|error| shown.contains(error)) {
        McpFailure::FileNotReadable(why)
    } else {
        McpFailure::Other(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_output_about_a_file_is_distinguished_from_other_output() {
        let explain = |stderr| explain_end("the server ended".to_owned(), stderr);
        assert_eq!(explain(""), McpFailure::Other("the server ended".to_owned()));
        assert_eq!(
            explain("out of luck"),
            McpFailure::Other("the server ended; its error output: out of luck".to_owned())
        );
        for error in ["[Errno 13] Permission denied: '/x'", "x: No such file or directory"] {
            let why = format!("the server ended; its error output: {error}");
            assert_eq!(explain(error), McpFailure::FileNotReadable(why));
        }
    }
}
