//! Rate limiting with a token bucket.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bucket with a burst size and a refill rate per second.
pub(super) struct RequestLimiter {
    capacity: f64,
    refill_per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl RequestLimiter {
    pub(super) fn new(most: u32, a_second: f64) -> Self {
        Self {
            capacity: f64::from(most),
            refill_per_second: a_second,
            state: Mutex::new((f64::from(most), Instant::now())),
        }
    }

    /// Takes a token, or returns how long to wait for the next one.
    pub(super) fn take(&self) -> Result<(), Duration> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *state;
        let left = (left + now.saturating_duration_since(since).as_secs_f64() * self.refill_per_second)
            .min(self.capacity);
        if left < 1.0 {
            *state = (left, now);
            return Err(Duration::from_secs_f64((1.0 - left) / self.refill_per_second));
        }
        *state = (left - 1.0, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_allows_its_burst_and_then_its_rate() {
        let bucket = RequestLimiter::new(2, 0.5);
        let start = Instant::now();
        let at = |seconds| bucket.take_at(start + Duration::from_secs(seconds));
        assert_eq!((at(1), at(1)), (Ok(()), Ok(())));
        assert_eq!(at(1), Err(Duration::from_secs(2)));
        assert_eq!(at(3), Ok(()));
        assert!(at(3).is_err());
        assert_eq!((at(1000), at(1000), at(1000).is_err()), (Ok(()), Ok(()), true), "no more than it holds");
    }
}
