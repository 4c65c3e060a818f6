//! Answers questions of clients, which change nothing.

use jiff::Timestamp;
use jiff::civil::Date;
use shepherd_api::{ApiError, ClientRole, CommandReply, ErrorCode, TimeRequestView};
use shepherd_ipc::ClientInfo;
use shepherd_util::{EntryId, ProfileId};

use super::command_kind::ClientQuestion;
use super::{ReplyResult, RequestContext};
use crate::query_thread::{EngineQuery, EngineQuestion};
use crate::service::DaemonService;
use crate::service::profile_choice::resolve_profile;
use crate::session_log_thread::{ReadableProfiles, SessionLogQuery};

/// Lines of the audit log in one answer.
const MAX_AUDIT_RECORDS: u32 = 1_000;

/// The number of entries that the loop itself lists, in a fraction of a millisecond. Longer lists are made by another
/// thread, and may arrive after an event that happened meanwhile.
const MAX_ENTRIES_ON_LOOP: usize = 250;

impl DaemonService {
    /// Answers at once, unless another thread has to find the answer.
    pub(super) fn answer_question(&mut self, request: &RequestContext, question: ClientQuestion) {
        let now = request.now;
        // Usage was last counted when something was due.
        match question.depends_on_usage() {
            Some(Some(profile)) => self.engine.count_profile_usage_until(profile, now),
            Some(None) => self.engine.count_usage_until(now),
            None => {}
        }
        let answer = match question {
            ClientQuestion::State => Ok(CommandReply::State { snapshot: self.engine.get_state(now) }),
            ClientQuestion::Entries { at, profile } => {
                match self.list_entries(request, at, profile.as_ref()) {
                    Ok(Some(reply)) => Ok(reply),
                    Ok(None) => return,
                    Err(error) => Err(error),
                }
            }
            ClientQuestion::Why { entry_id, at, profile } => {
                self.why(request, &entry_id, at, profile.as_ref())
            }
            ClientQuestion::Timeline { from, to, profile } => {
                match self.queue_timeline(request, profile.as_ref(), from, to) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            ClientQuestion::Usage { from, to, profile } => self.usage(request, from, to, profile.as_ref()),
            ClientQuestion::Requests => {
                Ok(CommandReply::Requests { requests: self.requests_for(&request.client) })
            }
            ClientQuestion::Grants => Ok(CommandReply::Grants { grants: self.engine.active_grants(now) }),
            ClientQuestion::Policy => Ok(self.policy_text()),
            ClientQuestion::Health => Ok(CommandReply::Health { health: self.health(now) }),
            ClientQuestion::Metrics => Ok(CommandReply::Metrics { text: self.metrics_text() }),
            ClientQuestion::Login { uid, gid } => self.check_login(request, uid, gid),
            ClientQuestion::Audit { after, limit } => match self.queue_audit_read(request, after, limit) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            ClientQuestion::SessionLog { session, profile } => {
                match self.queue_session_log(request, session, profile.as_ref()) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
        };
        self.respond(&request.reply_to, answer);
    }

    /// Lists the entries, or queues a long list and returns nothing.
    fn list_entries(
        &self,
        request: &RequestContext,
        at: Option<Timestamp>,
        named: Option<&ProfileId>,
    ) -> Result<Option<CommandReply>, ApiError> {
        let profile = resolve_profile(&request.client, named, self.engine.policy())?;
        let question = EngineQuestion::Entries { now: request.now, at };
        if self.engine.policy().entries().len() <= MAX_ENTRIES_ON_LOOP {
            return question.answer(&self.engine, profile).map(Some);
        }
        let (to, uid) = (request.reply_to.clone(), request.client.peer.uid);
        self.listing_thread.submit(EngineQuery { to, uid, profile, question }, &self.engine)?;
        Ok(None)
    }

    fn why(
        &self,
        request: &RequestContext,
        entry_id: &EntryId,
        at: Option<Timestamp>,
        named: Option<&ProfileId>,
    ) -> ReplyResult {
        let profile = resolve_profile(&request.client, named, self.engine.policy())?;
        let why = match at {
            Some(at) => self.engine.why_at(&profile, entry_id, at),
            None => self.engine.why(&profile, entry_id, request.now),
        };
        Ok(CommandReply::Why { why: why? })
    }

    /// Returns the usage of a profile. Without a name, an administrator gets the usage of every profile.
    fn usage(
        &self,
        request: &RequestContext,
        from: Date,
        to: Date,
        named: Option<&ProfileId>,
    ) -> ReplyResult {
        let profile = match named {
            None if request.client.role == ClientRole::Admin => None,
            named => Some(resolve_profile(&request.client, named, self.engine.policy())?),
        };
        let usage = self.engine.usage(from, to, profile.as_ref())?;
        Ok(CommandReply::Usage { today: Some(self.engine.today(request.now)), usage })
    }

    /// Returns the requests of the client's own profile; an administrator gets all of them.
    fn requests_for(&self, client: &ClientInfo) -> Vec<TimeRequestView> {
        let own = client.profile.as_ref().filter(|_| client.role != ClientRole::Admin);
        let mut requests = self.engine.requests();
        requests.retain(|request| own.is_none_or(|own| request.profile == *own));
        requests
    }

    fn policy_text(&self) -> CommandReply {
        let source = self.policy.source.as_ref();
        CommandReply::Policy {
            text: source.map(|source| source.text.clone()),
            digest: source.map(|source| source.digest.clone()),
            path: self.policy.path.to_str().map(str::to_owned),
        }
    }

    fn queue_timeline(
        &self,
        request: &RequestContext,
        named: Option<&ProfileId>,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<(), ApiError> {
        let profile = resolve_profile(&request.client, named, self.engine.policy())?;
        let (to, uid) = (request.reply_to.clone(), request.client.peer.uid);
        let question = EngineQuestion::Timeline { from, until };
        self.timeline_thread.submit(EngineQuery { to, uid, profile, question }, &self.engine)
    }

    /// Queues the search for a session and its output. The thread that searches gets the profiles that the client may
    /// see, because only the loop knows the policy.
    fn queue_session_log(
        &self,
        request: &RequestContext,
        session: Option<String>,
        named: Option<&ProfileId>,
    ) -> Result<(), ApiError> {
        let Some(folder) = self.host.output_folder() else {
            return Err(ApiError::new(
                ErrorCode::UnknownSession,
                "The output of sessions isn't kept on this machine.",
            ));
        };
        let policy = self.engine.policy();
        let profile = named.map(|named| resolve_profile(&request.client, Some(named), policy)).transpose()?;
        let may_use = |profile: &ProfileId| resolve_profile(&request.client, Some(profile), policy).is_ok();
        let readable = match request.client.role {
            ClientRole::Admin => ReadableProfiles::All,
            ClientRole::Shell | ClientRole::Observer => ReadableProfiles::Only {
                profiles: policy
                    .rules()
                    .profiles
                    .keys()
                    .filter(|profile| may_use(profile))
                    .cloned()
                    .collect(),
                refusal: request.client.refusal_code(ClientRole::Admin),
            },
        };
        let labels = policy.entries().iter().map(|entry| (entry.entry_id.clone(), entry.label.clone()));
        self.session_log_thread.submit(SessionLogQuery {
            to: request.reply_to.clone(),
            uid: request.client.peer.uid,
            session,
            profile,
            readable,
            running: self.engine.sessions().iter().map(|session| session.session_id.clone()).collect(),
            labels: labels.collect(),
            output_folder: folder,
        })
    }

    fn queue_audit_read(
        &mut self,
        request: &RequestContext,
        after: Option<u64>,
        limit: u32,
    ) -> Result<(), ApiError> {
        let query_id = self.store.read_audit(after, limit.min(MAX_AUDIT_RECORDS));
        let query_id = query_id.map_err(|why| ApiError::new(ErrorCode::StoreUnavailable, why))?;
        self.audit_queries.insert(query_id, request.reply_to.clone());
        Ok(())
    }
}
