//! The service files that run the gateway under the user's service manager (C13). Nothing is started here.

mod launchd;
mod systemd;

use std::path::{Path, PathBuf};

pub const SERVICE_NAME: &str = "collieclaw-gateway";

/// The service manager of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceManager {
    /// Used on Linux.
    Systemd,
    /// Used on macOS. The generated file is untested.
    Launchd,
}

/// The settings of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayService {
    /// The path of the `collieclaw` program.
    pub program: PathBuf,
    /// The home of CollieClaw.
    pub home: PathBuf,
}

impl ServiceManager {
    /// Returns the service manager of the system that this program was built for.
    #[must_use]
    pub fn for_this_system() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Returns the path of the service file in the user's home; `config` is the user's configuration folder.
    #[must_use]
    pub fn file_path(self, user_home: &Path, config: &Path) -> PathBuf {
        match self {
            Self::Systemd => config.join("systemd/user").join(format!("{SERVICE_NAME}.service")),
            Self::Launchd => user_home.join("Library/LaunchAgents").join(format!("{}.plist", launchd::LABEL)),
        }
    }

    /// Returns the content of the service file.
    #[must_use]
    pub fn render(self, service: &GatewayService) -> String {
        match self {
            Self::Systemd => systemd::unit_file(service),
            Self::Launchd => launchd::property_list(service),
        }
    }
}

impl GatewayService {
    /// Returns the path of the optional environment file, such as for provider keys, with one `NAME=value` per line.
    #[must_use]
    pub fn environment_file(&self) -> PathBuf {
        self.home.join("service.env")
    }
}
