//! Files are read on a thread beside the loop, one after the other: nobody waits for a disk, and nothing that was read
//! earlier overtakes what was read later.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use shepherd_api::ApiError;
use shepherd_ipc::Accounts;
use tokio::sync::mpsc::UnboundedSender;

use super::Service;
use super::policy::{Asked, PolicyRead};
use crate::policy_source::{self, Loaded, Rejected};

/// How many may wait for a file at a time. Nobody waits long unless the disk hangs, and nobody needs so many.
const MOST_WANTED: usize = 32;

/// When whoever was turned away may ask again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// What is to be read when what is being read is.
pub(crate) struct Files {
    wanted: VecDeque<Wanted>,
    is_reading: bool,
    done: UnboundedSender<FileRead>,
}

/// What is to be read.
pub(super) enum Wanted {
    /// A policy.
    Policy {
        /// Who wants it.
        asked: Asked,
        /// Where it comes from.
        from: From,
    },
    /// The system's time zone.
    Zone,
}

/// Where a policy comes from.
pub(super) enum From {
    /// The file, as it is by then.
    File,
    /// This text, which replaces the file.
    Text(String),
}

/// What was read.
pub(crate) enum FileRead {
    /// A policy.
    Policy(Box<PolicyRead>),
    /// The system's time zone.
    Zone(TimeZone),
}

impl Files {
    /// Nothing is wanted yet; what was read comes back there.
    pub(crate) fn new(done: UnboundedSender<FileRead>) -> Self {
        Self { wanted: VecDeque::new(), is_reading: false, done }
    }

    /// Whether the same is going to be read anyway: what is still to be read is as new as any.
    fn includes(&self, wanted: &Wanted) -> bool {
        self.wanted.iter().any(|other| match (other, wanted) {
            (Wanted::Zone, Wanted::Zone) => true,
            (Wanted::Policy { asked: other, .. }, Wanted::Policy { asked, .. }) => {
                matches!((other, asked), (Asked::Signal, Asked::Signal) | (Asked::Change, Asked::Change))
            }
            (Wanted::Zone, Wanted::Policy { .. }) | (Wanted::Policy { .. }, Wanted::Zone) => false,
        })
    }
}

impl Service {
    pub(super) fn want(&mut self, wanted: Wanted) {
        if self.files.includes(&wanted) {
            return;
        }
        if let Wanted::Policy { asked: Asked::Client { to, .. }, .. } = &wanted
            && self.files.wanted.len() >= MOST_WANTED
        {
            let sentence = "Too many wait for a policy to be read.";
            return self.respond(to, Err(ApiError::rate_limited(sentence, TRY_AGAIN.into())));
        }
        self.files.wanted.push_back(wanted);
        self.read_next_file();
    }

    pub(super) fn file_read(&mut self, read: FileRead, now: shepherd_util::Now) {
        self.files.is_reading = false;
        match read {
            FileRead::Policy(read) => self.policy_read(*read, now),
            FileRead::Zone(zone) => self.zone_read(zone, now),
        }
        self.read_next_file();
    }

    fn read_next_file(&mut self) {
        if self.files.is_reading {
            return;
        }
        let Some(wanted) = self.files.wanted.pop_front() else { return };
        self.files.is_reading = true;
        let (path, done) = (self.policy.path.clone(), self.files.done.clone());
        let asker = match &wanted {
            Wanted::Policy { asked, .. } => Some(asked.clone()),
            Wanted::Zone => None,
        };
        let started = std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            done.send(read(&path, wanted)).ok();
        });
        if let Err(error) = started {
            let read = match asker {
                Some(asked) => {
                    let result = Err(Rejected::because(format!("can't read the policy now: {error}")));
                    let (accounts, exposed) = (Accounts::default(), self.policy.exposed.clone());
                    FileRead::Policy(Box::new(PolicyRead { asked, result, accounts, exposed }))
                }
                None => FileRead::Zone(self.zone.clone()),
            };
            self.files.done.send(read).ok();
        }
    }
}

fn read(path: &Path, wanted: Wanted) -> FileRead {
    match wanted {
        Wanted::Policy { asked, from } => {
            let result = had(path, from);
            let (accounts, exposed) = (accounts(), policy_source::exposed_policy(path));
            FileRead::Policy(Box::new(PolicyRead { asked, result, accounts, exposed }))
        }
        Wanted::Zone => FileRead::Zone(crate::zone::system()),
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

/// The accounts of the machine, as far as they can be read.
pub(crate) fn accounts() -> Accounts {
    Accounts::read().unwrap_or_else(|error| {
        tracing::warn!(%error, "only numbers in `access` count");
        Accounts::default()
    })
}
