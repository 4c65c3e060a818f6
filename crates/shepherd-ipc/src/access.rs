//! Access decisions: which role a peer has, as a pure function (S11.3, S11.3b).

use std::collections::BTreeMap;

use shepherd_api::ClientRole;
use shepherd_util::ProfileId;

const ROOT: u32 = 0;

/// The identity of a peer as the kernel reports it at the moment of connecting. A client can't forge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The user id of the peer.
    pub uid: u32,
    /// The effective group id. [`resolve_access`](crate::resolve_access) finds the user's other groups.
    pub gid: u32,
    /// The process id, for the log. The process may be gone and its id reused.
    pub pid: Option<i32>,
}

/// The PIN setting of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinState {
    /// A PIN is set and required.
    Set,
    /// No PIN is required.
    NotSet,
}

/// The permissions of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPermissions {
    /// The role without a PIN.
    pub role: ClientRole,
    /// The role after the PIN was given.
    pub role_with_pin: ClientRole,
    /// The profile whose time the peer uses. A peer with a profile can't choose another.
    pub profile: Option<ProfileId>,
}

/// A mechanism that decides what a peer may do. [`AccessRules`] follows the policy; another mechanism can replace it.
pub trait PeerAuthorizer: Send + Sync {
    /// Returns the permissions of a peer; `None` means that the peer may not even connect.
    fn authorize(&self, peer: &PeerCredentials, pin: PinState) -> Option<PeerPermissions>;
}

/// The access rules of the policy, with numeric ids. [`resolve_access`](crate::resolve_access) creates them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// The daemon's own user, who is an administrator like root.
    pub owner_uid: u32,
    /// The roles of single users.
    pub users: BTreeMap<u32, ClientRole>,
    /// The roles of groups.
    pub groups: BTreeMap<u32, ClientRole>,
    /// The role of everybody else.
    pub others: Option<ClientRole>,
    /// The profiles of single users.
    pub profiles: BTreeMap<u32, ProfileId>,
    /// The profiles of users who are members of a group and have no profile of their own.
    pub group_profiles: BTreeMap<u32, ProfileId>,
}

impl AccessRules {
    /// Combines all matching rules and returns the highest role.
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
        // Root can read and replace the hash, so asking root for a PIN protects nothing and could lock the machine.
        let role = match pin {
            PinState::Set if peer.uid != ROOT => role_with_pin.min(ClientRole::Shell),
            PinState::Set | PinState::NotSet => role_with_pin,
        };
        Some(PeerPermissions { role, role_with_pin, profile: self.profile(peer) })
    }
}
