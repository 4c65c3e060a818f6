//! Accounts whose logins the policy limits (S19.2).

use shepherd_api::ClientRole;
use shepherd_core::policy::LoginWithoutDaemon;
use shepherd_ipc::{PeerAuthorizer as _, PeerCredentials, PinState};
use shepherd_util::ProfileId;

use super::DaemonService;
use super::file_reads::FileReadRequest;
use crate::login_accounts::LoginAccounts;

/// A group that no account has, for an account whose group isn't known.
const NO_GROUP: u32 = u32::MAX;

impl DaemonService {
    /// Returns the profile whose time a login of this account uses. There is none for root, administrators and accounts
    /// without a profile, which are never limited.
    pub(super) fn limited_profile(&self, uid: u32, gid: Option<u32>) -> Option<ProfileId> {
        let account = PeerCredentials { uid, gid: gid.unwrap_or(NO_GROUP), pid: None };
        let permissions = self.access.authorize(&account, PinState::NotSet)?;
        permissions.profile.filter(|_| permissions.role != ClientRole::Admin)
    }

    /// Has the accounts written down that may not log in while no daemon runs.
    pub(super) fn save_login_accounts(&mut self) {
        // Without a policy, the accounts of the last one are the best that is known.
        if self.policy.source.is_none() {
            return;
        }
        let policy = self.engine.policy();
        let is_refused = |uid: &&u32| {
            let profile = self.limited_profile(**uid, None);
            let login = profile.and_then(|profile| policy.login_entry(&profile));
            login.is_some_and(|login| login.run.login.without_daemon == LoginWithoutDaemon::Refuse)
        };
        let refused = self.access.profiles.keys().filter(is_refused).copied().collect();
        self.request_file_read(FileReadRequest::SaveLoginAccounts(LoginAccounts::new(refused)));
    }
}
