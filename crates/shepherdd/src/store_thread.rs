//! Runs the store on a thread of its own: a slow or full disk never delays the loop (S13.3b).
//!
//! Batches are written in order. A batch that fails is kept and retried before the next one, so that nothing is lost or
//! reordered; until then every grant is refused. A store that can't be opened is retried in the same way; until its
//! content is known, only audit events are kept for it. A disk that doesn't answer at all is noticed by the queue of
//! batches, which is bounded.

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

/// The delay before a retry: long enough to be no burden, short enough that no restart is needed after space is freed
/// on a disk.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The longest delay after repeated failures. A client's request triggers a retry at once.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The number of batches that are written together: enough to keep up with a flood, few enough that their audit
/// records, which arrive at once, don't make subscribers fall behind.
const MAX_MERGED_BATCHES: usize = 32;

/// A report to the loop.
#[derive(Debug)]
pub(crate) enum StoreReport {
    /// A store that could not be read before is open. Until the loop has adopted its state, nothing is written that
    /// would change it.
    Opened { stored: Box<StoredState>, opened: Box<StoreOpenReport> },
    /// Every batch up to this one is on disk.
    Durable { up_to: u64, lines: Vec<AuditRecord> },
    /// This batch is not on disk and will be retried.
    Failed {
        batch: u64,
        /// The cause, for people.
        detail: String,
    },
    /// Audit records, as requested.
    Audit {
        query_id: u64,
        /// The records, or the cause of the failure for people.
        lines: Result<Vec<AuditRecord>, String>,
    },
}

/// The reader of a batch's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchWaiter {
    /// The loop acts on the outcome.
    EventLoop,
    /// The loop is not woken, unless the batch has audit events or ends a failure.
    Nobody,
}

/// The result of queueing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchSubmission {
    /// A report with this number will follow.
    Queued(u64),
    /// The queue is full. The batch isn't lost, but gets no report of its own.
    Overloaded,
}

/// The loop's handle to the thread.
pub(crate) struct StoreThread {
    jobs: StoreJobSender,
    thread: JoinHandle<()>,
    reports: UnboundedSender<StoreReport>,
    contents: StoreContentsState,
    last_number: u64,
}

/// The cause if the thread is gone.
const THREAD_GONE: &str = "the thread of the store has ended";

/// The cause while too many batches wait.
pub(crate) const DISK_UNRESPONSIVE: &str = "the disk does not answer";

impl StoreThread {
    /// Starts the thread with a store; `None` is a store that can't be read yet.
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

    /// Queues writes. Never waits.
    pub(crate) fn submit(&mut self, mut writes: Vec<StoreWrite>, awaited: BatchWaiter) -> BatchSubmission {
        if self.contents == StoreContentsState::Unknown {
            // Without the store's content, a write could replace it.
            writes.retain(|write| matches!(write, StoreWrite::AppendAudit(_)));
        }
        let batch = self.next_number();
        match self.jobs.enqueue_batch(batch, writes, awaited) {
            StoreEnqueueOutcome::Queued => BatchSubmission::Queued(batch),
            StoreEnqueueOutcome::Full => BatchSubmission::Overloaded,
            StoreEnqueueOutcome::ReceiverGone => {
                // The loop holds its end as long as it runs.
                self.reports.send(StoreReport::Failed { batch, detail: THREAD_GONE.to_owned() }).ok();
                BatchSubmission::Queued(batch)
            }
        }
    }

