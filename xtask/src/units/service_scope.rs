//! The two ways to install the daemon: for the machine, and for one of its users.

/// The service manager that starts the unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceScope {
    System,
    /// The manager of the ordinary user `kid`.
    User,
}

impl ServiceScope {
    /// Returns the prefix that runs a command as the owner of the daemon.
    pub(super) fn prefix(self) -> &'static [&'static str] {
        match self {
            Self::System => &[],
            Self::User => &[
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
            Self::System => &["systemctl"],
            Self::User => &["systemctl", "--user"],
        }
    }

    pub(super) fn policy_path(self) -> &'static str {
        match self {
            Self::System => "/etc/shepherd/policy.toml",
            Self::User => "/home/kid/.config/shepherd/policy.toml",
        }
    }

    pub(super) fn socket_path(self) -> &'static str {
        match self {
            Self::System => "/run/shepherd/shepherd.sock",
            Self::User => "/run/user/1000/shepherd.sock",
        }
    }

    /// Returns the path of a file with additional settings of the unit, which lasts until the next boot.
    pub(super) fn drop_in_path(self) -> &'static str {
        match self {
            Self::System => "/run/systemd/system/shepherdd.service.d/check.conf",
            Self::User => "/run/systemd/user/shepherdd.service.d/check.conf",
        }
    }
}
