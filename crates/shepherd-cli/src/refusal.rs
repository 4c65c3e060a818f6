//! A command that the daemon refused, and the advice for the `help:` line.

use std::time::Duration;

use rustix::process::geteuid;
use shepherd_api::{ApiError, ClientRole, Command, EntryScope, ErrorCode, ReasonCode};
use shepherd_util::{EntryId, ProfileId};

use crate::context::DisplaySettings;
use crate::grants::bedtime_command;
use crate::humanize;

/// The advice for an unknown entry.
pub(crate) const ENTRY_LIST_HELP: &str = "`shepherd list` shows all entries";

/// A command that the daemon refused, with the facts that the advice depends on.
#[derive(Debug)]
pub(crate) struct RefusedCommand {
    pub(crate) error: ApiError,
    /// The entry that the command is about.
    entry: Option<EntryId>,
    /// The profile that the command names.
    profile: Option<ProfileId>,
    /// The role of this user at the daemon.
    role: ClientRole,
    /// The time in an hour, as it would be typed.
    in_an_hour: String,
    /// The entry that was probably meant.
    pub(crate) near: Option<String>,
    /// The profiles that the command could name.
    pub(crate) profiles: Vec<ProfileId>,
}

impl RefusedCommand {
    pub(crate) fn new(
        error: ApiError,
        command: &Command,
        role: ClientRole,
        display: &DisplaySettings,
    ) -> Self {
        let (entry, profile) = match command {
            Command::Launch { entry_id, profile, .. }
            | Command::Why { entry_id, profile, .. }
            | Command::RequestTime { entry_id, profile, .. } => (Some(entry_id.clone()), profile.clone()),
            Command::Grant { scope: EntryScope::Entry { entry_id }, profile, .. } => {
                (Some(entry_id.clone()), profile.clone())
            }
            _ => (None, None),
        };
        Self { entry, profile, role, in_an_hour: humanize::time_in_an_hour(display), ..Self::from(error) }
    }

    /// Returns the entry of the command if the policy doesn't have it.
    pub(crate) fn unknown_entry(&self) -> Option<&EntryId> {
        let names_none = |reason: &ReasonCode| matches!(reason, ReasonCode::UnknownEntry { .. });
        let is_unknown =
            self.error.code == ErrorCode::UnknownEntry || self.error.reasons.iter().any(names_none);
        self.entry.as_ref().filter(|_| is_unknown)
    }

    pub(crate) fn profile(&self) -> Option<&ProfileId> {
        self.profile.as_ref()
    }

    /// Returns the advice for the `help:` line.
    pub(crate) fn help(&self) -> Option<String> {
        if self.unknown_entry().is_some() {
            return Some(unknown_name_help(self.near.as_deref(), ENTRY_LIST_HELP));
        }
        let help = match self.error.code {
            ErrorCode::Denied => return self.denial_help(),
            ErrorCode::NotPermitted => "only parents can do this, with their own login or with `sudo`",
            ErrorCode::UnknownProfile if self.profiles.is_empty() => "name the child with `--profile NAME`",
            ErrorCode::UnknownProfile => {
                let options: Vec<String> =
                    self.profiles.iter().map(|profile| format!("`--profile {profile}`")).collect();
                return Some(format!("add {} to the command", options.join(" or ")));
            }
            ErrorCode::PinRequired => "give the PIN with `--pin-file FILE`, or run the command in a terminal",
            ErrorCode::UnknownSession => {
                "`shepherd log` without an id shows the latest session; an administrator finds others with `shepherd \
                 audit list`"
            }
            ErrorCode::NoSession => "`shepherd list` shows what can be launched",
            ErrorCode::SeveralSessions => {
                "add the program or the child to the command, such as `tuxmath` or `--profile anna`"
            }
            ErrorCode::UnsupportedVersion | ErrorCode::UnknownCommand => {
                "install `shepherd` and `shepherdd` in the same version"
            }
            ErrorCode::RateLimited => "wait a moment and try again",
            ErrorCode::StoreUnavailable => "`shepherd health` shows what is wrong",
            _ => return None,
        };
        Some(help.to_owned())
    }

    /// Returns the advice for a launch that the policy denies: a child asks for time, a parent gives it.
    fn denial_help(&self) -> Option<String> {
        let entry = self.entry.as_ref()?;
        let of_child = |option: &str| {
            self.profile.as_ref().map(|profile| format!(" {option} {profile}")).unwrap_or_default()
        };
        let why = format!("`shepherd why {entry}{}` shows every rule", of_child("--profile"));
        let has = |is_meant: fn(&ReasonCode) -> bool| self.error.reasons.iter().any(is_meant);
        let remedy = if has(|reason| matches!(reason, ReasonCode::SessionActive { .. })) {
            "`shepherd status` shows the running entry, and `shepherd stop` ends it".to_owned()
        } else if has(|reason| matches!(reason, ReasonCode::LoginNotFound { .. })) {
            // Time would not help, and the reason itself names the cure.
            return Some(why);
        } else if has(|reason| matches!(reason, ReasonCode::AccountMissing)) {
            // Time would not help.
            match self.role {
                ClientRole::Admin => "`shepherd policy check` shows the lines to write".to_owned(),
                ClientRole::Shell | ClientRole::Observer => return Some(why),
            }
        } else if self.role != ClientRole::Admin {
            format!("`shepherd request {entry} 15m` asks a parent for time")
        } else if has(|reason| matches!(reason, ReasonCode::Bedtime { .. })) {
            const LATER: Duration = Duration::from_mins(20);
            let command = bedtime_command(LATER, Some(entry.as_str()), self.profile.as_ref());
            format!("`{command}` opens it for 20 minutes")
        } else if has(|reason| matches!(reason, ReasonCode::OutsideHours { .. })) {
            let command = open_command(&self.in_an_hour, entry, self.profile.as_ref());
            format!("`{command}` opens it for an hour")
        } else if has(|reason| matches!(reason, ReasonCode::QuotaExhausted { .. })) {
            format!("`shepherd grant 15m --entry {entry}{}` gives 15 minutes more", of_child("--for"))
        } else {
            return Some(why);
        };
        Some(format!("{why}; {remedy}"))
    }
}