    /// Returns whether the disk keeps up. If not, another report will follow.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.jobs.has_caught_up()
    }

    /// Tells the thread that the loop has adopted the store's state.
    pub(crate) fn mark_contents_known(&mut self) {
        self.contents = StoreContentsState::Known;
    }

    /// Reads audit records. Returns the number of the report, or the cause for people if there will be none.
    pub(crate) fn read_audit(&mut self, after: Option<u64>, limit: u32) -> Result<u64, &'static str> {
        let question = self.next_number();
        match self.jobs.enqueue_audit_read(question, after, limit) {
            StoreEnqueueOutcome::Queued => Ok(question),
            StoreEnqueueOutcome::Full => Err(DISK_UNRESPONSIVE),
            StoreEnqueueOutcome::ReceiverGone => Err(THREAD_GONE),
        }
    }

    /// Waits until everything in the queue has been tried, and ends the thread.
    pub(crate) fn finish(self) {
        drop(self.jobs);
        self.thread.join().ok();
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

type StoreOpener = Box<dyn FnMut() -> Result<(Box<dyn Store>, StoreOpenReport), StoreOpenError> + Send>;

struct StoreWorker {
    open: StoreOpener,
    /// `None` after a failure with an unknown outcome, until the disk could be read again.
    store: Option<Box<dyn Store>>,
    contents: StoreContentsState,
    /// The number of the last audit record that is known to be there.
    sequence: u64,
    reports: UnboundedSender<StoreReport>,
    /// The batch that was given to the store and may or may not be on disk.
    attempt: Option<BatchAttempt>,
    /// The writes that came since.
    pending: PendingBatch,
    /// The delay before the next retry.
    retry_delay: Duration,
}

/// The state of our knowledge about the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreContentsState {
    Unknown,
    /// The loop has adopted the state, or knows about the failure.
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

    /// Tries the pending writes once more, and reports them as lost if that fails.
    fn flush_before_exit(&mut self) {
        if self.is_idle() {
            return;
        }
        if let Err(detail) = self.flush() {
            let tried = self.attempt.as_ref().map_or(0, |attempt| attempt.writes.len());
            let count = tried + self.pending.write_count();
            tracing::error!(count, detail, "writes are lost, because the store could not be written");
        }
    }

    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.attempt.is_none()
    }

    /// Returns whether nothing waits any more.
    fn try_to_write(&mut self) -> bool {
        let Err(detail) = self.flush() else { return true };
        // A reported failure needs a report of its end.
        self.pending.set_awaited();
        let tried = self.attempt.as_mut().map(|attempt| {
            attempt.is_awaited = true;
            attempt.up_to
        });
        self.report(StoreReport::Failed { batch: self.pending.up_to().max(tried.unwrap_or(0)), detail });
        false
    }

    /// Returns the next job, or none when it is time for a retry.
    fn next_job(&self, todo: &StoreJobReceiver) -> Result<Option<StoreJob>, StoreMailboxClosed> {
        if self.is_idle() { todo.recv().map(Some) } else { todo.recv_timeout(self.retry_delay) }
    }

    /// Collects batches that have arrived meanwhile, to write them together: a disk is slower than a client in a loop,
    /// and other clients would wait behind it. Returns the first job of another kind.
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

    /// Tries to write everything: first the batch that was tried before, then the later ones.
    fn flush(&mut self) -> Result<(), String> {
        let mut store = match self.store.take() {
            Some(store) => store,
            None => self.reopen_store()?,
        };
        loop {
            let next = self.attempt.take().or_else(|| self.pending.take_attempt(store.generation()));
            let Some(mut attempt) = next else { break };
            // A batch that seemed to fail may be on disk all the same.
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

    /// Handles a batch that is on disk.
    fn report_written(&mut self, attempt: BatchAttempt, store: &dyn Store) {
        self.retry_delay = RETRY_DELAY;
        let BatchAttempt { up_to, writes, is_awaited, .. } = attempt;
        let lines = writes.into_iter().filter_map(|write| match write {
            StoreWrite::AppendAudit(line) => Some(*line),
            StoreWrite::AddUsage { .. }
            | StoreWrite::SetCooldown { .. }
            | StoreWrite::SaveSession(_)
            | StoreWrite::DeleteSession(_)
            | StoreWrite::SaveSnapshot(_) => None,
        });
        let lines: Vec<AuditEvent> = lines.collect();
        let end = store.audit_end();
        let before = std::mem::replace(&mut self.sequence, end);
        let grown = end.saturating_sub(before);
        let lines = if grown == lines.len() as u64 {
            (before + 1..).zip(lines).map(|(sequence, line)| AuditRecord { sequence, line }).collect()
        } else {
            // The ledger added a recovery record as well.
            let grown = u32::try_from(grown).unwrap_or(u32::MAX);
            store.read_audit(Some(before), grown).unwrap_or_default()
        };
        if is_awaited || !lines.is_empty() {
            self.report(StoreReport::Durable { up_to, lines });
        }
    }

    fn report(&self, report: StoreReport) {
        // Sending fails only while the daemon ends.
        self.reports.send(report).ok();
    }
}

#[cfg(test)]
mod tests;
