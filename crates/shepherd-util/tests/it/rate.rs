//! Rate limits hold whatever the order and timing of requests.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use shepherd_util::{KeyedLimiter, MonotonicInstant, RateLimit, RateLimitExceeded, TokenBucket};

const SECOND: Duration = Duration::from_secs(1);

fn limit(burst: u32, period: Duration) -> RateLimit {
    RateLimit::new(NonZeroU32::new(burst).unwrap(), period)
}

fn at(micros: u64) -> MonotonicInstant {
    MonotonicInstant::BOOT.after(Duration::from_micros(micros))
}

#[test]
fn a_burst_is_granted_and_then_one_token_per_period() {
    let mut bucket = TokenBucket::full(limit(3, SECOND));
    let now = at(5_000_000);
    assert_eq!([bucket.take(now), bucket.take(now), bucket.take(now)], [Ok(()); 3]);
    assert_eq!(bucket.take(now), Err(RateLimitExceeded(SECOND)));
    assert_eq!(bucket.take(now.after(SECOND / 2)), Err(RateLimitExceeded(SECOND / 2)));
    assert_eq!(bucket.take(now.after(SECOND)), Ok(()));
    assert_eq!(bucket.take(now.after(SECOND)), Err(RateLimitExceeded(SECOND)));
    let rested = now.after(100 * SECOND);
    assert_eq!((0..5).filter(|_| bucket.take(rested).is_ok()).count(), 3);
    assert_eq!(
        RateLimitExceeded(Duration::from_micros(1_001)).to_string(),
        "too many requests; try again in 2 ms"
    );
}

#[test]
fn a_bucket_fills_in_suspend() {
    let mut bucket = TokenBucket::full(limit(1, SECOND));
    bucket.take(at(0)).unwrap();
    assert_eq!(bucket.take(at(0).after_suspend(SECOND)), Ok(()));
}

#[test]
fn extreme_limits_and_times_do_not_overflow() {
    let mut never = TokenBucket::full(limit(u32::MAX, Duration::MAX));
    assert_eq!(never.take(at(0)), Ok(()));
    assert!(never.take(at(u64::MAX)).is_err());
    let mut always = TokenBucket::full(limit(1, Duration::ZERO));
    assert_eq!(always.take(at(0)), Ok(()));
    assert_eq!(always.take(at(0)), Err(RateLimitExceeded(Duration::from_micros(1))));
    let mut end = TokenBucket::full(limit(2, SECOND));
    assert!(end.take(at(u64::MAX)).is_err());
}

#[test]
fn an_extremely_long_period_still_limits() {
    for (burst, period) in [(1, Duration::MAX), (2, Duration::MAX), (3, Duration::from_micros(u64::MAX / 2))]
    {
        let limit = limit(burst, period);
        let mut bucket = TokenBucket::full(limit);
        let mut limiter = KeyedLimiter::new(limit, 5);
        for now in [at(0), at(1_000_000), at(u64::MAX / 8)] {
            let granted = (0..10).filter(|_| bucket.take(now).is_ok()).count();
            assert!(granted <= burst as usize, "{granted} of {burst}");
            assert!((0..10).filter(|_| limiter.take(&"a", now).is_ok()).count() <= burst as usize);
        }
        assert!(bucket.take(at(u64::MAX / 8)).is_err());
    }
    assert_eq!(limit(7, Duration::MAX), limit(7, RateLimit::MAX_REFILL / 7));
}

#[test]
fn one_key_does_not_slow_another() {
    let mut limiter = KeyedLimiter::new(limit(2, SECOND), 10);
    let now = at(0);
    assert_eq!([limiter.take(&"a", now), limiter.take(&"a", now)], [Ok(()); 2]);
    assert_eq!(limiter.take(&"a", now), Err(RateLimitExceeded(SECOND)));
    assert_eq!(limiter.take(&"b", now), Ok(()));
    assert_eq!(limiter.tracked_keys(), 2);
    assert_eq!(limiter.take(&"c", now.after(10 * SECOND)), Ok(()));
    assert_eq!(limiter.tracked_keys(), 1);
}

#[test]
fn a_flood_of_keys_resets_no_limit_and_is_bounded_in_memory() {
    let mut limiter = KeyedLimiter::new(limit(1, SECOND), 3);
    let now = at(0);
    assert_eq!(limiter.take(&0, now), Ok(()));
    let let_through = (1..1_000).filter(|key| limiter.take(key, now).is_ok()).count();
    assert_eq!(let_through, 3);
    assert_eq!(limiter.tracked_keys(), 3);
    assert_eq!(limiter.take(&0, now), Err(RateLimitExceeded(SECOND)));
}

proptest! {
    #[test]
    fn no_interval_grants_more_than_its_share(
        burst in 1..20_u32,
        period in 1..1_000_u64,
        gaps in prop::collection::vec(0..2_000_u64, 1..200),
    ) {
        let mut bucket = TokenBucket::full(limit(burst, Duration::from_micros(period)));
        let mut now = 0;
        let mut granted = Vec::new();
        for gap in gaps {
            now += gap;
            match bucket.take(at(now)) {
                Ok(()) => granted.push(now),
                Err(RateLimitExceeded(wait)) => {
                    // A token is available after exactly the stated wait, and not earlier.
                    let wait = u64::try_from(wait.as_micros()).unwrap();
                    prop_assert!(wait > 0);
                    prop_assert!(bucket.clone().take(at(now + wait)).is_ok());
                    prop_assert!(bucket.clone().take(at(now + wait - 1)).is_err());
                }
            }
        }
        for (index, start) in granted.iter().enumerate() {
            for (more, end) in granted[index..].iter().enumerate() {
                let share = u64::from(burst) + (end - start) / period;
                prop_assert!((more as u64) < share);
            }
        }
    }

    #[test]
    fn a_clock_that_goes_back_grants_nothing(burst in 1..5_u32, moments in prop::collection::vec(any::<u64>(), 1..50)) {
        let mut bucket = TokenBucket::full(limit(burst, SECOND));
        let highest = *moments.iter().max().unwrap();
        let granted = moments.iter().filter(|moment| bucket.take(at(**moment)).is_ok()).count() as u64;
        prop_assert!(granted <= u64::from(burst) + highest / 1_000_000);
    }

    #[test]
    fn each_key_is_limited_as_if_it_were_alone(
        events in prop::collection::vec((0..8_u8, 0..1_500_000_u64), 1..200),
    ) {
        let mut limiter = KeyedLimiter::new(limit(2, SECOND), 8);
        let mut alone: Vec<TokenBucket> = (0..8).map(|_| TokenBucket::full(limit(2, SECOND))).collect();
        let mut now = 0;
        for (key, gap) in events {
            now += gap;
            prop_assert_eq!(limiter.take(&key, at(now)), alone[usize::from(key)].take(at(now)));
            prop_assert!(limiter.tracked_keys() <= 8);
        }
    }
}
