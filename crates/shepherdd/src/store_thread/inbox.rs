//! What the loop hands to the store's thread. It is bounded, and handing over never waits: while a disk hangs, batches
//! beyond the bound are put together with the last one in line.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shepherd_core::StoreWrite;

use super::Awaited;
use super::waiting::Waiting;

/// Batches in line: more than one user may cause at once (`shepherd_ipc::Limits`), so that on a disk that works nobody
/// locks out others. Each may hold a whole snapshot, some kilobytes.
pub(super) const MOST_BATCHES: usize = 512;

/// With so many in line the disk counts as one that answers again. Well below the bound, or it would come and go.
const CAUGHT_UP: usize = MOST_BATCHES / 2;

/// Questions about the audit log in line: more than there are people who ask.
pub(super) const MOST_QUESTIONS: usize = 64;

/// What the thread has to do.
pub(super) enum Job {
    Write(Box<Waiting>),
    ReadAudit { question: u64, after: Option<u64>, limit: u32 },
}

/// Whether there was room for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It is in line.
    InLine,
    /// The line is full. A batch is written together with the last in it, and nobody hears of it by itself; a question
    /// is not asked.
    Crowded,
    /// Nobody is there to do it.
    Gone,
}

/// An empty line, with its two ends.
pub(super) fn inbox() -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The loop's end.
pub(super) struct Sender(Arc<Shared>);

/// The thread's end.
pub(super) struct Receiver(Arc<Shared>);

/// There will be no more jobs.
pub(super) struct Closed;

#[derive(Default)]
struct Shared {
    line: Mutex<Line>,
    news: Condvar,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    batches: usize,
    sender_gone: bool,
    receiver_gone: bool,
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        // Nobody leaves half of it behind.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn take(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front()?;
        self.batches -= usize::from(matches!(job, Job::Write(_)));
        Some(job)
    }

    fn last_batch(&mut self) -> Option<&mut Waiting> {
        self.jobs.iter_mut().rev().find_map(|job| match job {
            Job::Write(batch) => Some(&mut **batch),
            Job::ReadAudit { .. } => None,
        })
    }
}

impl Sender {
    pub(super) fn write(&self, batch: u64, writes: Vec<StoreWrite>, awaited: Awaited) -> Room {
        let mut line = self.0.line();
        if line.receiver_gone {
            return Room::Gone;
        }
        if line.batches >= MOST_BATCHES
            && let Some(last) = line.last_batch()
        {
            last.add(batch, writes, awaited);
            // Whoever hears of the crowd has to hear of its end.
            last.is_awaited_now();
            return Room::Crowded;
        }
        let mut waiting = Box::<Waiting>::default();
        waiting.add(batch, writes, awaited);
        line.jobs.push_back(Job::Write(waiting));
        line.batches += 1;
        self.0.news.notify_one();
        Room::InLine
    }

    /// Whether few are left in line. If not, the last of them is awaited, so that whoever asked can ask again.
    pub(super) fn has_caught_up(&self) -> bool {
        let mut line = self.0.line();
        if line.batches <= CAUGHT_UP {
            return true;
        }
        if let Some(last) = line.last_batch() {
            last.is_awaited_now();
        }
        false
    }

    pub(super) fn read_audit(&self, question: u64, after: Option<u64>, limit: u32) -> Room {
        let mut line = self.0.line();
        if line.receiver_gone {
            return Room::Gone;
        }
        if line.jobs.len() - line.batches >= MOST_QUESTIONS {
            return Room::Crowded;
        }
        line.jobs.push_back(Job::ReadAudit { question, after, limit });
        self.0.news.notify_one();
        Room::InLine
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.line().sender_gone = true;
        self.0.news.notify_one();
    }
}

impl Receiver {
    /// The next job, as soon as there is one.
    pub(super) fn next(&self) -> Result<Job, Closed> {
        let mut line = self.0.line();
        loop {
            match line.take() {
                Some(job) => return Ok(job),
                None if line.sender_gone => return Err(Closed),
                None => line = self.0.news.wait(line).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// The next job, or none if there is none for so long.
    pub(super) fn next_within(&self, patience: Duration) -> Result<Option<Job>, Closed> {
        let until = Instant::now() + patience;
        let mut line = self.0.line();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match line.take() {
                Some(job) => return Ok(Some(job)),
                None if line.sender_gone => return Err(Closed),
                None if left.is_zero() => return Ok(None),
                None => {
                    let waited = self.0.news.wait_timeout(line, left);
                    line = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// The next job, if there is one.
    pub(super) fn next_at_once(&self) -> Option<Job> {
        self.0.line().take()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.line().receiver_gone = true;
    }
}
