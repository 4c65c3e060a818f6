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
use shepherd_api::Pin;
use shepherd_util::{Clock, MonotonicInstant, SystemClock};
use tokio::sync::Semaphore;

use crate::PinState;
use file::PinFile;
use throttle::Throttle;

/// Keeps the PIN. Checking takes tens of milliseconds and 19 MiB, so it is done on a thread of its own, never by
/// two at once, and whoever waits delays nobody else.
#[derive(Clone, Debug)]
pub struct PinKeeper {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    one_at_a_time: Semaphore,
    inner: Mutex<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    kept: Kept,
    throttle: Throttle,
}

#[derive(Clone, Debug)]
enum Kept {
    Nothing,
    Hash(String),
    /// What there is can't be read. Nothing is written over it until somebody sets another PIN.
    Unreadable,
}

impl Kept {
    fn new(hash: Option<String>) -> Self {
        hash.map_or(Self::Nothing, Self::Hash)
    }

    fn into_hash(self) -> Option<String> {
        match self {
            Self::Hash(hash) => Some(hash),
            Self::Nothing | Self::Unreadable => None,
        }
    }
}

/// Why a PIN was not accepted, set or loaded.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It is another one.
    #[error("the PIN is another one")]
    Wrong,
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
    TooSoon(Duration),
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

impl PinKeeper {
    /// Reads what was kept in this file; no file is no PIN. Whoever failed before waits again in full, so that a
    /// restart wins nothing.
    ///
    /// # Errors
    /// The file can't be read, was damaged, or somebody else could have written it. It is better to stay locked
    /// then than to go on without a PIN.
    pub fn open(path: PathBuf) -> Result<Self, PinError> {
        let found = PinFile::load(&path).map_err(|source| PinError::File { path: path.clone(), source })?;
        let throttle = Throttle::restored(&found.failures, now());
        if let Some(hash) = &found.hash {
            PasswordHash::new(hash).map_err(|_| PinError::File {
                path: path.clone(),
                source: io::Error::new(io::ErrorKind::InvalidData, "the hash is damaged"),
            })?;
        }
        let inner = Mutex::new(Inner { kept: Kept::new(found.hash), throttle });
        Ok(Self { shared: Arc::new(Shared { path, one_at_a_time: Semaphore::new(1), inner }) })
    }

    /// A keeper that lets nobody in, because what it kept can't be read: only root can set another PIN.
    #[must_use]
    pub fn locked(path: PathBuf) -> Self {
        let inner = Mutex::new(Inner { kept: Kept::Unreadable, throttle: Throttle::default() });
        Self { shared: Arc::new(Shared { path, one_at_a_time: Semaphore::new(1), inner }) }
    }

    /// Whether there is one.
    #[must_use]
    pub fn state(&self) -> PinState {
        match self.shared.inner().kept {
            Kept::Hash(_) | Kept::Unreadable => PinState::Set,
            Kept::Nothing => PinState::NotSet,
        }
    }

    /// Checks a PIN that a user gave. The attempt is on disk as a failure before it is checked: killing the daemon
    /// in between wins none.
    ///
    /// # Errors
    /// It is not the one, it comes too soon, or it could not be counted.
    pub async fn verify(&self, uid: u32, pin: Pin) -> Result<(), PinError> {
        self.alone(move |shared| {
            let Inner { kept, mut throttle } = shared.inner().clone();
            let hash = match kept {
                Kept::Hash(hash) => hash,
                Kept::Nothing => return Err(PinError::NotSet),
                Kept::Unreadable => return Err(PinError::Locked),
            };
            throttle.check(uid, now()).map_err(PinError::TooSoon)?;
            throttle.failed(uid, now());
            shared.store(Inner { kept: Kept::Hash(hash.clone()), throttle: throttle.clone() })?;
            let parsed = PasswordHash::new(&hash).map_err(|error| PinError::Hash(error.to_string()))?;
            if Argon2::default().verify_password(pin.reveal().as_bytes(), &parsed).is_err() {
                return Err(PinError::Wrong);
            }
            throttle.succeeded(uid);
            // Who gave the right PIN is not sent away because the disk filled up meanwhile.
            let _ = shared.store(Inner { kept: Kept::Hash(hash), throttle });
            Ok(())
        })
        .await
    }

    /// Sets, changes or removes the PIN, and forgets all failures.
    ///
    /// # Errors
    /// It could not be written; then the one before stays.
    pub async fn set(&self, pin: Option<Pin>) -> Result<(), PinError> {
        self.alone(move |shared| {
            let hashed = |pin: Pin| Argon2::default().hash_password(pin.reveal().as_bytes());
            let hash = pin.map(hashed).transpose().map_err(|error| PinError::Hash(error.to_string()))?;
            let kept = Kept::new(hash.map(|hash| hash.to_string()));
            shared.store(Inner { kept, throttle: Throttle::default() })
        })
        .await
    }

    async fn alone(
        &self,
        work: impl FnOnce(&Shared) -> Result<(), PinError> + Send + 'static,
    ) -> Result<(), PinError> {
        let interrupted = |_| PinError::Hash("it was interrupted".to_owned());
        let shared = Arc::clone(&self.shared);
        // The permit is inside: who hangs up does not let the next one in early.
        tokio::spawn(async move {
            let _permit = shared.one_at_a_time.acquire().await;
            let working = Arc::clone(&shared);
            tokio::task::spawn_blocking(move || work(&working)).await.map_err(interrupted)?
        })
        .await
        .map_err(interrupted)?
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it durable, then lets it count.
    fn store(&self, inner: Inner) -> Result<(), PinError> {
        PinFile { hash: inner.kept.clone().into_hash(), failures: inner.throttle.failures() }
            .save(&self.path)
            .map_err(|source| PinError::File { path: self.path.clone(), source })?;
        *self.inner() = inner;
        Ok(())
    }
}

fn now() -> MonotonicInstant {
    SystemClock.now().mono
}
