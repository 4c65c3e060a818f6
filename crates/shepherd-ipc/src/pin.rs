//! The administrator's PIN (S11.3b): kept as an Argon2 hash, checked one at a time, and slower after each failure.

mod file;
mod throttle;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use shepherd_api::AdminPin;
use shepherd_util::{Clock, MonotonicInstant, SystemClock};
use tokio::sync::Semaphore;

use crate::PinState;
use file::PinFile;
use throttle::PinThrottle;

/// Keeps the PIN. Checking takes tens of milliseconds and 19 MiB, so it is done on a thread of its own, never by
/// two at once, and whoever waits delays nobody else.
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
    /// What there is can't be read. Nothing is written over it until somebody sets another PIN.
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

/// Why a PIN was not accepted, set or loaded.
#[derive(Debug, thiserror::Error)]
pub enum PinStoreError {
    /// It is another one.
    #[error("the PIN is another one")]
    Incorrect,
    /// Nobody set one.
    #[error("no PIN is set")]
    NotSet,
    /// It can't be read, so none is right.
    #[error(
        "the PIN's file can't be read; root can put it right, or set another PIN with `shepherd pin set`"
    )]
    Locked,
    /// Too many failures; nothing was checked.
    #[error("too many wrong PINs")]
    Throttled(Duration),
    /// The file can't be read or written. What can't be counted is not checked.
    #[error("the PIN's file {} can't be used", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The hash could not be made.
    #[error("the PIN could not be hashed: {0}")]
    Hash(String),
}

impl PinStore {
    /// Reads what was kept in this file; no file is no PIN. Whoever failed before waits again in full, so that a
    /// restart wins nothing.
    ///
    /// # Errors
    /// The file can't be read, was damaged, or somebody else could have written it. It is better to stay locked
    /// then than to go on without a PIN.
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

    /// A keeper that lets nobody in, because what it kept can't be read: only root can set another PIN.
    #[must_use]
    pub fn new_locked(path: PathBuf) -> Self {
        let inner =
            Mutex::new(PinStoreState { stored: StoredPin::Unreadable, throttle: PinThrottle::default() });
        Self { shared: Arc::new(PinStoreInner { path, verify_semaphore: Semaphore::new(1), inner }) }
    }

    /// Whether there is one.
    #[must_use]
    pub fn state(&self) -> PinState {
        match self.shared.lock_state().stored {
            StoredPin::Hash(_) | StoredPin::Unreadable => PinState::Set,
            StoredPin::NotSet => PinState::NotSet,
        }
    }

    /// Checks a PIN that a user gave. The attempt is on disk as a failure before it is checked: killing the daemon
    /// in between wins none.
    ///
    /// # Errors
    /// It is not the one, it comes too soon, or it could not be counted.
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
            // Who gave the right PIN is not sent away because the disk filled up meanwhile.
            let _ = shared.save_state(PinStoreState { stored: StoredPin::Hash(hash), throttle });
            Ok(())
        })
        .await
    }

    /// Sets, changes or removes the PIN, and forgets all failures.
    ///
    /// # Errors
    /// It could not be written; then the one before stays.
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
        let interrupted = |_| PinStoreError::Hash("it was interrupted".to_owned());
        let shared = Arc::clone(&self.shared);
        // The permit is inside: who hangs up does not let the next one in early.
        tokio::spawn(async move {
            let _permit = shared.verify_semaphore.acquire().await;
            let working = Arc::clone(&shared);
            tokio::task::spawn_blocking(move || work(&working)).await.map_err(interrupted)?
        })
        .await
        .map_err(interrupted)?
    }
}

impl PinStoreInner {
    fn lock_state(&self) -> MutexGuard<'_, PinStoreState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it durable, then lets it count.
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
