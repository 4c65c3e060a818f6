//! Who may do what at the daemon's socket (S11.3), and whose time it is.

use shepherd_api::ClientRole;

/// Somebody that the operating system knows. Names are looked up by whoever can ask it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemAccount {
    /// A user, by name.
    User(String),
    /// A user, by number.
    Uid(u32),
    /// Everyone in a group, by name.
    Group(String),
    /// Everyone in a group, by number.
    Gid(u32),
}

/// What accounts may do. Of several rules that match, the one with the higher role counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// Who may do what. Root and the daemon's own user are administrators without being named.
    pub rules: Vec<(SystemAccount, ClientRole)>,
    /// What everybody else may do; `NotRequested` is nothing at all.
    pub others: Option<ClientRole>,
}
