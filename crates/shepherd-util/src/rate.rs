//! Rate limiting with token buckets, for a single caller and for many keys.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use crate::MonotonicInstant;

/// A rate limit: a number of requests at once (the burst), and then one request per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    burst: NonZeroU32,
    period_us: u64,
}

const MAX_REFILL_US: u64 = u64::MAX / 4;

/// The error for a request over the limit, with the time to wait before trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; try again in {} ms", _0.as_micros().div_ceil(1000))]
pub struct RateLimitExceeded(pub Duration);

impl RateLimit {
    /// Creates a limit for buckets that hold `burst` tokens and gain one token every `period`. The period is
    /// raised to at least a microsecond, and lowered so that an empty bucket is full after at most
    /// [`MAX_REFILL`](Self::MAX_REFILL).
    #[must_use]
    pub fn new(burst: NonZeroU32, period: Duration) -> Self {
        let longest_us = MAX_REFILL_US / u64::from(burst.get());
        let period_us = u64::try_from(period.as_micros()).unwrap_or(u64::MAX).clamp(1, longest_us);
        Self { burst, period_us }
    }

    /// The longest time that an empty bucket may take to fill: about 146,000 years. The bound keeps sums of
    /// times from overflowing; a bucket whose refill time overflowed would never be empty.
    pub const MAX_REFILL: Duration = Duration::from_micros(MAX_REFILL_US);

    /// Returns the time that an empty bucket takes to fill, in microseconds.
    fn refill_us(self) -> u64 {
        // `new` keeps this product at or below MAX_REFILL_US.
        self.period_us.saturating_mul(u64::from(self.burst.get()))
    }
}

/// A token bucket. It stores the time at which it will be full again, so it needs no timer and rounds
/// nothing. Time in suspend counts too.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    limit: RateLimit,
    full_at_us: u64,
}

impl TokenBucket {
    #[must_use]
    pub fn full(limit: RateLimit) -> Self {
        Self { limit, full_at_us: 0 }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// Returns the time to wait if the bucket is empty. The bucket is then unchanged.
    pub fn take(&mut self, now: MonotonicInstant) -> Result<(), RateLimitExceeded> {
        self.full_at_us = take_token(self.limit, self.full_at_us, now)?;
        Ok(())
    }
}

/// Takes a token from a bucket that is full at `full_at_us`, and returns the time at which it will then be
/// full.
fn take_token(limit: RateLimit, full_at_us: u64, now: MonotonicInstant) -> Result<u64, RateLimitExceeded> {
    let now_us = crate::clock::saturating_micros(now.total());
    // If the sum overflows, the clock is at its end; refuse rather than wrap around.
    let Some(full_after) = full_at_us.max(now_us).checked_add(limit.period_us) else {
        return Err(RateLimitExceeded(Duration::from_micros(limit.period_us)));
    };
    // A bucket that now needs longer than a complete refill had no token left.
    let needed = full_after.saturating_sub(now_us);
    match needed.saturating_sub(limit.refill_us()) {
        0 => Ok(full_after),
        wait => Err(RateLimitExceeded(Duration::from_micros(wait))),
    }
}

/// A token bucket for each key, in bounded memory. Buckets that are full again are dropped, since a full
/// bucket and no bucket behave the same. When `max_keys` buckets are in use, all new keys share one bucket:
/// an attacker who floods the limiter with fresh keys slows down other new keys, but can't reset the limit of
/// a known key or use up memory.
#[derive(Debug, Clone)]
pub struct KeyedLimiter<K> {
    limit: RateLimit,
    max_keys: usize,
    full_at: BTreeMap<K, u64>,
    by_full_at: BTreeSet<(u64, K)>,
    newcomers: TokenBucket,
}

impl<K: Ord + Clone> KeyedLimiter<K> {
    /// Creates a limiter that tracks at most `max_keys` keys.
    #[must_use]
    pub fn new(limit: RateLimit, max_keys: usize) -> Self {
        Self {
            limit,
            max_keys,
            full_at: BTreeMap::new(),
            by_full_at: BTreeSet::new(),
            newcomers: TokenBucket::full(limit),
        }
    }

    /// Takes a token from the bucket of a key.
    ///
    /// # Errors
    /// Returns the time to wait if the bucket is empty.
    pub fn take(&mut self, key: &K, now: MonotonicInstant) -> Result<(), RateLimitExceeded> {
        self.forget_full(now);
        let before = self.full_at.get(key).copied();
        if before.is_none() && self.full_at.len() >= self.max_keys {
            return self.newcomers.take(now);
        }
        let full_at = take_token(self.limit, before.unwrap_or(0), now)?;
        if let Some(before) = before {
            self.by_full_at.remove(&(before, key.clone()));
        }
        self.full_at.insert(key.clone(), full_at);
        self.by_full_at.insert((full_at, key.clone()));
        Ok(())
    }

    /// Returns the number of keys with a bucket of their own.
    #[must_use]
    pub fn tracked_keys(&self) -> usize {
        self.full_at.len()
    }

    fn forget_full(&mut self, now: MonotonicInstant) {
        let now_us = crate::clock::saturating_micros(now.total());
        while let Some((full_at, _)) = self.by_full_at.first() {
            if *full_at > now_us {
                break;
            }
            if let Some((_, key)) = self.by_full_at.pop_first() {
                self.full_at.remove(&key);
            }
        }
    }
}
