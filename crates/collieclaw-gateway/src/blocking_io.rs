//! File access on separate threads, so that a slow disk never blocks the single thread that serves all requests.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::response::ErrorResponse;

/// The number of concurrent reads of memory and receipts. Turns have their own threads.
const MAX_READERS: usize = 4;

/// The number of threads reserved for the emergency stop and its status, so that they never wait behind reads.
const RESERVED_THREADS: usize = 4;

/// The total number of threads for file access.
pub(super) const MAX_BLOCKING_THREADS: usize = MAX_READERS + RESERVED_THREADS;

/// The pool that limits the number of long reads.
pub(super) struct ReadPool {
    permits: Arc<Semaphore>,
}

impl ReadPool {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_READERS)) }
    }

    /// Runs a long read once a place is free.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let place = Arc::clone(&self.permits).acquire_owned().await;
        run_blocking(move || {
            // The place stays taken if the client disconnects, because the thread still reads.
            let _place = place;
            read()
        })
        .await
    }
}

/// Runs a short file operation that long reads can't delay.
pub(super) async fn run_blocking<T: Send + 'static>(
    touch: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorResponse> {
    let broken =
        |_| ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the read was interrupted");
    tokio::task::spawn_blocking(touch).await.map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::super::server;
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::time::Duration;
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    #[test]
    fn hanging_readers_delay_neither_the_stop_nor_other_clients() {
        let readers = Arc::new(ReadPool::new());
        let (begin, mut begun) = unbounded_channel();
        let (release, hanging) = channel::<()>();
        let hanging = Arc::new(Mutex::new(hanging));
        let served = server::build_async_runtime().unwrap().block_on(async {
            let mut reads = JoinSet::new();
            for _ in 0..3 * MAX_BLOCKING_THREADS {
                let (readers, begin, hanging) = (readers.clone(), begin.clone(), hanging.clone());
                let hang = move || {
                    let _ = begin.send(());
                    let _ = hanging.lock().unwrap().recv();
                };
                reads.spawn(async move { readers.read(hang).await });
            }
            for _ in 0..MAX_READERS {
                begun.recv().await.unwrap();
            }
            // Leaves time for another read to start, which must not happen.
            let more = timeout(Duration::from_millis(100), begun.recv()).await;
            let stop = timeout(Duration::from_secs(30), run_blocking(|| "stopped")).await;
            drop(release);
            (more.is_ok(), stop.ok(), reads.join_all().await.len())
        });
        assert_eq!(served, (false, Some(Ok("stopped")), 3 * MAX_BLOCKING_THREADS));
    }
}
