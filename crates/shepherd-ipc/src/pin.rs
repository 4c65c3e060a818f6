//! The administrator's PIN (S11.3b): stored as an Argon2 hash, checked one at a time, and slower after each failure.

mod file;
mod throttle;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use shepherd_api::AdminPin;
use shepherd_util::{Clock, MonotonicInstant, SystemClock};
use tokio::sync::{Semaphore, oneshot};

use crate::PinState;
use file::PinFile;
use throttle::PinThrottle;

/// Stores and checks the PIN. A check takes tens of milliseconds and 19 MiB, so it runs on its own thread and never
/// twice at once; waiting for it delays no other client.
#[derive(Clone, Debug)]
pub struct PinStore {
    shared: Arc<PinStoreInner>,
}

#[derive(Debug)]
struct PinStoreInner {
    path: PathBuf,
    verify_semaphore: Semaphore,
    inner: Mutex<PinStoreState>,
}

#[derive(Clone, Debug)]
struct PinStoreState {
    stored: StoredPin,
    throttle: PinThrottle,
}

#[derive(Clone, Debug)]
enum StoredPin {
    NotSet,
    Hash(String),
    /// The stored PIN can't be read. Nothing overwrites it until an administrator sets another PIN.
    Unreadable,
}

impl StoredPin {
    fn new(hash: Option<String>) -> Self {
        hash.map_or(Self::NotSet, Self::Hash)
    }

    fn into_hash(self) -> Option<String> {
        match self {
            Self::Hash(hash) => Some(hash),
            Self::NotSet | Self::Unreadable => None,
        }
    }
}

/// The error for a PIN that was not accepted, set or loaded.
#[derive(Debug, thiserror::Error)]
pub enum PinStoreError {
    /// The PIN is incorrect.
    #[error("incorrect PIN")]
    Incorrect,
    /// No PIN is set.
    #[error("no PIN is set")]
    NotSet,
    /// The stored PIN can't be read, so no PIN is correct.
    #[error("the PIN file can't be read; root can repair it, or set another PIN with `shepherd pin set`")]
    Locked,
    /// There were too many failures; the PIN was not checked.
    #[error("too many incorrect PINs")]
    Throttled(Duration),
    /// The file can't be read or written. An attempt that can't be counted is not checked.
    #[error("could not use the PIN file {}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The hash could not be calculated.
    #[error("could not hash the PIN: {0}")]
    Hash(String),
    /// The thread for the calculation could not be started, usually because too many processes run.
    #[error("could not start a thread for the PIN")]
    Thread(#[source] io::Error),
}

impl PinStore {
    /// Loads the stored PIN; a missing file means that no PIN is set. Waiting times start again in full, so that a
    /// restart gains nothing.
    ///
    /// # Errors
    /// The file can't be read, is damaged, or another user could have written it. Staying locked is better than going
    /// on without a PIN.
    pub fn open(path: PathBuf) -> Result<Self, PinStoreError> {
        let found =
            PinFile::load(&path).map_err(|source| PinStoreError::File { path: path.clone(), source })?;
        let throttle = PinThrottle::restore(&found.failures, now());
        if let Some(hash) = &found.hash {
            PasswordHash::new(hash).map_err(|_| PinStoreError::File {
                path: path.clone(),
                source: io::Error::new(io::ErrorKind::InvalidData, "the hash is damaged"),
            })?;
        }
        let inner = Mutex::new(PinStoreState { stored: StoredPin::new(found.hash), throttle });
        Ok(Self { shared: Arc::new(PinStoreInner { path, verify_semaphore: Semaphore::new(1), inner }) })
    }

    /// Creates a store that accepts no PIN, because the stored one can't be read: only root can set another PIN.
    #[must_use]
    pub fn new_locked(path: PathBuf) -> Self {
        let inner =
            Mutex::new(PinStoreState { stored: StoredPin::Unreadable, throttle: PinThrottle::default() });
        Self { shared: Arc::new(PinStoreInner { path, verify_semaphore: Semaphore::new(1), inner }) }
    }

    /// Returns whether a PIN is set.
    #[must_use]
    pub fn state(&self) -> PinState {
        match self.shared.lock_state().stored {
            StoredPin::Hash(_) | StoredPin::Unreadable => PinState::Set,
            StoredPin::NotSet => PinState::NotSet,
        }
    }

