//! `service`: runs the gateway under the user's own service manager.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use clap::{Subcommand, ValueEnum};
use collieclaw::service::{GatewayService, SERVICE_NAME, ServiceManager};
use serde_json::json;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install and enable the service for this user. It starts at the next login, or with `service start`.
    #[command(
        after_help = "Examples:\n  collieclaw service install\n  collieclaw service install --print\n  collieclaw service install --print --manager launchd"
    )]
    Install {
        /// Print the unit, and change nothing
        #[arg(long)]
        print: bool,
        /// Service manager to write for (default: the one of this system)
        #[arg(long, requires = "print")]
        manager: Option<ServiceManagerName>,
    },
    /// Start the service, and wait until it listens.
    #[command(after_help = "Example:\n  collieclaw service start")]
    Start,
    /// Stop the service. Running turns are cancelled and recorded as cancelled.
    #[command(after_help = "Example:\n  collieclaw service stop")]
    Stop,
    /// Show whether the service is installed, enabled and running.
    #[command(
        after_help = "Examples:\n  collieclaw service status\n  collieclaw service status --output json"
    )]
    Status,
    /// Stop the service and remove its unit.
    #[command(after_help = "Example:\n  collieclaw service uninstall")]
    Uninstall,
}

/// A service manager that can be named on the command line.
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
                "The service is running. Run `collieclaw gateway --link` to open the page.".to_owned()
            });
            Ok(())
        }
        ServiceCommand::Stop => {
            require_manager()?;
            require_installed(environment)?;
            systemctl(&["stop", SERVICE_NAME])?;
            screen.print_answer(&json!({ "running": false }), || "The service has stopped.".to_owned());
            Ok(())
        }
        ServiceCommand::Status => status(environment, screen),
        ServiceCommand::Uninstall => uninstall(environment, screen),
    }
}

fn install(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    // Errors are reported before anything is written.
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
            "The service starts when you log in; `collieclaw service start` starts it now. `loginctl enable-linger`\n\
             keeps it running while you are logged out."
        }
        ServiceManager::Launchd => {
            "This file is untested. Start it with `launchctl bootstrap gui/$(id -u) FILE`."
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
        (false, _) => "not installed; run `collieclaw service install`".to_owned(),
        (true, true) => format!("running as process {process}, {enabled}"),
        (true, false) => format!("{active}, {enabled}; run `collieclaw service start`"),
    });
    if running { Ok(()) } else { Err(CommandFailure::ServiceNotRunning) }
}

fn uninstall(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    require_manager()?;
    let file = service_file(ServiceManager::for_this_system(), environment);
    if !file.exists() {
        screen.print_answer(&json!({ "removed": false }), || "The service was not installed.".to_owned());
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

fn describe_service(environment: &CliEnvironment) -> Result<GatewayService, CommandFailure> {
    let program = std::env::current_exe().map_err(CommandFailure::io("find this program"))?;
    let config = wiring::load_config(environment)?;
    if !config.channels.gateway.enabled {
        return Err(CommandFailure::GatewayDisabled);
    }
    Ok(GatewayService { program, home: environment.home.folder().to_owned() })
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

/// Returns whether this user has a service manager that answers.
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
