//! Whose time it is that a client asks about: named, known by its account, or the only one there is.

use shepherd_api::{ApiError, ClientRole, ErrorCode};
use shepherd_core::policy::Policy;
use shepherd_ipc::ClientInfo;
use shepherd_util::ProfileId;

/// The profile that a client means.
///
/// # Errors
/// When it names one that is not there or not its own, or when nobody can tell.
pub(crate) fn resolve_profile(
    client: &ClientInfo,
    named: Option<&ProfileId>,
    policy: &Policy,
) -> Result<ProfileId, ApiError> {
    let profiles = &policy.rules().profiles;
    // Who names nobody and is nobody may mean the only one there is, and no more of that one than by name.
    let mut all = profiles.keys();
    let only = all.next().filter(|_| all.next().is_none());
    let Some(named) = named.or(client.profile.as_ref()).or(only) else {
        return Err(ApiError::new(ErrorCode::UnknownProfile, list_profiles(policy)));
    };
    let Some(profile) = profiles.get(named) else {
        let sentence = format!("There is no profile `{named}`. {}", list_profiles(policy));
        return Err(ApiError::new(ErrorCode::UnknownProfile, sentence));
    };
    let own = client.profile.as_ref().is_none_or(|own| own == named);
    // A profile with an account is that account's; one without is for whoever sits there.
    let free = profile.accounts.is_empty() || client.profile.is_some();
    if client.role == ClientRole::Admin || (own && free) {
        return Ok(named.clone());
    }
    let code = client.refusal_code(ClientRole::Admin);
    Err(ApiError::new(code, format!("The profile `{named}` is somebody else's.")))
}

fn list_profiles(policy: &Policy) -> String {
    let names: Vec<String> = policy.rules().profiles.keys().map(|profile| format!("`{profile}`")).collect();
    format!("Name one of the profiles: {}.", names.join(", "))
}
