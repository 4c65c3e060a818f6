//! So many connections and no more. When all places are taken, whoever has asked for nothing the longest gives way: so
//! nobody who only holds connections keeps others out, and least of all the emergency stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::peer::TcpPeer;

/// The connections that are served.
pub struct ConnectionPool {
    capacity: usize,
    state: Arc<PoolState>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct PoolState {
    entries: Mutex<BTreeMap<u64, ConnectionEntry>>,
    /// One is free again.
    freed: Notify,
}

struct ConnectionEntry {
    /// How much is done for it now.
    active_requests: usize,
    /// Since when nothing is.
    idle_since: Instant,
    /// Ends it; there from the moment it is served.
    task: Option<AbortHandle>,
}

/// A connection has this long to say what it wants, or what it wants next, whoever else waits.
const MIN_IDLE_TIME: Duration = Duration::from_secs(1);

/// When the machine has no descriptor left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

impl ConnectionPool {
    /// None yet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { capacity: most, state: Arc::default(), tasks: JoinSet::new() }
    }

    /// Takes connections, for ever, and serves each.
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
            if let Some(taken) = self.state.lock_entries().get_mut(&number) {
                taken.task = Some(task);
            }
        }
    }

    /// Returns when none is served any more.
    pub async fn wait_until_empty(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Returns when there is room for one more.
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
        let taken = ConnectionEntry { active_requests: 0, idle_since: Instant::now(), task: None };
        self.lock_entries().insert(number, taken);
        ConnectionSlot { pool: Arc::clone(self), number }
    }

    /// Sends one away if that is needed; how long to wait if nobody may be sent away yet.
    fn make_room(&self, most: usize, now: Instant) -> Option<Duration> {
        let mut taken = self.lock_entries();
        if taken.len() < most {
            return None;
        }
        let idle = taken.iter().filter(|(_, one)| one.active_requests == 0);
        let Some((&number, eldest)) = idle.min_by_key(|(_, one)| one.idle_since) else {
            return Some(MIN_IDLE_TIME);
        };
        let undisturbed = MIN_IDLE_TIME.saturating_sub(now.saturating_duration_since(eldest.idle_since));
        if !undisturbed.is_zero() {
            return Some(undisturbed);
        }
        if let Some(task) = taken.remove(&number).and_then(|eldest| eldest.task) {
            task.abort();
        }
        None
    }
}

/// A connection's place, free again when this is dropped.
pub(super) struct ConnectionSlot {
    pool: Arc<PoolState>,
    number: u64,
}

impl ConnectionSlot {
    pub(super) fn mark_active(&self) -> ActivityGuard {
        if let Some(taken) = self.pool.lock_entries().get_mut(&self.number) {
            taken.active_requests += 1;
        }
        ActivityGuard { pool: Arc::clone(&self.pool), number: self.number }
    }

    /// The client takes what it is sent: however slow it is, it is not idle.
    pub(super) fn record_progress(&self) {
        if let Some(taken) = self.pool.lock_entries().get_mut(&self.number) {
            taken.idle_since = Instant::now();
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.pool.lock_entries().remove(&self.number);
        self.pool.freed.notify_one();
    }
}

/// See [`Peer::mark_active`].
pub struct ActivityGuard {
    pool: Arc<PoolState>,
    number: u64,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        if let Some(taken) = self.pool.lock_entries().get_mut(&self.number) {
            taken.active_requests = taken.active_requests.saturating_sub(1);
            taken.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_gives_way_and_nobody_who_is_at_work_or_has_just_come() {
        let all: Arc<PoolState> = Arc::default();
        let places: Vec<ConnectionSlot> = (0..3).map(|number| all.reserve(number)).collect();
        let left = || all.lock_entries().keys().copied().collect::<Vec<u64>>();
        let idle_since = |number: u64| all.lock_entries()[&number].idle_since;
        let now = idle_since(0);
        assert_eq!(all.make_room(4, now), None);
        assert_eq!(all.make_room(3, now), Some(MIN_IDLE_TIME));
        assert_eq!(left(), [0, 1, 2]);

        let work = places[0].mark_active();
        // A slow reader of a long answer.
        while idle_since(1) <= idle_since(2) {
            places[1].record_progress();
        }
        let later = idle_since(1) + MIN_IDLE_TIME;
        assert_eq!((all.make_room(3, later), left()), (None, vec![0, 1]));
        assert_eq!((all.make_room(2, later), left()), (None, vec![0]));
        assert_eq!(all.make_room(1, later), Some(MIN_IDLE_TIME), "it is at work");
        drop(work);
        let later = Instant::now() + MIN_IDLE_TIME;
        assert_eq!((all.make_room(1, later), left()), (None, vec![]));
        drop(places);
    }

    #[test]
    fn whoever_reads_slowly_is_not_idle_while_something_reaches_it() {
        let all: Arc<PoolState> = Arc::default();
        let idle_since = || all.lock_entries()[&0].idle_since;
        let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tasks.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut peer = TcpPeer::new(stream, all.reserve(0));
            let come = idle_since();
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::io::AsyncWriteExt::write_all(&mut peer, b"a part").await.unwrap();
            assert!(idle_since() > come);
        });
    }
}
