//! Who fails again and again is left out for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When a provider is left out, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaking {
    /// After so many failures in a row.
    pub failures: u32,
    /// For so long. Then it has one try.
    pub cool_down: Duration,
}

/// Who failed how often, known to all turns of one process. It ends with the process.
#[derive(Debug, Clone, Default)]
pub struct Circuits {
    known: Arc<Mutex<BTreeMap<String, Circuit>>>,
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    left_out_until: Option<Instant>,
}

impl Circuits {
    /// Whether a provider is left out at this moment.
    #[must_use]
    pub fn is_left_out(&self, provider: &str, now: Instant) -> bool {
        let known = self.list();
        known.get(provider).and_then(|circuit| circuit.left_out_until).is_some_and(|until| now < until)
    }

    /// It failed. Says whether it is left out from now on.
    #[must_use]
    pub fn failed(&self, provider: &str, breaking: Breaking, now: Instant) -> bool {
        let mut known = self.list();
        let circuit = known.entry(provider.to_owned()).or_default();
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures < breaking.failures {
            return false;
        }
        circuit.left_out_until = now.checked_add(breaking.cool_down);
        true
    }

    /// It answered, be it with a no.
    pub fn answered(&self, provider: &str) {
        self.list().remove(provider);
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<String, Circuit>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fails_in_a_row_is_left_out_and_has_one_try_afterwards() {
        let circuits = Circuits::default();
        let breaking = Breaking { failures: 2, cool_down: Duration::from_secs(60) };
        let begun = Instant::now();
        let later = |seconds| begun + Duration::from_secs(seconds);

        assert!(!circuits.failed("a", breaking, begun));
        circuits.answered("a");
        assert!(!circuits.failed("a", breaking, begun), "not in a row");
        assert!(circuits.failed("a", breaking, begun));
        assert!(circuits.is_left_out("a", later(59)) && !circuits.is_left_out("b", later(59)));
        assert!(circuits.clone().is_left_out("a", later(59)), "all turns know");

        assert!(!circuits.is_left_out("a", later(60)));
        assert!(circuits.failed("a", breaking, later(61)), "one try, not two");
        assert!(circuits.is_left_out("a", later(120)));
        circuits.answered("a");
        assert!(!circuits.is_left_out("a", later(120)) && !circuits.failed("a", breaking, later(120)));
    }
}
