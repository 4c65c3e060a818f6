//! Circuit breakers: a provider that keeps failing is skipped for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitBreakerSettings {
    /// The number of failures in a row that opens the circuit.
    pub failures: u32,
    /// The time until a skipped provider gets one attempt.
    pub cool_down: Duration,
}

/// The failure counts of all providers, shared by all turns of one process and not stored.
#[derive(Debug, Clone, Default)]
pub struct CircuitBreakers {
    states: Arc<Mutex<BTreeMap<String, CircuitState>>>,
}

#[derive(Debug, Default)]
struct CircuitState {
    failures: u32,
    open_until: Option<Instant>,
}

impl CircuitBreakers {
    /// Returns true if the provider is to be skipped now.
    #[must_use]
    pub fn is_open(&self, provider: &str, now: Instant) -> bool {
        let states = self.lock_states();
        states.get(provider).and_then(|circuit| circuit.open_until).is_some_and(|until| now < until)
    }

    /// Counts a failure. Returns true if the circuit is open from now on.
    #[must_use]
    pub fn record_failure(&self, provider: &str, breaker: CircuitBreakerSettings, now: Instant) -> bool {
        let mut states = self.lock_states();
        let circuit = states.entry(provider.to_owned()).or_default();
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures < breaker.failures {
            return false;
        }
        circuit.open_until = now.checked_add(breaker.cool_down);
        true
    }

    /// Clears the failure count: the provider answered, even if the answer was a refusal.
    pub fn record_success(&self, provider: &str) {
        self.lock_states().remove(provider);
    }

    fn lock_states(&self) -> MutexGuard<'_, BTreeMap<String, CircuitState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_keeps_failing_is_skipped_and_then_gets_one_attempt() {
        let circuits = CircuitBreakers::default();
        let breaker = CircuitBreakerSettings { failures: 2, cool_down: Duration::from_secs(60) };
        let begun = Instant::now();
        let later = |seconds| begun + Duration::from_secs(seconds);

        assert!(!circuits.record_failure("a", breaker, begun));
        circuits.record_success("a");
        assert!(!circuits.record_failure("a", breaker, begun), "not in a row");
        assert!(circuits.record_failure("a", breaker, begun));
        assert!(circuits.is_open("a", later(59)) && !circuits.is_open("b", later(59)));
        assert!(circuits.clone().is_open("a", later(59)), "clones share the state");

        assert!(!circuits.is_open("a", later(60)));
        assert!(circuits.record_failure("a", breaker, later(61)), "one try, not two");
        assert!(circuits.is_open("a", later(120)));
        circuits.record_success("a");
        assert!(!circuits.is_open("a", later(120)) && !circuits.record_failure("a", breaker, later(120)));
    }
}
