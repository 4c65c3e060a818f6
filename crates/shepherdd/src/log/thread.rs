//! The thread that writes the log and waits for its reader.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The number of bytes that wait for a reader: a minute of a busy daemon. Further lines are dropped and counted.
const MAX_QUEUED_BYTES: usize = 256 * 1024;

/// The number of dropped lines of this process.
static LOST_LINES: AtomicU64 = AtomicU64::new(0);

/// Returns the number of lines that were dropped since the process began.
pub(crate) fn lost_line_count() -> u64 {
    LOST_LINES.load(Ordering::Relaxed)
}

enum LogJob {
    Line(Vec<u8>),
    /// A request for a message when all earlier lines have been tried.
    Flush(Sender<()>),
}

/// The queue of lines. Adding a line never waits.
#[derive(Clone)]
pub(crate) struct LogQueue {
    jobs: Sender<LogJob>,
    queued_bytes: Arc<AtomicUsize>,
}

impl LogQueue {
    /// Adds a line, or counts it as dropped.
    pub(crate) fn enqueue(&self, line: &[u8]) {
        let before = self.queued_bytes.fetch_add(line.len(), Ordering::Relaxed);
        let fits = before.saturating_add(line.len()) <= MAX_QUEUED_BYTES;
        if !fits || self.jobs.send(LogJob::Line(line.to_vec())).is_err() {
            self.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            LOST_LINES.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the queue is written, but no longer than this.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, is_done) = channel();
        if self.jobs.send(LogJob::Flush(done)).is_ok() {
            // A late answer is ignored.
            is_done.recv_timeout(patience).ok();
        }
    }
}

/// Lines arrive whole, in one piece.
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
    /// The number of dropped lines that were reported to the reader.
    reported_lost: u64,
}

impl LogThread {
    /// Starts the thread. It ends with the process, because a thread that waits for its reader can't be stopped.
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
                // The caller may have stopped waiting.
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
        // The reader is back, and there is room for a line.
        if lost > self.reported_lost && self.queued_bytes.load(Ordering::Relaxed) == 0 {
            let count = lost - self.reported_lost;
            self.reported_lost = lost;
            tracing::warn!(count, "log lines were dropped, because standard error was not read");
        }
    }
}
