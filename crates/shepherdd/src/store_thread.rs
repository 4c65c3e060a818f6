//! The store on a thread of its own: a slow or full disk never makes the loop wait (S13.3b).
//!
//! Batches are made durable in the order in which they come. One that can't be written is kept and tried again before
//! the next, so that nothing is lost or overtaken; until then everything that would have been granted is refused. A
//! store that can't even be opened is tried in the same way; until its contents are known, only what is for the audit
//! log is kept for it. A disk that does not answer at all is noticed by the line of batches before it, which is bounded.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::{StoreWrite, StoredState};
use shepherd_store::{SqliteStore, Store, StoreError, StoreOpenError, StoreOpenReport};
use shepherd_util::ErrorChain;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

mod mailbox;
mod pending;

use mailbox::{
    StoreEnqueueOutcome, StoreJob, StoreJobReceiver, StoreJobSender, StoreMailboxClosed, store_mailbox,
};
use pending::{BatchAttempt, PendingBatch};

/// How long to wait before trying again what could not be written. Long enough to be no burden, short enough that
/// nobody has to restart a daemon after making room on a disk.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// How long at most, when it has failed again and again. Whoever asks for something makes it be tried at once.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Batches that are made durable together: enough that no flood of them gets ahead of the disk, few enough that their
/// audit lines, which come all at once then, don't make subscribers fall behind.
const MAX_MERGED_BATCHES: usize = 32;

/// What came of a job.
#[derive(Debug)]
pub(crate) enum StoreReport {
    /// A store that could not be read before can be. Until the loop says that it goes by this, nothing is written
    /// that would change it.
    Opened {
        /// What it knows.
        stored: Box<StoredState>,
        /// How it was found.
        opened: Box<StoreOpenReport>,
    },
    /// Every batch up to this one is on disk.
    Durable {
        /// Its number.
        up_to: u64,
        /// The lines that are new in the audit log.
        lines: Vec<AuditRecord>,
    },
    /// This batch is not on disk. It will be tried again.
    Failed {
        /// Its number.
        batch: u64,
        /// Why, for people.
        detail: String,
    },
    /// Lines of the audit log, as asked for.
    Audit {
        /// The number of the question.
        query_id: u64,
        /// The lines, or why there are none, for people.
        lines: Result<Vec<AuditRecord>, String>,
    },
}

/// Who waits for a batch to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchWaiter {
    /// The loop has something to do when it is.
    EventLoop,
    /// Nobody. Unless it has lines for the audit log, or ends a trouble, the loop is not woken for it.
    Nobody,
}

/// What became of a batch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchSubmission {
    /// It is reported under this number.
    Queued(u64),
    /// Too many wait already. It is not lost, but nobody hears of it by itself.
    Overloaded,
}

/// The loop's end of it.
pub(crate) struct StoreThread {
    jobs: StoreJobSender,
    thread: JoinHandle<()>,
    /// For what can't even be tried.
    reports: UnboundedSender<StoreReport>,
    contents: StoreContentsState,
    last_number: u64,
}

/// Why nothing more can be written or read.
const THREAD_GONE: &str = "the store's thread is gone";

/// Why nothing more is granted while too many batches wait.
pub(crate) const DISK_UNRESPONSIVE: &str = "the disk does not answer";

