//! The configuration that turns begin with: that of the file, taken anew once somebody has changed it and it is valid.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::Read;
use crate::config::{Config, GatewayChannel};

/// See the module.
pub(super) struct InForce {
    state: Mutex<State>,
}

/// What is in force, and what of the file is not.
#[derive(Clone)]
pub(super) struct State {
    pub(super) config: Arc<Config>,
    /// Why the file, as it is, is not in force.
    pub(super) fault: Option<String>,
    /// Whether something in the file waits: for a cure, for a new start, or to be taken in a moment.
    pub(super) changed: bool,
    seen: Option<SystemTime>,
}

/// A file that was written this moment may be half of what it will be, and half a file may allow more than the whole.
const SETTLED: Duration = Duration::from_secs(1);

impl InForce {
    /// `seen` is when the file was changed last, before `config` was read from it.
    pub(super) fn new(config: &Config, seen: Option<SystemTime>) -> Self {
        let state = State { config: Arc::new(config.clone()), fault: None, changed: false, seen };
        Self { state: Mutex::new(state) }
    }

    /// What is in force now. A file that was `modified` since it was seen is read.
    pub(super) fn now(&self, modified: Option<SystemTime>, read: &Read) -> State {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if modified != state.seen && modified.is_none_or(is_settled) {
            state.seen = modified;
            match read() {
                Ok(config) => state.take(&config),
                Err(why) => (state.fault, state.changed) = (Some(why), true),
            }
        }
        State { changed: state.changed || modified != state.seen, ..state.clone() }
    }
}

fn is_settled(modified: SystemTime) -> bool {
    modified.elapsed().map_or(true, |age| age >= SETTLED)
}

impl State {
    /// What the server is made of stays as it was at its start: the address and the limits of the channel, and the log that
    /// `/receipts` has read.
    fn take(&mut self, found: &Config) {
        let mut config = found.clone();
        config.receipts = self.config.receipts.clone();
        config.channels.gateway = GatewayChannel {
            tools_allow: found.channels.gateway.tools_allow.clone(),
            ..self.config.channels.gateway.clone()
        };
        self.changed = config != *found;
        self.fault = None;
        self.config = Arc::new(config);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Surroundings};
    use collieclaw_gate::Autonomy;
    use ward_diag::Source;

    #[test]
    fn a_file_of_this_moment_is_not_settled_and_one_from_tomorrow_is() {
        let now = SystemTime::now();
        let day = Duration::from_secs(86_400);
        assert_eq!([now, now - day, now + day].map(is_settled), [false, true, true]);
    }

    #[test]
    fn a_file_is_read_once_it_is_another_and_settled_and_only_then() {
        let folder = std::path::PathBuf::from("/nowhere");
        let surroundings =
            Surroundings { home: folder.join(".collieclaw"), user_home: folder, variables: [].into() };
        let tools = crate::tools::built_in();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        let config =
            |text: &str| config::read(Source::new("config.toml", text), &surroundings, &names).unwrap();
        let found = Arc::new(Mutex::new((0, Err("broken".to_owned()))));
        let reading = Arc::clone(&found);
        let read: Read = Box::new(move || {
            let (reads, found) = &mut *reading.lock().unwrap();
            *reads += 1;
            found.clone()
        });
        let started = Some(SystemTime::UNIX_EPOCH);
        let in_force = InForce::new(&config(""), started);
        let check = |modified, level: Autonomy, fault: Option<&str>, changed: bool, reads: i32| {
            let state = in_force.now(modified, &read);
            let told = (state.config.security.autonomy, state.fault.as_deref(), state.changed);
            assert_eq!((told, found.lock().unwrap().0), ((level, fault, changed), reads));
        };
        let later = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        check(started, Autonomy::Supervised, None, false, 0);
        check(Some(SystemTime::now()), Autonomy::Supervised, None, true, 0);
        check(later(1), Autonomy::Supervised, Some("broken"), true, 1);
        check(later(1), Autonomy::Supervised, Some("broken"), true, 1);
        found.lock().unwrap().1 = Ok(config("[security]\nautonomy = \"readonly\""));
        check(later(2), Autonomy::ReadOnly, None, false, 2);
        // The port is the server's until it is started again.
        found.lock().unwrap().1 = Ok(config("[channels.gateway]\nport = 1\ntools_allow = [\"time\"]"));
        check(later(3), Autonomy::Supervised, None, true, 3);
        let channel = &in_force.now(later(3), &read).config.channels.gateway;
        assert_eq!((channel.port, channel.tools_allow.len()), (GatewayChannel::default().port, 1));
    }
}
