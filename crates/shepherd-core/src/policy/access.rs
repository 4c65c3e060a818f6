//! Roles at the daemon's socket (S11.3), and the profiles of accounts.

use shepherd_api::ClientRole;

/// An account of the operating system. The daemon resolves names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemAccount {
    User(String),
    Uid(u32),
    Group(String),
    Gid(u32),
}

/// The roles of accounts. Of several matching rules, the highest role counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// The roles by account. Root and the daemon's own user are always administrators.
    pub rules: Vec<(SystemAccount, ClientRole)>,
    /// The role of all other accounts; `None` is no access.
    pub others: Option<ClientRole>,
}
