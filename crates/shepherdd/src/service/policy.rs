//! Another policy (S7.3): read and checked on a thread of its own, applied whole or not at all. One at a time and in
//! the order in which they were asked for, so that none overtakes a newer one.

use std::path::Path;
use std::time::Duration;

use shepherd_api::{ApiError, ErrorCode, Reply};
use shepherd_core::policy::Watch;
use shepherd_util::Now;

use super::carry_out::Outcome;
use super::{RequestAddress, Service};
use crate::policy_source::{self, Loaded, Rejected};

/// Who wants it.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// Whoever sent SIGHUP.
    Signal,
    /// The file has changed.
    Change,
    /// A client, who waits for the answer.
    Client {
        /// The client's request.
        to: RequestAddress,
        /// Who that is, for the audit log.
        actor: String,
    },
}

impl Asked {
    fn actor(&self) -> &str {
        match self {
            Self::Signal => "SIGHUP",
            Self::Change => "file change",
            Self::Client { actor, .. } => actor,
        }
    }
}

/// Who may wait for a policy at a time. Nobody waits unless the disk hangs, and nobody needs so many.
const MOST_WANTED: usize = 32;

/// When whoever was turned away may ask again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// A policy that is to be had when the one before is.
pub(crate) struct Wanted {
    asked: Asked,
    from: From,
}

/// Where a policy comes from.
enum From {
    /// The file, as it is by then.
    File,
    /// This text, which replaces the file.
    Text(String),
}

/// A policy that was read.
pub(crate) struct PolicyRead {
    asked: Asked,
    result: Result<Loaded, Rejected>,
    /// Who else can change the file, in sentences.
    exposed: Vec<String>,
}

impl Service {
    /// Reads the file again, without making anybody wait.
    pub(super) fn read_policy(&mut self, asked: Asked) {
        self.want_policy(Wanted { asked, from: From::File });
    }

    /// Replaces the file by a text that is a policy.
    pub(super) fn set_policy(&mut self, text: String, asked: Asked) {
        self.want_policy(Wanted { asked, from: From::Text(text) });
    }

    fn want_policy(&mut self, wanted: Wanted) {
        let queue = &mut self.policy.wanted;
        match &wanted.asked {
            // One that is still to be read is as new as any.
            Asked::Signal if queue.iter().any(|other| matches!(other.asked, Asked::Signal)) => return,
            Asked::Change if queue.iter().any(|other| matches!(other.asked, Asked::Change)) => return,
            Asked::Client { to, .. } if queue.len() >= MOST_WANTED => {
                let sentence = "Too many wait for a policy to be read. Try again later.";
                return self.respond(to, Err(ApiError::rate_limited(sentence, TRY_AGAIN.into())));
            }
            Asked::Signal | Asked::Change | Asked::Client { .. } => queue.push_back(wanted),
        }
        self.read_next_policy();
    }

    fn read_next_policy(&mut self) {
        if self.policy.is_reading {
            return;
        }
        let Some(Wanted { asked, from }) = self.policy.wanted.pop_front() else { return };
        self.policy.is_reading = true;
        let (path, reader) = (self.policy.path.clone(), self.policy.reader.clone());
        let asker = asked.clone();
        let started = std::thread::Builder::new().name("policy".to_owned()).spawn(move || {
            let result = had(&path, from);
            let exposed = policy_source::exposed_policy(&path);
            reader.send(PolicyRead { asked, result, exposed }).ok();
        });
        if let Err(error) = started {
            let result = Err(Rejected::because(format!("can't read the policy now: {error}")));
            let exposed = self.policy.exposed.clone();
            self.policy.reader.send(PolicyRead { asked: asker, result, exposed }).ok();
        }
    }

    pub(super) fn policy_file_changed(&mut self) {
        // While there is none, any file may be the one that is missed.
        if self.policy.source.is_none() || self.engine.policy().rules().watch == Watch::Yes {
            self.read_policy(Asked::Change);
        }
    }

    pub(super) fn policy_read(&mut self, read: PolicyRead, now: Now) {
        self.policy.is_reading = false;
        let PolicyRead { asked, result, exposed } = read;
        if exposed != self.policy.exposed {
            exposed.iter().for_each(|sentence| tracing::warn!("{sentence}"));
            self.policy.exposed = exposed;
        }
        match result {
            Ok(loaded) => self.apply_policy(loaded, &asked, now),
            Err(rejected) => self.reject_policy(rejected, &asked, now),
        }
        crate::sys::give_memory_back();
        self.read_next_policy();
    }

    fn apply_policy(&mut self, loaded: Loaded, asked: &Asked, now: Now) {
        let Loaded { policy, source } = loaded;
        let unchanged = self.policy.source.as_ref().is_some_and(|known| known.digest == source.digest);
        if matches!(asked, Asked::Change) && unchanged && self.policy.rejected.is_none() {
            return;
        }
        let entry_count = policy.entries().len();
        let digest = Some(source.digest.clone());
        self.host.policy_changed(&policy);
        let events = self.engine.reload(policy, digest, asked.actor(), now);
        tracing::info!(entry_count, digest = source.digest, "policy applied");
        self.policy.source = Some(source);
        self.policy.rejected = None;
        self.renew_authority(now);
        match asked {
            Asked::Client { to, .. } => {
                let outcome = Outcome::new(Reply::PolicyApplied { entry_count }, events);
                self.carry_out_for(to.clone(), outcome, now);
            }
            Asked::Signal | Asked::Change => self.carry_out(events, now),
        }
    }

    fn reject_policy(&mut self, rejected: Rejected, asked: &Asked, now: Now) {
        let kept = match self.policy.source {
            Some(_) => "the one before stays in force",
            None => "there is none before it, and everything stays refused",
        };
        tracing::warn!(faults = ?rejected.faults, "{rejected}; {kept}");
        self.engine.reload_failed(rejected.faults.clone(), asked.actor(), now);
        self.carry_out(Vec::new(), now);
        if let Asked::Client { to, .. } = asked {
            let sentence = format!("{rejected}; {kept}");
            let error = ApiError::policy_rejected(sentence, rejected.faults.clone());
            self.respond(to, Err(ApiError { code: ErrorCode::PolicyRejected, ..error }));
        }
        self.policy.rejected = Some(rejected);
    }
}

fn had(path: &Path, from: From) -> Result<Loaded, Rejected> {
    match from {
        From::File => policy_source::read(path),
        From::Text(text) => {
            let loaded = policy_source::check("the new policy", text.as_bytes())?;
            policy_source::replace(path, &text)
                .map_err(|error| Rejected::because(format!("can't write {}: {error}", path.display())))?;
            Ok(loaded)
        }
    }
}
