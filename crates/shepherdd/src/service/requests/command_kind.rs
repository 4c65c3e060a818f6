//! Sorts commands into questions, which change nothing, and acts, so that each handler matches only its own kind.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use shepherd_api::{AdminPin, ClientDisplay, Command, EntryScope, GrantKind, StopMode, TimeRequestDecision};
use shepherd_util::{EntryId, GrantId, ProfileId, RequestId, SessionId};

pub(super) enum CommandKind {
    Question(ClientQuestion),
    Act(ClientAct),
    /// The connection handles this command before it would reach the service.
    Authenticate,
}

pub(super) enum ClientQuestion {
    State,
    Entries { at: Option<Timestamp>, profile: Option<ProfileId> },
    Why { entry_id: EntryId, at: Option<Timestamp>, profile: Option<ProfileId> },
    Timeline { from: Timestamp, to: Timestamp, profile: Option<ProfileId> },
    Usage { from: Date, to: Date, profile: Option<ProfileId> },
    Requests,
    Grants,
    Policy,
    Health,
    Metrics,
    Audit { after: Option<u64>, limit: u32 },
    SessionLog { session: Option<String>, profile: Option<ProfileId> },
    Login { uid: u32, gid: Option<u32> },
}

pub(super) enum ClientAct {
    Launch(LaunchParams),
    Stop { mode: StopMode, session_id: Option<SessionId> },
    Extend { by: Duration, session_id: Option<SessionId> },
    ReloadPolicy,
    SetPolicy { text: String },
    RequestTime(TimeRequestParams),
    MarkRequestSeen { request_id: RequestId },
    DecideRequest { request_id: RequestId, decision: TimeRequestDecision },
    Grant(GrantParams),
    RevokeGrant { grant_id: GrantId },
    SwitchMode { mode: Option<String> },
    ConfirmClock,
    SetPin { pin: Option<AdminPin> },
    Subscribe,
}

/// A launch, as the client sent it.
pub(super) struct LaunchParams {
    pub(super) entry_id: EntryId,
    pub(super) profile: Option<ProfileId>,
    pub(super) display: Option<ClientDisplay>,
}

/// A child's request for time, as the client sent it.
pub(super) struct TimeRequestParams {
    pub(super) entry_id: EntryId,
    pub(super) minutes: u32,
    pub(super) note: Option<String>,
    pub(super) profile: Option<ProfileId>,
}

/// A grant, as the client sent it.
pub(super) struct GrantParams {
    pub(super) profile: Option<ProfileId>,
    pub(super) scope: EntryScope,
    pub(super) gift: GrantKind,
    pub(super) valid_from: Option<Timestamp>,
    pub(super) lapses_at: Option<Timestamp>,
    pub(super) why: Option<String>,
}

impl ClientQuestion {
    /// Returns whether the answer depends on the usage of running sessions up to now, and of which profile if the
    /// question names one.
    pub(super) fn depends_on_usage(&self) -> Option<Option<&ProfileId>> {
        match self {
            Self::Entries { profile, .. }
            | Self::Why { profile, .. }
            | Self::Timeline { profile, .. }
            | Self::Usage { profile, .. } => Some(profile.as_ref()),
            // The account of the login decides the profile.
            Self::Login { .. } => Some(None),
            Self::State
            | Self::Requests
            | Self::Grants
            | Self::Policy
            | Self::Health
            | Self::Metrics
            | Self::Audit { .. }
            | Self::SessionLog { .. } => None,
        }
    }
}

impl From<Command> for CommandKind {
    fn from(command: Command) -> Self {
        match command {
            Command::GetState {} => Self::Question(ClientQuestion::State),
            Command::ListEntries { at_time: at, profile } => {
                Self::Question(ClientQuestion::Entries { at, profile })
            }
            Command::Why { entry_id, at, profile } => {
                Self::Question(ClientQuestion::Why { entry_id, at, profile })
            }
            Command::Timeline { from, to, profile } => {
                Self::Question(ClientQuestion::Timeline { from, to, profile })
            }
            Command::Usage { from, to, profile } => {
                Self::Question(ClientQuestion::Usage { from, to, profile })
            }
            Command::ListRequests {} => Self::Question(ClientQuestion::Requests),
            Command::ListGrants {} => Self::Question(ClientQuestion::Grants),
            Command::GetPolicy {} => Self::Question(ClientQuestion::Policy),
            Command::Health {} => Self::Question(ClientQuestion::Health),
            Command::Metrics {} => Self::Question(ClientQuestion::Metrics),
            Command::CheckLogin { uid, gid } => Self::Question(ClientQuestion::Login { uid, gid }),
            Command::ReadAudit { after, limit } => Self::Question(ClientQuestion::Audit { after, limit }),
            Command::ReadSessionLog { session, profile } => {
                Self::Question(ClientQuestion::SessionLog { session, profile })
            }
            Command::Launch { entry_id, profile, display } => {
                Self::Act(ClientAct::Launch(LaunchParams { entry_id, profile, display }))
            }
            Command::StopCurrent { mode, session_id } => Self::Act(ClientAct::Stop { mode, session_id }),
            Command::ExtendCurrent { by, session_id } => {
                Self::Act(ClientAct::Extend { by: by.into(), session_id })
            }
            Command::ReloadConfig {} => Self::Act(ClientAct::ReloadPolicy),
            Command::SetPolicy { text } => Self::Act(ClientAct::SetPolicy { text }),
            Command::RequestTime { entry_id, minutes, note, profile } => {
                let note = note.map(Into::into);
                Self::Act(ClientAct::RequestTime(TimeRequestParams { entry_id, minutes, note, profile }))
            }
            Command::MarkRequestSeen { request_id } => Self::Act(ClientAct::MarkRequestSeen { request_id }),
            Command::DecideRequest { request_id, decision } => {
                Self::Act(ClientAct::DecideRequest { request_id, decision })
            }
            Command::Grant { profile, scope, gift, valid_from, lapses_at, why } => {
                let why = why.map(Into::into);
                Self::Act(ClientAct::Grant(GrantParams { profile, scope, gift, valid_from, lapses_at, why }))
            }
            Command::RevokeGrant { grant_id } => Self::Act(ClientAct::RevokeGrant { grant_id }),
            Command::SwitchMode { mode } => Self::Act(ClientAct::SwitchMode { mode }),
            Command::ConfirmClock {} => Self::Act(ClientAct::ConfirmClock),
            Command::SetPin { pin } => Self::Act(ClientAct::SetPin { pin }),
            Command::SubscribeEvents {} => Self::Act(ClientAct::Subscribe),
            Command::Authenticate { .. } => Self::Authenticate,
        }
    }
}
