//! The requests for time: what a parent can answer, and what a child learns of an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shepherd_api::{Command, CommandReply, EntryView, TimeRequestView};
use shepherd_ipc::CallError;
use shepherd_util::{ProfileId, RequestId};
use tokio::time::{Instant, sleep_until};

use super::{LAST_QUESTION_DELAY, Notifier};
use crate::announcement::{self, AnnouncementSubject};
use crate::desktop::ShowError;
use crate::listed_entry::ListedEntry;
use crate::recipient::{DaemonCallError, Recipient};

/// The entries of each profile, for requests that are shown together.
pub(super) type ListedEntries = BTreeMap<ProfileId, Vec<EntryView>>;

/// The next attempt to list the requests. Events are handled meanwhile, because a warning must not wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextListing {
    at: Instant,
    /// The time to wait after another failure.
    next_delay: Duration,
}

impl NextListing {
    /// Waits until the requests have to be listed again, and returns the time to wait after another failure.
    pub(super) async fn wait(next: Option<Self>) -> Duration {
        let Some(Self { at, next_delay }) = next else { return pending().await };
        sleep_until(at).await;
        next_delay
    }
}

impl Notifier {
    /// Shows the waiting requests to a parent, and answers that came unnoticed to a child. Removes requests that wait no
    /// longer. A busy daemon is asked again after the delay, because requests from before would stay invisible.
    pub(super) async fn refresh_requests(&mut self, delay: Duration) -> Result<(), ShowError> {
        self.next_listing = None;
        let mut requests = match self.list_requests().await {
            Ok(requests) => requests,
            // What is shown may still hold, and the daemon reports changes.
            Err(error) if delay > LAST_QUESTION_DELAY => {
                (self.options.report)(&error);
                return Ok(());
            }
            Err(_) => {
                self.next_listing = Some(NextListing { at: Instant::now() + delay, next_delay: delay * 2 });
                return Ok(());
            }
        };
        requests.retain(|request| match &self.recipient {
            // The child knows the open ones.
            Recipient::Child(profile) if *profile == request.profile => {
                note_request(&mut self.own_open_requests, request)
            }
            Recipient::Parent => request.state.is_open(),
            Recipient::Child(_) | Recipient::Other => false,
        });
        let waiting: BTreeSet<_> = requests.iter().map(|request| request.request_id.clone()).collect();
        let holds = |subject: &AnnouncementSubject| match subject {
            AnnouncementSubject::Request(request_id) => waiting.contains(request_id),
            AnnouncementSubject::Session(_) | AnnouncementSubject::ClosedEntry(_) => true,
        };
        let mut outcome = self.screen.remove_stale(holds).await;
        let now = self.watcher.state().map_or(Timestamp::MIN, |state| state.snapshot_at(Timestamp::MIN).at);
        let mut listed = ListedEntries::new();
        for request in requests {
            let announced = self.announce_request(&request, now, &mut listed).await;
            if let Err(error) = std::mem::replace(&mut outcome, announced) {
                (self.options.report)(&error);
            }
        }
        outcome
    }

    /// Lists the requests that concern the person at this login.
    async fn list_requests(&self) -> Result<Vec<TimeRequestView>, DaemonCallError> {
        if self.recipient == Recipient::Other {
            return Ok(Vec::new());
        }
        match self.call(Command::ListRequests {}).await? {
            CommandReply::Requests { requests } => Ok(requests),
            _ => Err(CallError::InvalidReply.into()),
        }
    }

    pub(super) async fn announce_request(
        &mut self,
        request: &TimeRequestView,
        now: Timestamp,
        listed: &mut ListedEntries,
    ) -> Result<(), ShowError> {
        let subject = AnnouncementSubject::Request(request.request_id.clone());
        let announced = match &self.recipient {
            Recipient::Child(profile) if *profile == request.profile => {
                note_request(&mut self.own_open_requests, request);
                let entry = self.entry_of(request, listed).await;
                let now = now.to_zoned(TimeZone::system());
                let session = self.sessions.values().find(|session| session.is_of(&request.entry_id));
                announcement::for_own_request(self.catalogue(), request, entry, session, &now)
            }
            // What is asked never changes. If a button was pressed meanwhile, the answer is on its way.
            Recipient::Parent if request.state.is_open() && self.screen.is_shown(&subject) => return Ok(()),
            Recipient::Parent if request.state.is_open() => {
                let entry = self.entry_of(request, listed).await;
                let label = entry.map_or(request.entry_id.as_str(), |entry| entry.view.label.as_str());
                announcement::for_request_of_child(
                    self.catalogue(),
                    request,
                    &self.name_of(&request.profile),
                    label,
                )
            }
            // Another parent has answered.
            Recipient::Parent => None,
            Recipient::Child(_) | Recipient::Other => return Ok(()),
        };
        match announced {
            Some(announced) => self.show(announced).await?,
            None => self.screen.remove(&subject).await?,
        }
        // An answer that could not be shown stays, so that the next refresh shows it.
        if !request.state.is_open() {
            self.own_open_requests.remove(&request.request_id);
        }
        Ok(())
    }

    /// Returns the entry of a request, or `None` if the daemon doesn't list it.
    pub(super) async fn entry_of<'l>(
        &self,
        request: &TimeRequestView,
        listed: &'l mut ListedEntries,
    ) -> Option<ListedEntry<'l>> {
        let profile = &request.profile;
        if !listed.contains_key(profile) {
            let list = Command::ListEntries { at_time: None, profile: Some(profile.clone()) };
            let entries = match self.call(list).await {
                Ok(CommandReply::Entries { entries, .. }) => entries,
                _ => Vec::new(),
            };
            listed.insert(profile.clone(), entries);
        }
        ListedEntry::find(listed.get(profile)?, &request.entry_id)
    }

    fn name_of(&self, profile: &ProfileId) -> String {
        let state = self.watcher.state().map(|state| state.snapshot_at(Timestamp::MIN));
        state.map_or_else(|| profile.to_string(), |state| state.profile_label(profile).to_owned())
    }
}

/// Notes a child's request if it waits, and returns whether it is one whose answer the child doesn't know.
fn note_request(open_requests: &mut BTreeSet<RequestId>, request: &TimeRequestView) -> bool {
    if request.state.is_open() {
        open_requests.insert(request.request_id.clone());
        return false;
    }
    open_requests.contains(&request.request_id)
}
