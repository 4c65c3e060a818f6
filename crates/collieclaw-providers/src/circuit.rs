//! Who fails again and again is left out for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When a provider is left out, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitBreakerSettings {
    /// After so many failures in a row.
    pub failures: u32,
    /// For so long. Then it has one try.
    pub cool_down: Duration,
}

/// Who failed how often, known to all turns of one process. It ends with the process.
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
    /// Whether a provider is left out at this moment.
    #[must_use]
    pub fn is_open(&self, provider: &str, now: Instant) -> bool {
        let known = self.lock_states();
        known.get(provider).and_then(|circuit| circuit.open_until).is_some_and(|until| now < until)
    }

    /// It failed. Says whether it is left out from now on.
    #[must_use]
    pub fn record_failure(&self, provider: &str, breaking: CircuitBreakerSettings, now: Instant) -> bool {
        let mut known = self.lock_states();
        let circuit = known.entry(provider.to_owned()).or_default();
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures < breaking.failures {
            return false;
        }
        circuit.open_until = now.checked_add(breaking.cool_down);
        true
    }

    /// It answered, be it with a no.
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
    fn who_fails_in_a_row_is_left_out_and_has_one_try_afterwards() {
        let circuits = CircuitBreakers::default();
        let breaking = CircuitBreakerSettings { failures: 2, cool_down: Duration::from_secs(60) };
        let begun = Instant::now();
        let later = |seconds| begun + Duration::from_secs(seconds);

        assert!(!circuits.record_failure("a", breaking, begun));
        circuits.record_success("a");
        assert!(!circuits.record_failure("a", breaking, begun), "not in a row");
        assert!(circuits.record_failure("a", breaking, begun));
        assert!(circuits.is_open("a", later(59)) && !circuits.is_open("b", later(59)));
        assert!(circuits.clone().is_open("a", later(59)), "all turns know");

        assert!(!circuits.is_open("a", later(60)));
        assert!(circuits.record_failure("a", breaking, later(61)), "one try, not two");
        assert!(circuits.is_open("a", later(120)));
        circuits.record_success("a");
        assert!(!circuits.is_open("a", later(120)) && !circuits.record_failure("a", breaking, later(120)));
    }
}
