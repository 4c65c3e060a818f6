//! How often somebody may: a bucket of tokens that fills by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use crate::MonotonicInstant;

/// So many at once, and then one in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    burst: NonZeroU32,
    period_us: u64,
}

const MAX_REFILL_US: u64 = u64::MAX / 4;

/// What who comes too soon is told: come back after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; try again in {} ms", _0.as_micros().div_ceil(1000))]
pub struct RateLimitExceeded(pub Duration);

impl RateLimit {
    /// A bucket of `burst` tokens, to which one is added every `period`. A period below a microsecond is one; one
    /// with which an empty bucket would take more than [`MAX_REFILL`](Self::MAX_REFILL) to fill is shortened to that.
    #[must_use]
    pub fn new(burst: NonZeroU32, period: Duration) -> Self {
        let longest_us = MAX_REFILL_US / u64::from(burst.get());
        let period_us = u64::try_from(period.as_micros()).unwrap_or(u64::MAX).clamp(1, longest_us);
        Self { burst, period_us }
    }

    /// Longest time that an empty bucket takes to be full: some 146,000 years. It keeps sums of moments within
    /// their type; a bucket whose refill did not fit would never be empty.
    pub const MAX_REFILL: Duration = Duration::from_micros(MAX_REFILL_US);

    /// How long an empty bucket takes to be full.
    fn refill_us(self) -> u64 {
        // At most MAX_REFILL_US, as `new` sees to.
        self.period_us.saturating_mul(u64::from(self.burst.get()))
    }
}

/// One bucket. It is kept as the moment at which it will be full again, so that nothing has to tick and nothing
/// is rounded. It counts time that goes on in suspend.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    limit: RateLimit,
    full_at_us: u64,
}

impl TokenBucket {
    /// A full bucket.
    #[must_use]
    pub fn full(limit: RateLimit) -> Self {
        Self { limit, full_at_us: 0 }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// How long to wait, if there is none. Nothing is taken then.
    pub fn take(&mut self, now: MonotonicInstant) -> Result<(), RateLimitExceeded> {
        self.full_at_us = take_token(self.limit, self.full_at_us, now)?;
        Ok(())
    }
}

/// The moment at which a bucket is full after one more token is taken.
fn take_token(limit: RateLimit, full_at_us: u64, now: MonotonicInstant) -> Result<u64, RateLimitExceeded> {
    let now_us = crate::clock::saturating_micros(now.total());
    // A clock at the end of time grants nothing.
    let Some(full_after) = full_at_us.max(now_us).checked_add(limit.period_us) else {
        return Err(RateLimitExceeded(Duration::from_micros(limit.period_us)));
    };
    // An empty bucket is full after one whole refill; one that needed longer had no token to give.
    let needed = full_after.saturating_sub(now_us);
    match needed.saturating_sub(limit.refill_us()) {
        0 => Ok(full_after),
        wait => Err(RateLimitExceeded(Duration::from_micros(wait))),
    }
}

/// A bucket for each of many keys, in bounded memory. A bucket that is full again is forgotten, which changes
/// nothing. When all places are taken by keys still under limit, newcomers share one bucket: who floods it with
/// fresh keys slows down other newcomers, but frees nobody and makes nothing grow.
#[derive(Debug, Clone)]
pub struct KeyedLimiter<K> {
    limit: RateLimit,
    max_keys: usize,
    full_at: BTreeMap<K, u64>,
    by_moment: BTreeSet<(u64, K)>,
    newcomers: TokenBucket,
}

impl<K: Ord + Clone> KeyedLimiter<K> {
    /// A limiter that remembers at most so many keys.
    #[must_use]
    pub fn new(limit: RateLimit, places: usize) -> Self {
        Self {
            limit,
            max_keys: places,
            full_at: BTreeMap::new(),
            by_moment: BTreeSet::new(),
            newcomers: TokenBucket::full(limit),
        }
    }

    /// Takes a token of a key.
    ///
    /// # Errors
    /// How long to wait, if there is none.
    pub fn take(&mut self, key: &K, now: MonotonicInstant) -> Result<(), RateLimitExceeded> {
        self.forget_full(now);
        let before = self.full_at.get(key).copied();
        if before.is_none() && self.full_at.len() >= self.max_keys {
            return self.newcomers.take(now);
        }
        let full_at = take_token(self.limit, before.unwrap_or(0), now)?;
        if let Some(before) = before {
            self.by_moment.remove(&(before, key.clone()));
        }
        self.full_at.insert(key.clone(), full_at);
        self.by_moment.insert((full_at, key.clone()));
        Ok(())
    }

    /// How many keys are remembered.
    #[must_use]
    pub fn tracked_keys(&self) -> usize {
        self.full_at.len()
    }

    fn forget_full(&mut self, now: MonotonicInstant) {
        let now_us = crate::clock::saturating_micros(now.total());
        while let Some((moment, _)) = self.by_moment.first() {
            if *moment > now_us {
                break;
            }
            if let Some((_, key)) = self.by_moment.pop_first() {
                self.full_at.remove(&key);
            }
        }
    }
}
