//! Finds the profile that a command is for: the profile that the client names, the profile of its account, or the only
//! one.

use shepherd_api::{ApiError, ClientRole, ErrorCode};
use shepherd_core::policy::Policy;
use shepherd_ipc::ClientInfo;
use shepherd_util::ProfileId;

/// Returns the profile that a client's command is for.
///
/// # Errors
/// Fails if the client names a profile that doesn't exist or isn't its own, or if it names none and there are several.
pub(crate) fn resolve_profile(
    client: &ClientInfo,
    named: Option<&ProfileId>,
    policy: &Policy,
) -> Result<ProfileId, ApiError> {
    let profiles = &policy.rules().profiles;
    // If the client names no profile and has none of its own, use the policy's only profile, with the same permission
    // checks.
    let mut all = profiles.keys();
    let only = all.next().filter(|_| all.next().is_none());
    let Some(named) = named.or(client.profile.as_ref()).or(only) else {
        let sentence = format!("Say which child: {}.", profile_names(policy).join(" or "));
        return Err(ApiError::new(ErrorCode::UnknownProfile, sentence));
    };
    let Some(profile) = profiles.get(named) else {
        let known = profile_names(policy).join(", ");
        let sentence = format!("No such profile `{named}`. Choose one of the profiles: {known}.");
        return Err(ApiError::new(ErrorCode::UnknownProfile, sentence));
    };
    let is_permitted = match &client.profile {
        Some(own) => own == named,
        // A profile with accounts is only for them.
        None => profile.accounts.is_empty(),
    };
    if client.role == ClientRole::Admin || is_permitted {
        return Ok(named.clone());
    }
    let code = client.refusal_code(ClientRole::Admin);
    Err(ApiError::new(code, format!("The profile `{named}` belongs to another user.")))
}

fn profile_names(policy: &Policy) -> Vec<String> {
    policy.rules().profiles.keys().map(|profile| format!("`{profile}`")).collect()
}
