//! Who may do what at the daemon's socket (S11.3), and whose time it is.

use shepherd_api::Role;

/// Somebody that the operating system knows. Names are looked up by whoever can ask it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
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
pub struct Access {
    /// Who may do what. Root and the daemon's own user are administrators without being named.
    pub rules: Vec<(Account, Role)>,
    /// What everybody else may do; `None` is nothing at all.
    pub others: Option<Role>,
}
