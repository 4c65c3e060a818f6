//! `service`: the gateway, started by the user's own service manager.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use clap::{Subcommand, ValueEnum};
use collieclaw::service::{GatewayService as Described, SERVICE_NAME, ServiceManager};
use serde_json::json;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ServiceCommand {
    /// Writes the unit for this user and enables it. It starts with the next login, or with `service start`.
    #[command(
        after_help = "Examples:\n  collieclaw service install\n  collieclaw service install --print\n  collieclaw service install --print --manager launchd"
    )]
    Install {
        /// Prints what would be written, and changes nothing.
        #[arg(long)]
        print: bool,
        /// For this service manager; the one of this system, if left out.
        #[arg(long, requires = "print")]
        manager: Option<ServiceManagerName>,
    },
    /// Starts it, and returns when it listens.
    #[command(after_help = "Example:\n  collieclaw service start")]
    Start,
    /// Stops it. Turns that go on are cancelled, and kept as such.
    #[command(after_help = "Example:\n  collieclaw service stop")]
    Stop,
    /// Whether it is installed, enabled and running.
    #[command(
        after_help = "Examples:\n  collieclaw service status\n  collieclaw service status --output json"
    )]
    Status,
    /// Stops it and removes its unit.
    #[command(after_help = "Example:\n  collieclaw service uninstall")]
    Uninstall,
}

/// A service manager by its name.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ServiceManagerName {
    Systemd,
    Launchd,
}

pub(crate) fn run(
    service: &ServiceCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    match service {
        ServiceCommand::Install { print: true, manager } => {
            let manager = match manager {
                Some(ServiceManagerName::Systemd) => ServiceManager::Systemd,
                Some(ServiceManagerName::Launchd) => ServiceManager::Launchd,
                None => ServiceManager::for_this_system(),
            };
            let text = manager.render(&describe_service(environment)?);
            screen.print_answer(&json!({ "file": service_file(manager, environment), "text": text }), || {
                text.clone()
            });
            Ok(())
        }
        ServiceCommand::Install { .. } => install(environment, screen),
        ServiceCommand::Start => {
            require_manager()?;
            require_installed(environment)?;
            systemctl(&["start", SERVICE_NAME])?;
            screen.print_answer(&json!({ "running": true }), || {
                "It listens. `collieclaw gateway --link` opens it.".to_owned()
            });
            Ok(())
        }
        ServiceCommand::Stop => {
            require_manager()?;
            require_installed(environment)?;
            systemctl(&["stop", SERVICE_NAME])?;
            screen.print_answer(&json!({ "running": false }), || "It has ended.".to_owned());
            Ok(())
        }
        ServiceCommand::Status => status(environment, screen),
        ServiceCommand::Uninstall => uninstall(environment, screen),
    }
}

fn install(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    // Told before anything is written.
    require_manager()?;
    let manager = ServiceManager::for_this_system();
    let (file, text) = (service_file(manager, environment), manager.render(&describe_service(environment)?));
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| fs::write(&file, text))
        .map_err(CommandFailure::io(format!("write {}", file.display())))?;
    if manager == ServiceManager::Systemd {
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", SERVICE_NAME])?;
    }
    let next = match manager {
        ServiceManager::Systemd => {
            "It starts when you log in; `collieclaw service start` starts it now. `loginctl enable-linger` keeps it\n\
             running while you are not logged in."
        }
        ServiceManager::Launchd => {
            "It is not tested here. `launchctl bootstrap gui/$(id -u) FILE` starts it."
        }
    };
    screen.print_answer(&json!({ "file": file }), || format!("wrote {}\n{next}", file.display()));
    Ok(())
}

fn status(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    require_manager()?;
    let is_installed = service_file(ServiceManager::Systemd, environment).exists();
    let property = |name: &str| {
        let shown = systemctl(&["show", "--value", "--property", name, SERVICE_NAME])?;
        Ok::<_, CommandFailure>(String::from_utf8_lossy(&shown.stdout).trim().to_owned())
    };
    let (active, enabled, process) =
        (property("ActiveState")?, property("UnitFileState")?, property("MainPID")?);
    let running = active == "active";
    let value = json!({ "installed": is_installed, "enabled": enabled == "enabled", "state": active, "running": running });
    screen.print_answer(&value, || match (is_installed, running) {
        (false, _) => "not installed; `collieclaw service install` does it".to_owned(),
        (true, true) => format!("running as process {process}, {enabled}"),
        (true, false) => format!("{active}, {enabled}; `collieclaw service start` starts it"),
    });
    if running { Ok(()) } else { Err(CommandFailure::ServiceNotRunning) }
}

fn uninstall(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    require_manager()?;
    let file = service_file(ServiceManager::for_this_system(), environment);
    if !file.exists() {
        screen.print_answer(&json!({ "removed": false }), || "It was not installed.".to_owned());
        return Ok(());
    }
    if ServiceManager::for_this_system() == ServiceManager::Systemd {
        systemctl(&["disable", "--now", SERVICE_NAME])?;
    }
    fs::remove_file(&file).map_err(CommandFailure::io(format!("remove {}", file.display())))?;
    if ServiceManager::for_this_system() == ServiceManager::Systemd {
        systemctl(&["daemon-reload"])?;
    }
    screen.print_answer(&json!({ "removed": true }), || format!("removed {}", file.display()));
    Ok(())
}

fn describe_service(environment: &CliEnvironment) -> Result<Described, CommandFailure> {
    let program = std::env::current_exe().map_err(CommandFailure::io("find this program"))?;
    let config = wiring::load_config(environment)?;
    if !config.channels.gateway.enabled {
        return Err(CommandFailure::GatewayDisabled);
    }
    Ok(Described { program, home: environment.home.folder().to_owned() })
}

fn service_file(manager: ServiceManager, environment: &CliEnvironment) -> PathBuf {
    let user_home = &environment.config_context.user_home;
    let config =
        environment.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    manager.file_path(user_home, &config.unwrap_or_else(|| user_home.join(".config")))
}

fn require_installed(environment: &CliEnvironment) -> Result<(), CommandFailure> {
    if service_file(ServiceManager::for_this_system(), environment).exists() {
        Ok(())
    } else {
        Err(CommandFailure::ServiceNotInstalled)
    }
}

/// Whether the user has a service manager at all.
fn require_manager() -> Result<(), CommandFailure> {
    match ServiceManager::for_this_system() {
        ServiceManager::Systemd => systemctl(&["show-environment"]).map(drop),
        ServiceManager::Launchd => Ok(()),
    }
}

fn systemctl(arguments: &[&str]) -> Result<Output, CommandFailure> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(arguments).stdin(Stdio::null());
    let done =
        command.output().map_err(|source| CommandFailure::NoServiceManager { said: source.to_string() })?;
    if done.status.success() {
        return Ok(done);
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let unreached = ["Failed to connect", "not been booted", "No medium found", "DBUS_SESSION_BUS_ADDRESS"];
    if unreached.iter().any(|words| said.contains(words)) {
        return Err(CommandFailure::NoServiceManager { said });
    }
    Err(CommandFailure::ServiceManagerFailed {
        what: format!("systemctl --user {}", arguments.join(" ")),
        said,
    })
}
