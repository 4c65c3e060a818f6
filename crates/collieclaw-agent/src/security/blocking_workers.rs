//! Runs work that may block forever, such as access to an unreachable file server, on separate threads with a
//! time limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

type BlockingJob = Box<dyn FnOnce() + Send>;

/// Threads for one kind of work. Blocked work of one kind doesn't affect other kinds.
pub(crate) struct BlockingWorkers {
    /// The thread that gets the next job, until it blocks. Reusing a thread is cheaper than starting one for
    /// each job.
    current: Mutex<Option<Sender<BlockingJob>>>,
    count: AtomicUsize,
    /// The maximum number of threads, including blocked ones.
    max_workers: usize,
}

impl BlockingWorkers {
    pub(crate) const fn new(max_workers: usize) -> Self {
        Self { current: Mutex::new(None), count: AtomicUsize::new(0), max_workers }
    }

    /// Returns the result of the work, or `None` if it took longer than `timeout` or no thread is free.
    pub(crate) fn run<T: Send + 'static>(
        &'static self,
        timeout: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = channel();
        // A failed send means that the caller has given up.
        let job: BlockingJob = Box::new(move || drop(sender.send(work())));
        let worker = self.worker()?;
        let result = worker.send(job).ok().and_then(|()| receiver.recv_timeout(timeout).ok());
        if result.is_none() {
            // The thread ends when its job ends, because its sender is gone.
            self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        result
    }

    fn worker(&'static self) -> Option<Sender<BlockingJob>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            *current = self.spawn_worker();
        }
        current.clone()
    }

    fn spawn_worker(&'static self) -> Option<Sender<BlockingJob>> {
        let slot = WorkerSlot::new(&self.count, self.max_workers)?;
        let (sender, receiver) = channel::<BlockingJob>();
        let work = move || {
            let _slot = slot;
            receiver.iter().for_each(|job| job());
        };
        thread::Builder::new().name("blocking".to_owned()).spawn(work).ok().map(|_| sender)
    }
}

struct WorkerSlot(&'static AtomicUsize);

impl WorkerSlot {
    fn new(count: &'static AtomicUsize, max_workers: usize) -> Option<Self> {
        let free = |taken| (taken < max_workers).then_some(taken + 1);
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
    fn a_blocked_worker_is_left_behind_and_replaced() {
        static WORKERS: BlockingWorkers = BlockingWorkers::new(64);
        assert_eq!(WORKERS.run(LONG, || 1), Some(1));
        let (hold, held) = channel::<()>();
        assert_eq!(WORKERS.run(SHORT, move || held.recv().is_ok()), None);
        assert_eq!(WORKERS.run(LONG, || 2), Some(2));
        drop(hold);
        assert_eq!(WORKERS.run(LONG, || 3), Some(3));
    }

    #[test]
    fn blocked_work_of_one_kind_does_not_affect_other_kinds() {
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
