//! Work that may never end, on a thread of its own: the kernel may wait for a file server that is gone, for ever, and
//! whoever judges a call must not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

type BlockingJob = Box<dyn FnOnce() + Send>;

/// Those who do one kind of work for us. What one kind leaves behind keeps no other from being done.
pub(crate) struct BlockingWorkers {
    /// Who is asked next, until it is left behind. One that is asked again and again costs less than a new one each
    /// time.
    current: Mutex<Option<Sender<BlockingJob>>>,
    count: AtomicUsize,
    /// So many threads may be left behind, each with something that doesn't end.
    max_workers: usize,
}

impl BlockingWorkers {
    pub(crate) const fn new(most: usize) -> Self {
        Self { current: Mutex::new(None), count: AtomicUsize::new(0), max_workers: most }
    }

    /// What some work came to; `None` if it took longer than this, or nobody could be found to do it.
    pub(crate) fn run<T: Send + 'static>(
        &'static self,
        longest: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = channel();
        // Whoever listens no more has gone on already.
        let job: BlockingJob = Box::new(move || drop(sender.send(work())));
        let worker = self.worker()?;
        let found = worker.send(job).ok().and_then(|()| receiver.recv_timeout(longest).ok());
        if found.is_none() {
            // It ends when it finds that nobody asks any more.
            self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        found
    }

    fn worker(&'static self) -> Option<Sender<BlockingJob>> {
        let mut known = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = self.spawn_worker();
        }
        known.clone()
    }

    fn spawn_worker(&'static self) -> Option<Sender<BlockingJob>> {
        let counted = WorkerSlot::new(&self.count, self.max_workers)?;
        let (sender, receiver) = channel::<BlockingJob>();
        let work = move || {
            let _counted = counted;
            receiver.iter().for_each(|job| job());
        };
        thread::Builder::new().name("apart".to_owned()).spawn(work).ok().map(|_| sender)
    }
}

struct WorkerSlot(&'static AtomicUsize);

impl WorkerSlot {
    fn new(count: &'static AtomicUsize, most: usize) -> Option<Self> {
        let free = |taken| (taken < most).then_some(taken + 1);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, free).ok().map(|_| Self(count))
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn what_does_not_answer_is_left_behind_and_others_are_found() {
        static WORKERS: BlockingWorkers = BlockingWorkers::new(64);
        assert_eq!(WORKERS.run(LONG, || 1), Some(1));
        let (hold, held) = channel::<()>();
        assert_eq!(WORKERS.run(SHORT, move || held.recv().is_ok()), None);
        assert_eq!(WORKERS.run(LONG, || 2), Some(2));
        drop(hold);
        assert_eq!(WORKERS.run(LONG, || 3), Some(3));
    }

    #[test]
    fn work_of_one_kind_that_never_ends_leaves_the_others_alone() {
        static STUCK: BlockingWorkers = BlockingWorkers::new(2);
        static OTHERS: BlockingWorkers = BlockingWorkers::new(2);
        let mut holds = Vec::new();
        for _ in 0..2 {
            let (hold, held) = channel::<()>();
            assert_eq!(STUCK.run(SHORT, move || held.recv().is_ok()), None);
            holds.push(hold);
        }
        assert_eq!(STUCK.run(LONG, || 1), None, "nobody is left to do it");
        assert_eq!(OTHERS.run(LONG, || 2), Some(2));
    }
}
