//! So many connections and no more. When all places are taken, whoever has asked for nothing the longest gives way: so
//! nobody who only holds connections keeps others out, and least of all the emergency stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::peer::Peer;

/// The connections that are served.
pub struct Places {
    most: usize,
    all: Arc<All>,
    serving: JoinSet<()>,
}

#[derive(Default)]
struct All {
    taken: Mutex<BTreeMap<u64, Taken>>,
    /// One is free again.
    freed: Notify,
}

struct Taken {
    /// How much is done for it now.
    work: usize,
    /// Since when nothing is.
    idle_since: Instant,
    /// Ends it; there from the moment it is served.
    task: Option<AbortHandle>,
}

/// A connection has this long to say what it wants, or what it wants next, whoever else waits.
const UNDISTURBED: Duration = Duration::from_secs(1);

/// When the machine has no descriptor left.
const BREATH: Duration = Duration::from_millis(50);

impl Places {
    /// None yet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, all: Arc::default(), serving: JoinSet::new() }
    }

    /// Takes connections, for ever, and serves each.
    pub async fn serve<Served>(&mut self, listener: &TcpListener, serve: impl Fn(Peer) -> Served)
    where
        Served: Future<Output = ()> + Send + 'static,
    {
        for number in 0.. {
            let stream = loop {
                match listener.accept().await {
                    Ok((stream, _)) => break stream,
                    Err(_) => tokio::time::sleep(BREATH).await,
                }
            };
            self.room().await;
            while self.serving.try_join_next().is_some() {}
            let peer = Peer::new(stream, self.all.take(number));
            let task = self.serving.spawn(serve(peer));
            if let Some(taken) = self.all.taken().get_mut(&number) {
                taken.task = Some(task);
            }
        }
    }

    /// Returns when none is served any more.
    pub async fn empty(&mut self) {
        while self.serving.join_next().await.is_some() {}
    }

    /// Returns when there is room for one more.
    async fn room(&self) {
        loop {
            let freed = self.all.freed.notified();
            let Some(wait) = self.all.make_room(self.most, Instant::now()) else { return };
            let _ = tokio::time::timeout(wait, freed).await;
        }
    }
}

impl All {
    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, number: u64) -> Place {
        let taken = Taken { work: 0, idle_since: Instant::now(), task: None };
        self.taken().insert(number, taken);
        Place { all: Arc::clone(self), number }
    }

    /// Sends one away if that is needed; how long to wait if nobody may be sent away yet.
    fn make_room(&self, most: usize, now: Instant) -> Option<Duration> {
        let mut taken = self.taken();
        if taken.len() < most {
            return None;
        }
        let idle = taken.iter().filter(|(_, one)| one.work == 0);
        let Some((&number, eldest)) = idle.min_by_key(|(_, one)| one.idle_since) else {
            return Some(UNDISTURBED);
        };
        let undisturbed = UNDISTURBED.saturating_sub(now.saturating_duration_since(eldest.idle_since));
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
pub(super) struct Place {
    all: Arc<All>,
    number: u64,
}

impl Place {
    pub(super) fn at_work(&self) -> AtWork {
        if let Some(taken) = self.all.taken().get_mut(&self.number) {
            taken.work += 1;
        }
        AtWork { all: Arc::clone(&self.all), number: self.number }
    }

    /// The client takes what it is sent: however slow it is, it is not idle.
    pub(super) fn takes(&self) {
        if let Some(taken) = self.all.taken().get_mut(&self.number) {
            taken.idle_since = Instant::now();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.taken().remove(&self.number);
        self.all.freed.notify_one();
    }
}

/// See [`Peer::at_work`].
pub struct AtWork {
    all: Arc<All>,
    number: u64,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(taken) = self.all.taken().get_mut(&self.number) {
            taken.work = taken.work.saturating_sub(1);
            taken.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_gives_way_and_nobody_who_is_at_work_or_has_just_come() {
        let all: Arc<All> = Arc::default();
        let places: Vec<Place> = (0..3).map(|number| all.take(number)).collect();
        let left = || all.taken().keys().copied().collect::<Vec<u64>>();
        let idle_since = |number: u64| all.taken()[&number].idle_since;
        let now = idle_since(0);
        assert_eq!(all.make_room(4, now), None);
        assert_eq!(all.make_room(3, now), Some(UNDISTURBED));
        assert_eq!(left(), [0, 1, 2]);

        let work = places[0].at_work();
        // A slow reader of a long answer.
        while idle_since(1) <= idle_since(2) {
            places[1].takes();
        }
        let later = idle_since(1) + UNDISTURBED;
        assert_eq!((all.make_room(3, later), left()), (None, vec![0, 1]));
        assert_eq!((all.make_room(2, later), left()), (None, vec![0]));
        assert_eq!(all.make_room(1, later), Some(UNDISTURBED), "it is at work");
        drop(work);
        let later = Instant::now() + UNDISTURBED;
        assert_eq!((all.make_room(1, later), left()), (None, vec![]));
        drop(places);
    }

    #[test]
    fn whoever_reads_slowly_is_not_idle_while_something_reaches_it() {
        let all: Arc<All> = Arc::default();
        let idle_since = || all.taken()[&0].idle_since;
        let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tasks.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut peer = Peer::new(stream, all.take(0));
            let come = idle_since();
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::io::AsyncWriteExt::write_all(&mut peer, b"a part").await.unwrap();
            assert!(idle_since() > come);
        });
    }
}
