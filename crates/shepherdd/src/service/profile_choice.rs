//! Chooses the profile that a client means: the one it names, the one of its account, or the only one.

use shepherd_api::{ApiError, ClientRole, ErrorCode};
use shepherd_core::policy::Policy;
use shepherd_ipc::ClientInfo;
use shepherd_util::ProfileId;

/// Returns the profile that a client means.
///
/// # Errors
/// Fails if the client names a profile that doesn't exist or isn't its own, or if several profiles could be meant.
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
        return Err(ApiError::new(ErrorCode::UnknownProfile, list_profiles(policy)));
    };
    let Some(profile) = profiles.get(named) else {
        let sentence = format!("No such profile `{named}`. {}", list_profiles(policy));
        return Err(ApiError::new(ErrorCode::UnknownProfile, sentence));
    };
    let own = client.profile.as_ref().is_none_or(|own| own == named);
    // A profile with accounts belongs to them; any client may use a profile without.
    let free = profile.accounts.is_empty() || client.profile.is_some();
    if client.role == ClientRole::Admin || (own && free) {
        return Ok(named.clone());
    }
    let code = client.refusal_code(ClientRole::Admin);
    Err(ApiError::new(code, format!("The profile `{named}` belongs to another user.")))
}

fn list_profiles(policy: &Policy) -> String {
    let names: Vec<String> = policy.rules().profiles.keys().map(|profile| format!("`{profile}`")).collect();
    format!("Choose one of the profiles: {}.", names.join(", "))
}