impl StoreThread {
    /// Puts a store on its thread; `None` is one that can't be read yet.
    pub(crate) fn start(
        folder: PathBuf,
        store: Option<SqliteStore>,
    ) -> std::io::Result<(Self, UnboundedReceiver<StoreReport>)> {
        let (jobs, todo) = store_mailbox();
        let (reports, done) = unbounded_channel();
        let sequence = store.as_ref().map_or(0, Store::audit_end);
        let contents = if store.is_some() { StoreContentsState::Known } else { StoreContentsState::Unknown };
        let (waiting, patience) = (PendingBatch::default(), RETRY_DELAY);
        let open: StoreOpener = Box::new(move || {
            let (store, opened) = SqliteStore::open(&folder, Timestamp::now())?;
            Ok((Box::new(store), opened))
        });
        let store = store.map(|store| -> Box<dyn Store> { Box::new(store) });
        let worker = StoreWorker {
            open,
            store,
            contents,
            sequence,
            reports: reports.clone(),
            attempt: None,
            pending: waiting,
            retry_delay: patience,
        };
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || worker.run(&todo))?;
        Ok((Self { jobs, thread, reports, contents, last_number: 0 }, done))
    }

    /// Makes these durable. Never waits.
    pub(crate) fn submit(&mut self, mut writes: Vec<StoreWrite>, awaited: BatchWaiter) -> BatchSubmission {
        if self.contents == StoreContentsState::Unknown {
            // Whoever does not know what the store holds must not write over it.
            writes.retain(|write| matches!(write, StoreWrite::AppendAudit(_)));
        }
        let batch = self.next_number();
        match self.jobs.enqueue_batch(batch, writes, awaited) {
            StoreEnqueueOutcome::Queued => BatchSubmission::Queued(batch),
            StoreEnqueueOutcome::Full => BatchSubmission::Overloaded,
            StoreEnqueueOutcome::ReceiverGone => {
                // The loop has its own end as long as it runs.
                self.reports.send(StoreReport::Failed { batch, detail: THREAD_GONE.to_owned() }).ok();
                BatchSubmission::Queued(batch)
            }
        }
    }

    /// Whether the disk keeps up with what it is given. If not, there will be another report.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.jobs.has_caught_up()
    }

    /// The loop goes by what the store knows.
    pub(crate) fn mark_contents_known(&mut self) {
        self.contents = StoreContentsState::Known;
    }

    /// Reads lines of the audit log. Returns the number under which they are reported, or why they will not be, for
    /// people.
    pub(crate) fn read_audit(&mut self, after: Option<u64>, limit: u32) -> Result<u64, &'static str> {
        let question = self.next_number();
        match self.jobs.enqueue_audit_read(question, after, limit) {
            StoreEnqueueOutcome::Queued => Ok(question),
            StoreEnqueueOutcome::Full => Err(DISK_UNRESPONSIVE),
            StoreEnqueueOutcome::ReceiverGone => Err(THREAD_GONE),
        }
    }

    /// Waits until everything that was handed over has been tried, and ends the thread.
    pub(crate) fn finish(self) {
        drop(self.jobs);
        self.thread.join().ok();
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

/// How the store is opened again.
type StoreOpener = Box<dyn FnMut() -> Result<(Box<dyn Store>, StoreOpenReport), StoreOpenError> + Send>;

struct StoreWorker {
    open: StoreOpener,
    /// `None` after a failure that left unsure what is on the disk, until it could be looked at.
    store: Option<Box<dyn Store>>,
    contents: StoreContentsState,
    /// The number of the last line of the audit log that is known to be there.
    sequence: u64,
    reports: UnboundedSender<StoreReport>,
    /// What was given to the store and may or may not be on disk.
    attempt: Option<BatchAttempt>,
    /// What came since.
    pending: PendingBatch,
    /// How long it is until what waits is tried again.
    retry_delay: Duration,
}

/// Whether it is known what the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreContentsState {
    /// It could not be read.
    Unknown,
    /// The loop goes by it, or has been told.
    Known,
}

impl StoreWorker {
    fn run(mut self, todo: &StoreJobReceiver) {
        let mut next = None;
        loop {
            let job = next.take().map_or_else(|| self.next_job(todo), |job| Ok(Some(job)));
            match job {
                Ok(Some(StoreJob::Write(batch))) => {
                    self.pending.absorb(*batch);
                    next = self.merge_queued_batches(todo);
                    self.try_to_write();
                }
                Ok(Some(StoreJob::ReadAudit { query_id: question, after, limit })) => {
                    let lines = self.read_audit(after, limit);
                    self.report(StoreReport::Audit { query_id: question, lines });
                }
                Ok(None) => {
                    if !self.try_to_write() {
                        self.retry_delay = (self.retry_delay * 2).min(MAX_RETRY_DELAY);
                    }
                }
                Err(StoreMailboxClosed) => return self.flush_before_exit(),
            }
        }
    }

    /// What waits is tried once more, and if that fails, it is told that it is lost.
    fn flush_before_exit(&mut self) {
        if self.is_idle() {
            return;
        }
        if let Err(detail) = self.flush() {
            let tried = self.attempt.as_ref().map_or(0, |attempt| attempt.writes.len());
            let count = tried + self.pending.write_count();
            tracing::error!(count, detail, "what could not be written is lost");
        }
    }

