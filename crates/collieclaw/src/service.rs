//! The gateway as a service of its user (C13): the files that a service manager reads. Nothing is started here.

mod launchd;
mod systemd;

use std::path::{Path, PathBuf};

/// The name of the service.
pub const SERVICE_NAME: &str = "collieclaw-gateway";

/// Who starts services on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceManager {
    /// Linux.
    Systemd,
    /// macOS. What is written for it is not tested.
    Launchd,
}

/// What the service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayService {
    /// The program, wherever it is installed.
    pub program: PathBuf,
    /// CollieClaw's own folder.
    pub home: PathBuf,
}

impl ServiceManager {
    /// The one of the system that this program was built for.
    #[must_use]
    pub fn for_this_system() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Where its file belongs, in the home of a person; `config` is their folder for configuration.
    #[must_use]
    pub fn file_path(self, user_home: &Path, config: &Path) -> PathBuf {
        match self {
            Self::Systemd => config.join("systemd/user").join(format!("{SERVICE_NAME}.service")),
            Self::Launchd => user_home.join("Library/LaunchAgents").join(format!("{}.plist", launchd::LABEL)),
        }
    }

    /// What stands in it.
    #[must_use]
    pub fn render(self, service: &GatewayService) -> String {
        match self {
            Self::Systemd => systemd::unit_file(service),
            Self::Launchd => launchd::property_list(service),
        }
    }
}

impl GatewayService {
    /// Variables for the service, such as keys of providers, one `NAME=value` a line. It need not be there.
    #[must_use]
    pub fn environment_file(&self) -> PathBuf {
        self.home.join("service.env")
    }
}
