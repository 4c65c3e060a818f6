//! The bounded mailbox from the loop to the store's thread. Adding a job never waits: while a disk hangs, batches beyond
//! the limit are combined with the last one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shepherd_core::StoreWrite;

use super::BatchWaiter;
use super::pending::PendingBatch;

/// The number of queued batches: more than one user may cause at once (`shepherd_ipc::ConnectionLimits`), so that on a
/// working disk no user locks out others. Each may hold a whole snapshot, some kilobytes.
pub(super) const MAX_BATCHES: usize = 512;

/// The number of queued batches at which the disk counts as working again; well below the limit, to avoid flapping.
const CAUGHT_UP_BATCHES: usize = MAX_BATCHES / 2;

/// The number of queued audit queries.
pub(super) const MAX_AUDIT_QUERIES: usize = 64;

/// A job for the thread.
pub(super) enum StoreJob {
    Write(Box<PendingBatch>),
    ReadAudit { query_id: u64, after: Option<u64>, limit: u32 },
}

/// The result of adding a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreEnqueueOutcome {
    Queued,
    /// The mailbox is full. A batch is combined with the last one and gets no report of its own; a query is dropped.
    Full,
    /// The thread is gone.
    ReceiverGone,
}

/// Creates an empty mailbox with its two ends.
pub(super) fn store_mailbox() -> (StoreJobSender, StoreJobReceiver) {
    let shared = Arc::new(MailboxShared::default());
    (StoreJobSender(Arc::clone(&shared)), StoreJobReceiver(shared))
}

pub(super) struct StoreJobSender(Arc<MailboxShared>);

pub(super) struct StoreJobReceiver(Arc<MailboxShared>);

/// Ends the mailbox: there will be no more jobs.
pub(super) struct StoreMailboxClosed;

#[derive(Default)]
struct MailboxShared {
    queue: Mutex<MailboxQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct MailboxQueue {
    jobs: VecDeque<StoreJob>,
    batches: usize,
    sender_gone: bool,
    receiver_gone: bool,
}

impl MailboxShared {
    fn lock_queue(&self) -> MutexGuard<'_, MailboxQueue> {
        // No holder of the lock leaves a half-written state.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MailboxQueue {
    fn pop_job(&mut self) -> Option<StoreJob> {
        let job = self.jobs.pop_front()?;
        self.batches -= usize::from(matches!(job, StoreJob::Write(_)));
        Some(job)
    }

    fn last_batch(&mut self) -> Option<&mut PendingBatch> {
        self.jobs.iter_mut().rev().find_map(|job| match job {
            StoreJob::Write(batch) => Some(&mut **batch),
            StoreJob::ReadAudit { .. } => None,
        })
    }
}

impl StoreJobSender {
    pub(super) fn enqueue_batch(
        &self,
        batch: u64,
        writes: Vec<StoreWrite>,
        awaited: BatchWaiter,
    ) -> StoreEnqueueOutcome {
        let mut line = self.0.lock_queue();
        if line.receiver_gone {
            return StoreEnqueueOutcome::ReceiverGone;
        }
        if line.batches >= MAX_BATCHES
            && let Some(last) = line.last_batch()
        {
            last.add(batch, writes, awaited);
            // A reported overflow needs a report of its end.
            last.set_awaited();
            return StoreEnqueueOutcome::Full;
        }
        let mut waiting = Box::<PendingBatch>::default();
        waiting.add(batch, writes, awaited);
        line.jobs.push_back(StoreJob::Write(waiting));
        line.batches += 1;
        self.0.changed.notify_one();
        StoreEnqueueOutcome::Queued
    }

    /// Returns whether few batches are left. If not, the last one is reported, so that the caller can ask again.
    pub(super) fn has_caught_up(&self) -> bool {
        let mut line = self.0.lock_queue();
        if line.batches <= CAUGHT_UP_BATCHES {
            return true;
        }
        if let Some(last) = line.last_batch() {
            last.set_awaited();
        }
        false
    }

    pub(super) fn enqueue_audit_read(
        &self,
        question: u64,
        after: Option<u64>,
        limit: u32,
    ) -> StoreEnqueueOutcome {
        let mut line = self.0.lock_queue();
        if line.receiver_gone {
            return StoreEnqueueOutcome::ReceiverGone;
        }
        if line.jobs.len() - line.batches >= MAX_AUDIT_QUERIES {
            return StoreEnqueueOutcome::Full;
        }
        line.jobs.push_back(StoreJob::ReadAudit { query_id: question, after, limit });
        self.0.changed.notify_one();
        StoreEnqueueOutcome::Queued
    }
}

impl Drop for StoreJobSender {
    fn drop(&mut self) {
        self.0.lock_queue().sender_gone = true;
        self.0.changed.notify_one();
    }
}

impl StoreJobReceiver {
    /// Waits for the next job.
    pub(super) fn recv(&self) -> Result<StoreJob, StoreMailboxClosed> {
        let mut line = self.0.lock_queue();
        loop {
            match line.pop_job() {
                Some(job) => return Ok(job),
                None if line.sender_gone => return Err(StoreMailboxClosed),
                None => line = self.0.changed.wait(line).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for the next job, up to this time.
    pub(super) fn recv_timeout(&self, patience: Duration) -> Result<Option<StoreJob>, StoreMailboxClosed> {
        let until = Instant::now() + patience;
        let mut line = self.0.lock_queue();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match line.pop_job() {
                Some(job) => return Ok(Some(job)),
                None if line.sender_gone => return Err(StoreMailboxClosed),
                None if left.is_zero() => return Ok(None),
                None => {
                    let waited = self.0.changed.wait_timeout(line, left);
                    line = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Returns the next job, if there is one.
    pub(super) fn try_recv(&self) -> Option<StoreJob> {
        self.0.lock_queue().pop_job()
    }
}

impl Drop for StoreJobReceiver {
    fn drop(&mut self) {
        self.0.lock_queue().receiver_gone = true;
    }
}
