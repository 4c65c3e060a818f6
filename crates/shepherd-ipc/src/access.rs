//! Who may do what, as a pure question (S11.3, S11.3b).

use std::collections::BTreeMap;

use shepherd_api::ClientRole;
use shepherd_util::ProfileId;

const ROOT: u32 = 0;

/// Who is at the other end, as the kernel says. It can't be forged, and it is as of the moment of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The user.
    pub uid: u32,
    /// The group that the process acted with. Other groups of the user are found by [`resolve_access`](crate::resolve).
    pub gid: u32,
    /// The process, for the log. It may be gone, and its number somebody else's.
    pub pid: Option<i32>,
}

/// Whether administration needs a PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinState {
    /// It does.
    Set,
    /// It does not.
    NotSet,
}

/// What a peer may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPermissions {
    /// What it may do as it is.
    pub role: ClientRole,
    /// What it may do after it gave the PIN.
    pub role_with_pin: ClientRole,
    /// Whose time it uses; a peer with a profile can't choose another.
    pub profile: Option<ProfileId>,
}

/// Whoever says what a peer may do. [`AccessRules`] does so by the policy; another mechanism can take its place.
pub trait PeerAuthorizer: Send + Sync {
    /// What this peer may do; `Normal` is nothing at all, not even to be connected.
    fn authorize(&self, peer: &PeerCredentials, pin: PinState) -> Option<PeerPermissions>;
}

/// The access rules of the policy, in numbers. [`resolve_access`](crate::resolve) makes one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// The daemon's own user, who is an administrator like root.
    pub owner_uid: u32,
    /// What users may do.
    pub users: BTreeMap<u32, ClientRole>,
    /// What whoever acts with a group may do.
    pub groups: BTreeMap<u32, ClientRole>,
    /// What everybody else may do.
    pub others: Option<ClientRole>,
    /// Whose time a user uses.
    pub profiles: BTreeMap<u32, ProfileId>,
    /// Whose time is used by users who are not named, but act with a group that is.
    pub group_profiles: BTreeMap<u32, ProfileId>,
}

impl AccessRules {
    /// Everything that matches, and of that the most.
    fn role(&self, peer: &PeerCredentials) -> Option<ClientRole> {
        if peer.uid == ROOT || peer.uid == self.owner_uid {
            return Some(ClientRole::Admin);
        }
        let named = self.users.get(&peer.uid).max(self.groups.get(&peer.gid)).copied();
        named.max(self.others)
    }

    fn profile(&self, peer: &PeerCredentials) -> Option<ProfileId> {
        self.profiles.get(&peer.uid).or_else(|| self.group_profiles.get(&peer.gid)).cloned()
    }
}

impl PeerAuthorizer for AccessRules {
    fn authorize(&self, peer: &PeerCredentials, pin: PinState) -> Option<PeerPermissions> {
        let role_with_pin = self.role(peer)?;
        // Root reads the hash and could replace it: asking it for a PIN protects nothing and locks a machine up.
        let role = match pin {
            PinState::Set if peer.uid != ROOT => role_with_pin.min(ClientRole::Shell),
            PinState::Set | PinState::NotSet => role_with_pin,
        };
        Some(PeerPermissions { role, role_with_pin, profile: self.profile(peer) })
    }
}
