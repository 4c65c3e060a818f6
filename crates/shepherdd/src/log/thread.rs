//! The one who waits for whoever reads the log.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Bytes that wait for a reader. A minute of a busy daemon; beyond it lines are lost and counted.
const MAX_QUEUED_BYTES: usize = 256 * 1024;

/// Lines that nobody will ever read, of this process.
static LOST_LINES: AtomicU64 = AtomicU64::new(0);

/// How many lines of the log were lost since the process began, because nobody took them.
pub(crate) fn lost_line_count() -> u64 {
    LOST_LINES.load(Ordering::Relaxed)
}

enum LogJob {
    Line(Vec<u8>),
    /// Tells when everything before it has been tried.
    Flush(Sender<()>),
}

/// Where lines are left. Never waits.
#[derive(Clone)]
pub(crate) struct LogQueue {
    jobs: Sender<LogJob>,
    queued_bytes: Arc<AtomicUsize>,
}

impl LogQueue {
    /// Leaves a line, or counts it as lost.
    pub(crate) fn enqueue(&self, line: &[u8]) {
        let before = self.queued_bytes.fetch_add(line.len(), Ordering::Relaxed);
        let fits = before.saturating_add(line.len()) <= MAX_QUEUED_BYTES;
        if !fits || self.jobs.send(LogJob::Line(line.to_vec())).is_err() {
            self.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            LOST_LINES.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was left is written, but no longer than this.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, is_done) = channel();
        if self.jobs.send(LogJob::Flush(done)).is_ok() {
            // Late or never: either way it was long enough.
            is_done.recv_timeout(patience).ok();
        }
    }
}

/// Whole lines come in one piece.
impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.enqueue(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct LogThread {
    file: File,
    jobs: Receiver<LogJob>,
    queued_bytes: Arc<AtomicUsize>,
    /// How many lost lines the reader has been told of.
    reported_lost: u64,
}

impl LogThread {
    /// Starts it. It ends with the process: one that waits for its reader can't be told to.
    pub(super) fn start(file: File) -> io::Result<LogQueue> {
        let (sender, jobs) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let thread =
            Self { file, jobs, queued_bytes: Arc::clone(&waiting), reported_lost: lost_line_count() };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || thread.run())?;
        Ok(LogQueue { jobs: sender, queued_bytes: waiting })
    }

    fn run(mut self) {
        while let Ok(job) = self.jobs.recv() {
            match job {
                LogJob::Line(line) => self.write(&line),
                // Whoever asked may have lost patience.
                LogJob::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&mut self, line: &[u8]) {
        let written = self.file.write_all(line);
        self.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        if written.is_err() {
            LOST_LINES.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lost = lost_line_count();
        // There is a reader again, and room for a line.
        if lost > self.reported_lost && self.queued_bytes.load(Ordering::Relaxed) == 0 {
            let count = lost - self.reported_lost;
            self.reported_lost = lost;
            tracing::warn!(count, "lines of the log were lost, because nobody took them");
        }
    }
}
