//! The two ways to install the daemon: for the machine, and for one of its users.

/// Whose service manager starts it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    OfTheSystem,
    /// Of `kid`, who is an ordinary user.
    OfAUser,
}

impl Service {
    /// What comes before a command to be run as whoever the daemon belongs to.
    pub(super) fn prefix(self) -> &'static [&'static str] {
        match self {
            Self::OfTheSystem => &[],
            Self::OfAUser => &[
                "setpriv",
                "--reuid=kid",
                "--regid=kid",
                "--init-groups",
                "env",
                "HOME=/home/kid",
                "XDG_RUNTIME_DIR=/run/user/1000",
            ],
        }
    }

    pub(super) fn systemctl(self) -> &'static [&'static str] {
        match self {
            Self::OfTheSystem => &["systemctl"],
            Self::OfAUser => &["systemctl", "--user"],
        }
    }

    pub(super) fn policy(self) -> &'static str {
        match self {
            Self::OfTheSystem => "/etc/shepherd/policy.toml",
            Self::OfAUser => "/home/kid/.config/shepherd/policy.toml",
        }
    }

    pub(super) fn socket(self) -> &'static str {
        match self {
            Self::OfTheSystem => "/run/shepherd/shepherd.sock",
            Self::OfAUser => "/run/user/1000/shepherd.sock",
        }
    }

    /// A file of settings that are added to the unit until the next boot.
    pub(super) fn drop_in(self) -> &'static str {
        match self {
            Self::OfTheSystem => "/run/systemd/system/shepherdd.service.d/check.conf",
            Self::OfAUser => "/run/systemd/user/shepherdd.service.d/check.conf",
        }
    }
}