impl From<ApiError> for RefusedCommand {
    fn from(error: ApiError) -> Self {
        Self {
            error,
            entry: None,
            profile: None,
            role: ClientRole::Observer,
            in_an_hour: String::new(),
            near: None,
            profiles: Vec::new(),
        }
    }
}

/// Returns the command that opens an entry until a time.
pub(crate) fn open_command(until: &str, entry: &EntryId, profile: Option<&ProfileId>) -> String {
    let child = profile.map(|profile| format!(" --for {profile}")).unwrap_or_default();
    format!("shepherd grant --open-until {until} --entry {entry}{child}")
}

/// Returns the advice for a name that fits nothing.
pub(crate) fn unknown_name_help(near: Option<&str>, list: &str) -> String {
    near.map_or_else(|| list.to_owned(), |near| format!("did you mean `{near}`? {list}"))
}

/// Returns the advice for a login that the policy doesn't mention.
pub(crate) fn unknown_login_help() -> String {
    login_help(humanize::account_name(geteuid().as_raw()).as_deref())
}

fn login_help(login: Option<&str>) -> String {
    let login = login.map_or_else(|| "the login".to_owned(), |login| format!("\"{login}\""));
    format!(
        "if this is a child, a parent puts {login} into the `accounts` of a profile in the policy; if you are a parent, put \
         `sudo` before the command, or {login} into `admins` under `[access]`; if {login} is there already, a parent runs \
         `sudo shepherd reload`"
    )
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn denied(role: ClientRole, profile: Option<&str>, reasons: Vec<ReasonCode>) -> String {
        let command = Command::Launch {
            entry_id: "tuxmath".parse().unwrap(),
            profile: profile.map(|profile| profile.parse().unwrap()),
            display: None,
        };
        let display = DisplaySettings::new("2026-11-16T19:30:00Z".parse().unwrap(), TimeZone::UTC, 80);
        RefusedCommand::new(ApiError::denied("", reasons), &command, role, &display).help().unwrap()
    }

    #[test]
    fn the_advice_for_an_unknown_login_names_the_child_first() {
        assert_eq!(
            login_help(Some("anna")),
            "if this is a child, a parent puts \"anna\" into the `accounts` of a profile in the policy; if you are a \
             parent, put `sudo` before the command, or \"anna\" into `admins` under `[access]`; if \"anna\" is there already, \
             a parent runs `sudo shepherd reload`"
        );
        assert!(
            login_help(None).starts_with("if this is a child, a parent puts the login into the `accounts`")
        );
    }

    #[test]
    fn a_parent_learns_how_to_put_bedtime_off() {
        // S19.4.
        let bedtime = || vec![ReasonCode::Bedtime { until: None }];
        assert_eq!(
            denied(ClientRole::Admin, Some("anna"), bedtime()),
            "`shepherd why tuxmath --profile anna` shows every rule; `shepherd grant 20m --bedtime --entry tuxmath --for \
             anna` opens it for 20 minutes"
        );
        assert_eq!(
            denied(ClientRole::Shell, None, bedtime()),
            "`shepherd why tuxmath` shows every rule; `shepherd request tuxmath 15m` asks a parent for time"
        );
    }

    #[test]
    fn the_advice_names_the_entry_and_fits_the_reader() {
        let closed = || vec![ReasonCode::OutsideHours { next_opening: None }];
        assert_eq!(
            denied(ClientRole::Shell, None, closed()),
            "`shepherd why tuxmath` shows every rule; `shepherd request tuxmath 15m` asks a parent for time"
        );
        assert_eq!(
            denied(ClientRole::Admin, Some("anna"), closed()),
            "`shepherd why tuxmath --profile anna` shows every rule; `shepherd grant --open-until 20:30 --entry tuxmath \
             --for anna` opens it for an hour"
        );
        let nobody_named =
            || vec![ReasonCode::OutsideHours { next_opening: None }, ReasonCode::AccountMissing];
        assert_eq!(
            denied(ClientRole::Shell, None, nobody_named()),
            "`shepherd why tuxmath` shows every rule",
            "time would not help"
        );
        assert_eq!(
            denied(ClientRole::Admin, None, nobody_named()),
            "`shepherd why tuxmath` shows every rule; `shepherd policy check` shows the lines to write"
        );
        let unknown_login = || vec![ReasonCode::LoginNotFound { login: "anna".to_owned() }];
        for role in [ClientRole::Shell, ClientRole::Admin] {
            assert_eq!(denied(role, None, unknown_login()), "`shepherd why tuxmath` shows every rule");
        }
        assert_eq!(
            denied(ClientRole::Admin, None, vec![ReasonCode::NotForProfile]),
            "`shepherd why tuxmath` shows every rule"
        );
    }
}
