//! The configuration for new turns: reloaded when the file has changed and is valid.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use collieclaw_agent::config::{Config, GatewaySettings};
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::home::AgentHome;
use collieclaw_gate::AutonomyLevel;

use super::ConfigLoader;

/// The configuration in force, reloaded on demand.
pub(super) struct LiveConfig {
    cached: Mutex<CachedConfig>,
}

/// The configuration in force, and the state of its file.
#[derive(Clone)]
pub(super) struct ConfigSnapshot {
    pub(super) config: Arc<Config>,
    /// The reason why the current file is not in force.
    pub(super) fault: Option<String>,
    /// True if the file differs from the configuration in force: it is invalid, needs a restart, or was changed just
    /// now.
    pub(super) changed: bool,
}

struct CachedConfig {
    snapshot: ConfigSnapshot,
    text: Vec<u8>,
    policy_hash: String,
    stamp: Option<ConfigFileStamp>,
}

/// A configuration as loaded from its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedConfig {
    pub config: Config,
    /// The bytes of the file.
    pub text: Vec<u8>,
    /// The hash of the resulting rules.
    pub policy_hash: String,
}

/// The metadata by which any change of the configuration and of the rules of workspaces is noticed, even if someone
/// tries to hide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigFileStamp {
    file: (u64, u64),
    length: u64,
    modified: SystemTime,
    changed: (i64, i64),
    /// The last change of the folder of workspaces, through which all their rules are written.
    rules_changed: Option<(i64, i64)>,
}

/// The old and the new configuration, when a new one comes into force.
#[derive(Debug)]
pub(super) struct ConfigTransition {
    before: (Arc<Config>, String),
    now: (Arc<Config>, String),
}

/// The age at which a file counts as completely written. Half of a file may allow more than the whole.
const SETTLE_TIME: Duration = Duration::from_secs(1);

impl LiveConfig {
    /// Creates the state from `found`; `seen` is the file's metadata from before it was read.
    pub(super) fn new(found: LoadedConfig, seen: Option<ConfigFileStamp>) -> Self {
        let LoadedConfig { config, text, policy_hash } = found;
        let state = ConfigSnapshot { config: Arc::new(config), fault: None, changed: false };
        Self { cached: Mutex::new(CachedConfig { snapshot: state, text, policy_hash, stamp: seen }) }
    }

    /// Returns the configuration in force, and whether it has just been loaded. The `file` is read again if it has
    /// changed, and as long as it is invalid, because the cause may be fixed elsewhere, such as by creating a missing
    /// folder.
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
            // If the file changed during the read, the next call reads it again.
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
    /// Returns the metadata of the configuration file of this home, or `None` if it is not available.
    #[must_use]
    pub fn read(home: &AgentHome) -> Option<Self> {
        let known = home.config().metadata().ok()?;
        Some(Self {
            file: (known.dev(), known.ino()),
            length: known.len(),
            modified: known.modified().ok()?,
            changed: (known.ctime(), known.ctime_nsec()),
            rules_changed: home.workspaces().metadata().ok().map(|rules| (rules.ctime(), rules.ctime_nsec())),
        })
    }

    fn is_settled(&self, clock: SystemTime) -> bool {
        self.time_to_settle(clock).is_zero()
    }

    /// Returns the time after which the configuration file counts as completely written.
    #[must_use]
    pub fn time_to_settle(&self, clock: SystemTime) -> Duration {
        clock.duration_since(self.modified).map_or(Duration::ZERO, |age| SETTLE_TIME.saturating_sub(age))
    }
}

impl CachedConfig {
    /// Rejects a file that is a truncated version of the old one: the missing part often contains the rules.
    fn reject_truncated(&self, found: LoadedConfig) -> Result<LoadedConfig, String> {
        check_not_truncated(&self.text, &found.text).map(|()| found)
    }

    /// Keeps the settings that need a restart: the address and limits of the channel, and the receipt log that
    /// `/receipts` reads.
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

/// Rejects the text of a configuration that is a truncated version of the old one: the missing part often contains the
/// rules.
///
/// # Errors
/// Fails with the reason and the cure.
pub fn check_not_truncated(before: &[u8], now: &[u8]) -> Result<(), String> {
    let (before, now) = (before.trim_ascii_end(), now.trim_ascii_end());
    if before == now || !before.starts_with(now) {
        return Ok(());
    }
    Err(if now.is_empty() {
        "config.toml is empty\nhelp: restore the file; a single comment line means all defaults"
    } else {
        "config.toml ends in the middle of its earlier text\nhelp: restore the rest; if you removed it on purpose, \
         add a comment as the last line"
    }
    .to_owned())
}

impl ConfigTransition {
    /// Returns the configuration whose audit log records the change: the old one, so that switching off the log
    /// is recorded.
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
        AgentEvent::ConfigReloaded { autonomy_before, autonomy, policy_hash_before, policy_hash, loosened }
    }
}

#[cfg(test)]
mod tests;
