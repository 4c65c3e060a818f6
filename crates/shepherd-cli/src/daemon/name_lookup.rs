//! Finds the entries and profiles that the user names by their id or label.

use std::collections::BTreeMap;
use std::fmt::Display;

use shepherd_api::{Command, CommandReply, EntryView, ErrorCode, ProfileView};
use shepherd_ipc::CallError;
use shepherd_util::{EntryId, ProfileId};

use super::DaemonConnection;
use crate::error::ShepherdCliError;
use crate::names::{NameMatch, match_name};
use crate::refusal::{ENTRY_LIST_HELP, unknown_name_help};

impl DaemonConnection<'_> {
    /// Finds a profile by its id or label.
    pub(crate) fn resolve_profile(&mut self, given: &str) -> Result<ProfileId, ShepherdCliError> {
        let known = self.fetch_profile_names()?;
        match match_name(given, &known) {
            NameMatch::One(profile) => Ok(profile),
            NameMatch::Several(found) => Err(ambiguous_name("profiles", given, &found)),
            // An older daemon lists no profiles.
            NameMatch::Nothing { .. } if known.is_empty() => given.parse().map_err(|_| {
                unknown_name("profile", given, None, "the policy names the profiles under `[profiles]`")
            }),
            NameMatch::Nothing { near } => {
                let ids: Vec<String> = known.iter().map(|(id, _)| format!("`{id}`")).collect();
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the policy has {}", ids.join(", ")),
                };
                Err(ShepherdCliError::UnknownName { what: "profile", given: given.to_owned(), help })
            }
        }
    }

    /// Finds an entry by its id or label. An id that isn't listed is returned as it is, because the daemon may know it
    /// as an entry of another profile. An id of another profile's entry counts more than a label of this profile.
    pub(crate) fn resolve_entry(
        &mut self,
        given: &str,
        profile: Option<&ProfileId>,
    ) -> Result<EntryId, ShepherdCliError> {
        let as_id = given.trim().to_lowercase().parse::<EntryId>().ok();
        let found = match_name(given, &self.fetch_entry_names(profile)?);
        let is_id = |entry_id: &EntryId| Some(entry_id) == as_id.as_ref();
        let is_label = match &found {
            NameMatch::One(entry_id) => !is_id(entry_id),
            NameMatch::Several(_) => true,
            NameMatch::Nothing { .. } => false,
        };
        if is_label && let Some(entry_id) = self.fetch_household_names()?.into_keys().find(is_id) {
            return Ok(entry_id);
        }
        match found {
            NameMatch::One(entry_id) => Ok(entry_id),
            NameMatch::Several(found) => Err(ambiguous_name("entries", given, &found)),
            NameMatch::Nothing { near } => given.parse().map_err(|_| {
                unknown_name("entry", given, near.as_ref().map(EntryId::as_str), ENTRY_LIST_HELP)
            }),
        }
    }

    /// Returns the error for an entry that this user's entries don't include.
    pub(crate) fn unknown_entry(&mut self, entry_id: &EntryId) -> ShepherdCliError {
        let near = self.find_near_entry(entry_id.as_str(), self.profile().as_ref());
        unknown_name("entry", entry_id.as_str(), near.as_deref(), ENTRY_LIST_HELP)
    }

    /// Returns the entry that a misspelt name is probably meant to be, if the entries can be listed.
    pub(super) fn find_near_entry(&mut self, given: &str, profile: Option<&ProfileId>) -> Option<String> {
        match match_name(given, &self.fetch_entry_names(profile).ok()?) {
            NameMatch::Nothing { near } => near.map(|near| near.to_string()),
            NameMatch::One(_) | NameMatch::Several(_) => None,
        }
    }

    /// Fetches all profiles.
    pub(super) fn fetch_profiles(&mut self) -> Result<Vec<ProfileView>, ShepherdCliError> {
        match self.client.call(Command::GetState {})? {
            CommandReply::State { snapshot } => Ok(snapshot.profiles),
            _ => Err(ShepherdCliError::UnexpectedReply),
        }
    }

    /// Fetches the ids and labels of all profiles.
    pub(super) fn fetch_profile_names(&mut self) -> Result<Vec<(ProfileId, String)>, ShepherdCliError> {
        Ok(self.fetch_profiles()?.into_iter().map(|known| (known.profile, known.label)).collect())
    }

    /// Fetches the ids and labels of the entries of a profile; of all profiles if none is named and this user has none.
    pub(super) fn fetch_entry_names(
        &mut self,
        profile: Option<&ProfileId>,
    ) -> Result<Vec<(EntryId, String)>, ShepherdCliError> {
        match self.fetch_entries(profile)? {
            Some(entries) => Ok(entries.into_iter().map(id_and_label).collect()),
            None => Ok(self.fetch_household_names()?.into_iter().collect()),
        }
    }

    /// Fetches the ids and labels of all entries that this user may see.
    fn fetch_household_names(&mut self) -> Result<BTreeMap<EntryId, String>, ShepherdCliError> {
        let mut names = BTreeMap::new();
        for (profile, _) in self.fetch_profile_names()? {
            let entries = self.fetch_entries(Some(&profile))?.unwrap_or_default();
            names.extend(entries.into_iter().map(id_and_label));
        }
        Ok(names)
    }

    /// Fetches the entries of a profile. Returns `None` if this user may not see them, or names no profile although there
    /// are several.
    pub(crate) fn fetch_entries(
        &mut self,
        profile: Option<&ProfileId>,
    ) -> Result<Option<Vec<EntryView>>, ShepherdCliError> {
        match self.client.call(Command::ListEntries { at_time: None, profile: profile.cloned() }) {
            Ok(CommandReply::Entries { entries, .. }) => Ok(Some(entries)),
            Ok(_) => Err(ShepherdCliError::UnexpectedReply),
            Err(CallError::Refused(error)) if is_about_profile(error.code) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn id_and_label(entry: EntryView) -> (EntryId, String) {
    (entry.entry_id, entry.label)
}

/// Returns true if a question about a child was refused because of the profile.
pub(super) fn is_about_profile(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::UnknownProfile | ErrorCode::NotPermitted | ErrorCode::PinRequired)
}

fn unknown_name(what: &'static str, given: &str, near: Option<&str>, list: &str) -> ShepherdCliError {
    let help = unknown_name_help(near, list);
    ShepherdCliError::UnknownName { what, given: given.to_owned(), help }
}

fn ambiguous_name<Id: Display>(what: &'static str, given: &str, found: &[Id]) -> ShepherdCliError {
    let ids = found.iter().map(ToString::to_string).collect();
    ShepherdCliError::AmbiguousName { what, given: given.to_owned(), ids }
}
