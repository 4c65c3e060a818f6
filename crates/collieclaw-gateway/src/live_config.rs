//! The configuration that turns begin with: that of the file, taken anew once somebody has changed it and it is valid.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use collieclaw_agent::config::{Config, GatewaySettings};
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::home::AgentHome;
use collieclaw_gate::AutonomyLevel;

use super::ConfigLoader;

/// See the module.
pub(super) struct LiveConfig {
    cached: Mutex<CachedConfig>,
}

/// What is in force, and what of the file is not.
#[derive(Clone)]
pub(super) struct ConfigSnapshot {
    pub(super) config: Arc<Config>,
    /// Why the file, as it is, is not in force.
    pub(super) fault: Option<String>,
    /// Whether something in the file waits: for a cure, for a new start, or to be taken in a moment.
    pub(super) changed: bool,
}

struct CachedConfig {
    snapshot: ConfigSnapshot,
    text: Vec<u8>,
    policy_hash: String,
    stamp: Option<ConfigFileStamp>,
}

/// A configuration as it was found in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedConfig {
    /// What it says.
    pub config: Config,
    /// What the file holds.
    pub text: Vec<u8>,
    /// Of the rules that follow from it.
    pub policy_hash: String,
}

/// What a change leaves on the file of the configuration, whatever is done to hide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigFileStamp {
    file: (u64, u64),
    length: u64,
    modified: SystemTime,
    changed: (i64, i64),
}

/// Another configuration that has come into force.
#[derive(Debug)]
pub(super) struct ConfigTransition {
    before: (Arc<Config>, String),
    now: (Arc<Config>, String),
}

/// A file that was written this moment may be half of what it will be, and half a file may allow more than the whole.
const SETTLE_TIME: Duration = Duration::from_secs(1);

impl LiveConfig {
    /// `stamp` is the file before it was `found`.
    pub(super) fn new(found: LoadedConfig, seen: Option<ConfigFileStamp>) -> Self {
        let LoadedConfig { config, text, policy_hash } = found;
        let state = ConfigSnapshot { config: Arc::new(config), fault: None, changed: false };
        Self { cached: Mutex::new(CachedConfig { snapshot: state, text, policy_hash, stamp: seen }) }
    }

    /// What is in force now, and whether it has just been taken. The `file` is read when it is not as it was seen; and as
    /// long as something is wrong, for that may be mended elsewhere: a folder that was missing is there.
    pub(super) fn current(
        &self,
        file: &dyn Fn() -> Option<ConfigFileStamp>,
        clock: SystemTime,
        read: &ConfigLoader,
    ) -> (ConfigSnapshot, Option<ConfigTransition>) {
        let mut kept = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let trace = file();
        let mut taken = None;
        let is_another = trace != kept.stamp || kept.snapshot.fault.is_some();
        if is_another && trace.is_none_or(|trace| trace.is_settled(clock)) {
            let found = read().and_then(|found| kept.reject_truncated(found));
            // What was changed while it was read is read again next time.
            if file() == trace {
                kept.stamp = trace;
                match found {
                    Ok(found) => taken = kept.apply(found),
                    Err(why) => (kept.snapshot.fault, kept.snapshot.changed) = (Some(why), true),
                }
            }
        }
        let changed = kept.snapshot.changed || trace != kept.stamp;
        (ConfigSnapshot { changed, ..kept.snapshot.clone() }, taken)
    }
}

impl ConfigFileStamp {
    /// Of the file of this home; `None` where nobody can tell.
    #[must_use]
    pub fn read(home: &AgentHome) -> Option<Self> {
        let known = home.config().metadata().ok()?;
        Some(Self {
            file: (known.dev(), known.ino()),
            length: known.len(),
            modified: known.modified().ok()?,
            changed: (known.ctime(), known.ctime_nsec()),
        })
    }

    fn is_settled(&self, clock: SystemTime) -> bool {
        clock.duration_since(self.modified).map_or(true, |age| age >= SETTLE_TIME)
    }
}

impl CachedConfig {
    /// A file that lost its end says less than was meant, and what it leaves out are often the rules.
    fn reject_truncated(&self, found: LoadedConfig) -> Result<LoadedConfig, String> {
        let (before, now) = (self.text.trim_ascii_end(), found.text.trim_ascii_end());
        if before == now || !before.starts_with(now) {
            return Ok(found);
        }
        Err(if now.is_empty() {
            "config.toml is empty\nhelp: write it again; one comment in it stands for all that is usual"
        } else {
            "config.toml ends in the middle of what it said before\nhelp: write the rest; if it is meant so, add a comment \
             as its last line"
        }
        .to_owned())
    }

    /// What the server is made of stays as it was at its start: the address and the limits of the channel, and the log that
    /// `/receipts` has read.
    fn apply(&mut self, found: LoadedConfig) -> Option<ConfigTransition> {
        let mut config = found.config.clone();
        config.receipts = self.snapshot.config.receipts.clone();
        config.channels.gateway = GatewaySettings {
            tools_allow: found.config.channels.gateway.tools_allow.clone(),
            ..self.snapshot.config.channels.gateway.clone()
        };
        (self.snapshot.fault, self.snapshot.changed) = (None, config != found.config);
        self.text = found.text;
        if config == *self.snapshot.config && found.policy_hash == self.policy_hash {
            return None;
        }
        let config_before = std::mem::replace(&mut self.snapshot.config, Arc::new(config));
        let hash_before = std::mem::replace(&mut self.policy_hash, found.policy_hash);
        let now = (Arc::clone(&self.snapshot.config), self.policy_hash.clone());
        Some(ConfigTransition { before: (config_before, hash_before), now })
    }
}

impl ConfigTransition {
    /// Whose audit log hears of it: that of before, so that nobody is rid of a log unseen.
    pub(super) fn audited_config(&self) -> &Config {
        if self.before.0.security.audit_log { &self.before.0 } else { &self.now.0 }
    }

    pub(super) fn event(&self) -> AgentEvent<'_> {
        let ((before, policy_hash_before), (now, policy_hash)) = (&self.before, &self.now);
        let (autonomy_before, autonomy) = (before.security.autonomy, now.security.autonomy);
        let loosened = match autonomy_before {
            AutonomyLevel::ReadOnly => autonomy != AutonomyLevel::ReadOnly,
            AutonomyLevel::Supervised => autonomy == AutonomyLevel::Full,
            AutonomyLevel::Full => false,
        };
        AgentEvent::ConfigTaken { autonomy_before, autonomy, policy_hash_before, policy_hash, loosened }
    }
}

#[cfg(test)]
mod tests;