    /// Checks a PIN that a user gave. The attempt is on disk as a failure before the check, so that killing the daemon
    /// in between gains nothing.
    ///
    /// # Errors
    /// The PIN is incorrect, the attempt comes too soon, or it could not be counted.
    pub async fn verify(&self, uid: u32, pin: AdminPin) -> Result<(), PinStoreError> {
        self.run_exclusively(move |shared| {
            let PinStoreState { stored: kept, mut throttle } = shared.lock_state().clone();
            let hash = match kept {
                StoredPin::Hash(hash) => hash,
                StoredPin::NotSet => return Err(PinStoreError::NotSet),
                StoredPin::Unreadable => return Err(PinStoreError::Locked),
            };
            throttle.check(uid, now()).map_err(PinStoreError::Throttled)?;
            throttle.record_failure(uid, now());
            shared.save_state(PinStoreState {
                stored: StoredPin::Hash(hash.clone()),
                throttle: throttle.clone(),
            })?;
            let parsed = PasswordHash::new(&hash).map_err(|error| PinStoreError::Hash(error.to_string()))?;
            if Argon2::default().verify_password(pin.reveal().as_bytes(), &parsed).is_err() {
                return Err(PinStoreError::Incorrect);
            }
            throttle.record_success(uid);
            // A correct PIN isn't refused because the disk filled up meanwhile.
            let _ = shared.save_state(PinStoreState { stored: StoredPin::Hash(hash), throttle });
            Ok(())
        })
        .await
    }

    /// Sets, changes or removes the PIN, and resets all failures.
    ///
    /// # Errors
    /// The file could not be written; the previous PIN stays.
    pub async fn set(&self, pin: Option<AdminPin>) -> Result<(), PinStoreError> {
        self.run_exclusively(move |shared| {
            let hashed = |pin: AdminPin| Argon2::default().hash_password(pin.reveal().as_bytes());
            let hash = pin.map(hashed).transpose().map_err(|error| PinStoreError::Hash(error.to_string()))?;
            let kept = StoredPin::new(hash.map(|hash| hash.to_string()));
            shared.save_state(PinStoreState { stored: kept, throttle: PinThrottle::default() })
        })
        .await
    }

    async fn run_exclusively(
        &self,
        work: impl FnOnce(&PinStoreInner) -> Result<(), PinStoreError> + Send + 'static,
    ) -> Result<(), PinStoreError> {
        let shared = Arc::clone(&self.shared);
        // The task owns the permit, so a client that hangs up doesn't let the next attempt in early.
        tokio::spawn(async move {
            let _permit = shared.verify_semaphore.acquire().await;
            let working = Arc::clone(&shared);
            run_on_thread(Builder::new().name("pin".to_owned()), move || work(&working)).await
        })
        .await
        .map_err(|_| interrupted())?
    }
}

/// Runs the work on a new thread. A pool of `tokio` would panic, and so end the daemon, if no thread can be started.
async fn run_on_thread(
    thread: Builder,
    work: impl FnOnce() -> Result<(), PinStoreError> + Send + 'static,
) -> Result<(), PinStoreError> {
    let (sender, result) = oneshot::channel();
    // Sending fails only if nobody waits for the result.
    thread.spawn(move || _ = sender.send(work())).map_err(PinStoreError::Thread)?;
    result.await.map_err(|_| interrupted())?
}

fn interrupted() -> PinStoreError {
    PinStoreError::Hash("the calculation was interrupted".to_owned())
}

impl PinStoreInner {
    fn lock_state(&self) -> MutexGuard<'_, PinStoreState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the change to disk, then applies it.
    fn save_state(&self, inner: PinStoreState) -> Result<(), PinStoreError> {
        PinFile { hash: inner.stored.clone().into_hash(), failures: inner.throttle.failures() }
            .save(&self.path)
            .map_err(|source| PinStoreError::File { path: self.path.clone(), source })?;
        *self.lock_state() = inner;
        Ok(())
    }
}

fn now() -> MonotonicInstant {
    SystemClock.now().mono
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.3b: a child who starts too many processes must not end the daemon by giving a PIN.
    #[tokio::test]
    async fn a_machine_that_can_start_no_thread_answers_with_an_error() {
        // No machine has so much memory for a stack.
        let thread = Builder::new().stack_size(usize::MAX / 4);
        let result = run_on_thread(thread, || Ok(())).await;
        assert!(matches!(result, Err(PinStoreError::Thread(_))), "{result:?}");
        assert!(run_on_thread(Builder::new(), || Ok(())).await.is_ok());
    }
}
