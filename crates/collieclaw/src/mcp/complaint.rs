//! What a server complains of on its standard error, for whoever looks why it does not work.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::tools::shortened;

/// Of what a server complained of before it ended.
const LONGEST: usize = 500;

/// One that has ended has said its last word; it may not have been heard yet.
const LAST_WORD: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct Complaint {
    heard: Arc<Mutex<Vec<u8>>>,
    /// Closed when there is nothing more to hear.
    end: Mutex<Receiver<()>>,
}

impl Complaint {
    /// Keeps the beginning, and reads the rest, so that the server never waits for us.
    pub(super) fn listen(from: OwnedFd) -> io::Result<Self> {
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (ended, end) = channel::<()>();
        let kept = Arc::clone(&heard);
        let listen = move || {
            let _ended_with_this = ended;
            let mut from = File::from(from);
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = (4 * LONGEST).saturating_sub(kept.len());
                kept.extend(buffer.iter().take(count.min(room)));
            }
        };
        std::thread::Builder::new().name("mcp-complaint".to_owned()).spawn(listen)?;
        Ok(Self { heard, end: Mutex::new(end) })
    }

    /// What went wrong, with the server's own words if it has said any.
    pub(super) fn added_to(&self, why: String) -> String {
        let _ = self.end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LAST_WORD);
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&heard).trim() {
            "" => why,
            said => format!("{why}; it said: {}", shortened(said, LONGEST)),
        }
    }
}