    /// Whether there is nothing to write.
    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.attempt.is_none()
    }

    /// Whether nothing waits any more.
    fn try_to_write(&mut self) -> bool {
        let Err(detail) = self.flush() else { return true };
        // Whoever heard of the trouble has to hear of its end.
        self.pending.set_awaited();
        let tried = self.attempt.as_mut().map(|attempt| {
            attempt.is_awaited = true;
            attempt.up_to
        });
        self.report(StoreReport::Failed { batch: self.pending.up_to().max(tried.unwrap_or(0)), detail });
        false
    }

    /// The next job, or none when it is time to try again what waits.
    fn next_job(&self, todo: &StoreJobReceiver) -> Result<Option<StoreJob>, StoreMailboxClosed> {
        if self.is_idle() { todo.recv().map(Some) } else { todo.recv_timeout(self.retry_delay) }
    }

    /// Takes what has come meanwhile, to be made durable together: a disk is slower than a client that asks for what
    /// it can't have, and others would wait behind it. Returns the first job that is something else.
    fn merge_queued_batches(&mut self, todo: &StoreJobReceiver) -> Option<StoreJob> {
        for _ in 0..MAX_MERGED_BATCHES {
            match todo.try_recv()? {
                StoreJob::Write(batch) => self.pending.absorb(*batch),
                other @ StoreJob::ReadAudit { .. } => return Some(other),
            }
        }
        None
    }

    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, String> {
        let store = self.store.as_ref().ok_or("the store can't be read now")?;
        store.read_audit(after, limit).map_err(|error| ErrorChain(&error).to_string())
    }

    /// Tries to write all that waits: first what was tried before, then what came meanwhile.
    fn flush(&mut self) -> Result<(), String> {
        let mut store = match self.store.take() {
            Some(store) => store,
            None => self.reopen_store()?,
        };
        loop {
            let next = self.attempt.take().or_else(|| self.pending.take_attempt(store.generation()));
            let Some(mut attempt) = next else { break };
            // One that seemed to fail may be there all the same.
            let is_there = store.generation() > attempt.generation;
            if !is_there && let Err(error) = attempt.apply_to(&mut *store) {
                self.attempt = Some(attempt);
                if !matches!(error, StoreError::UncertainCommit { .. } | StoreError::Damaged { .. }) {
                    self.store = Some(store);
                }
                return Err(ErrorChain(&error).to_string());
            }
            self.report_written(attempt, &*store);
        }
        self.store = Some(store);
        Ok(())
    }

    fn reopen_store(&mut self) -> Result<Box<dyn Store>, String> {
        let (store, opened) = (self.open)().map_err(|error| ErrorChain(&error).to_string())?;
        if self.contents == StoreContentsState::Unknown {
            let stored = Box::new(store.load().map_err(|error| ErrorChain(&error).to_string())?);
            self.sequence = store.audit_end();
            self.contents = StoreContentsState::Known;
            self.report(StoreReport::Opened { stored, opened: Box::new(opened) });
        }
        Ok(store)
    }

    /// What was tried is on disk.
    fn report_written(&mut self, attempt: BatchAttempt, store: &dyn Store) {
        self.retry_delay = RETRY_DELAY;
        let BatchAttempt { up_to, writes, is_awaited, .. } = attempt;
        let lines = writes.into_iter().filter_map(|write| match write {
            StoreWrite::AppendAudit(line) => Some(*line),
            StoreWrite::AddUsage { .. } | StoreWrite::SetCooldown { .. } | StoreWrite::SaveSnapshot(_) => {
                None
            }
        });
        let lines: Vec<AuditEvent> = lines.collect();
        let end = store.audit_end();
        let before = std::mem::replace(&mut self.sequence, end);
        let grown = end.saturating_sub(before);
        let lines = if grown == lines.len() as u64 {
            (before + 1..).zip(lines).map(|(sequence, line)| AuditRecord { sequence, line }).collect()
        } else {
            // The log had something of its own to tell as well.
            let grown = u32::try_from(grown).unwrap_or(u32::MAX);
            store.read_audit(Some(before), grown).unwrap_or_default()
        };
        if is_awaited || !lines.is_empty() {
            self.report(StoreReport::Durable { up_to, lines });
        }
    }

    fn report(&self, report: StoreReport) {
        // The loop is gone only when the daemon is.
        self.reports.send(report).ok();
    }
}

#[cfg(test)]
mod tests;
