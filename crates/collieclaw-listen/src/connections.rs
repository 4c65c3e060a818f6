//! Serves a limited number of connections. When the limit is reached, a new connection replaces the connection
//! that has been idle longest, so a client that only holds connections open can't lock out others, least of
//! all the emergency stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::peer::TcpPeer;

/// The open connections of a listener, and the tasks that serve them.
pub struct ConnectionPool {
    capacity: usize,
    state: Arc<PoolState>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct PoolState {
    entries: Mutex<BTreeMap<u64, ConnectionEntry>>,
    /// Notified when a connection's slot becomes free.
    freed: Notify,
}

struct ConnectionEntry {
    active_requests: usize,
    idle_since: Instant,
    /// The task that serves the connection, once it has started.
    task: Option<AbortHandle>,
}

/// A connection is never evicted before it has been idle for this long.
const MIN_IDLE_TIME: Duration = Duration::from_secs(1);

/// The delay after a failed accept, for example when no file descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

impl ConnectionPool {
    /// Creates an empty pool for at most `max_connections` connections.
    #[must_use]
    pub fn new(max_connections: usize) -> Self {
        Self { capacity: max_connections, state: Arc::default(), tasks: JoinSet::new() }
    }

    /// Accepts connections forever and serves each in its own task.
    pub async fn serve<Served>(&mut self, listener: &TcpListener, serve: impl Fn(TcpPeer) -> Served)
    where
        Served: Future<Output = ()> + Send + 'static,
    {
        for number in 0.. {
            let stream = loop {
                match listener.accept().await {
                    Ok((stream, _)) => break stream,
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
                }
            };
            self.wait_for_room().await;
            while self.tasks.try_join_next().is_some() {}
            let peer = TcpPeer::new(stream, self.state.reserve(number));
            let task = self.tasks.spawn(serve(peer));
            if let Some(entry) = self.state.lock_entries().get_mut(&number) {
                entry.task = Some(task);
            }
        }
    }

    /// Waits until the last connection has ended.
    pub async fn wait_until_empty(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Waits until another connection fits, evicting an idle connection if needed.
    async fn wait_for_room(&self) {
        loop {
            let freed = self.state.freed.notified();
            let Some(wait) = self.state.make_room(self.capacity, Instant::now()) else { return };
            let _ = tokio::time::timeout(wait, freed).await;
        }
    }
}

impl PoolState {
    fn lock_entries(&self) -> MutexGuard<'_, BTreeMap<u64, ConnectionEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(self: &Arc<Self>, number: u64) -> ConnectionSlot {
        let entry = ConnectionEntry { active_requests: 0, idle_since: Instant::now(), task: None };
        self.lock_entries().insert(number, entry);
        ConnectionSlot { pool: Arc::clone(self), number }
    }

    /// Evicts the longest idle connection if the pool is full. Returns the time to wait if no connection may
    /// be evicted yet.
    fn make_room(&self, most: usize, now: Instant) -> Option<Duration> {
        let mut entries = self.lock_entries();
        if entries.len() < most {
            return None;
        }
        let idle = entries.iter().filter(|(_, entry)| entry.active_requests == 0);
        let Some((&number, longest_idle)) = idle.min_by_key(|(_, entry)| entry.idle_since) else {
            return Some(MIN_IDLE_TIME);
        };
        let protected_for =
            MIN_IDLE_TIME.saturating_sub(now.saturating_duration_since(longest_idle.idle_since));
        if !protected_for.is_zero() {
            return Some(protected_for);
        }
        if let Some(task) = entries.remove(&number).and_then(|longest_idle| longest_idle.task) {
            task.abort();
        }
        None
    }
}

/// A connection's place in the pool, freed when dropped.
pub(super) struct ConnectionSlot {
    pool: Arc<PoolState>,
    number: u64,
}

impl ConnectionSlot {
    pub(super) fn mark_active(&self) -> ActivityGuard {
        if let Some(entry) = self.pool.lock_entries().get_mut(&self.number) {
            entry.active_requests += 1;
        }
        ActivityGuard { pool: Arc::clone(&self.pool), number: self.number }
    }

    /// Restarts the idle time, because a client that reads slowly is not idle.
    pub(super) fn record_progress(&self) {
        if let Some(entry) = self.pool.lock_entries().get_mut(&self.number) {
            entry.idle_since = Instant::now();
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.pool.lock_entries().remove(&self.number);
        self.pool.freed.notify_one();
    }
}

/// A guard from [`TcpPeer::mark_active`] that keeps its connection from being evicted.
pub struct ActivityGuard {
    pool: Arc<PoolState>,
    number: u64,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        if let Some(entry) = self.pool.lock_entries().get_mut(&self.number) {
            entry.active_requests = entry.active_requests.saturating_sub(1);
            entry.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_idle_connection_is_evicted() {
        let pool: Arc<PoolState> = Arc::default();
        let slots: Vec<ConnectionSlot> = (0..3).map(|number| pool.reserve(number)).collect();
        let left = || pool.lock_entries().keys().copied().collect::<Vec<u64>>();
        let idle_since = |number: u64| pool.lock_entries()[&number].idle_since;
        let now = idle_since(0);
        assert_eq!(pool.make_room(4, now), None);
        assert_eq!(pool.make_room(3, now), Some(MIN_IDLE_TIME));
        assert_eq!(left(), [0, 1, 2]);

        let activity = slots[0].mark_active();
        // Connection 1 belongs to a client that reads a long answer slowly.
        while idle_since(1) <= idle_since(2) {
            slots[1].record_progress();
        }
        let later = idle_since(1) + MIN_IDLE_TIME;
        assert_eq!((pool.make_room(3, later), left()), (None, vec![0, 1]));
        assert_eq!((pool.make_room(2, later), left()), (None, vec![0]));
        assert_eq!(pool.make_room(1, later), Some(MIN_IDLE_TIME), "the connection is active");
        drop(activity);
        let later = Instant::now() + MIN_IDLE_TIME;
        assert_eq!((pool.make_room(1, later), left()), (None, vec![]));
        drop(slots);
    }

    #[test]
    fn a_slow_reader_is_not_idle_while_data_reaches_it() {
        let pool: Arc<PoolState> = Arc::default();
        let idle_since = || pool.lock_entries()[&0].idle_since;
        let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tasks.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut peer = TcpPeer::new(stream, pool.reserve(0));
            let accepted = idle_since();
            // The clock must move on, or the times are equal.
            while Instant::now() <= accepted {
                std::hint::spin_loop();
            }
            tokio::io::AsyncWriteExt::write_all(&mut peer, b"a part").await.unwrap();
            assert!(idle_since() > accepted);
        });
    }
}
