//! `service`: the gateway, started by the user's own service manager.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use clap::{Subcommand, ValueEnum};
use collieclaw::service::{Manager, NAME, Service as Described};
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::Screen;

#[derive(Subcommand)]
pub(crate) enum Service {
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
        manager: Option<Named>,
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
pub(crate) enum Named {
    Systemd,
    Launchd,
}

pub(crate) fn run(service: &Service, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    match service {
        Service::Install { print: true, manager } => {
            let manager = match manager {
                Some(Named::Systemd) => Manager::Systemd,
                Some(Named::Launchd) => Manager::Launchd,
                None => Manager::of_this_system(),
            };
            let text = manager.text(&described(environment)?);
            screen.answer(&json!({ "file": file(manager, environment), "text": text }), || text.clone());
            Ok(())
        }
        Service::Install { .. } => install(environment, screen),
        Service::Start => {
            reach()?;
            installed(environment)?;
            systemctl(&["start", NAME])?;
            screen.answer(&json!({ "running": true }), || {
                "It listens. `collieclaw gateway --link` opens it.".to_owned()
            });
            Ok(())
        }
        Service::Stop => {
            reach()?;
            installed(environment)?;
            systemctl(&["stop", NAME])?;
            screen.answer(&json!({ "running": false }), || "It has ended.".to_owned());
            Ok(())
        }
        Service::Status => status(environment, screen),
        Service::Uninstall => uninstall(environment, screen),
    }
}

fn install(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    // Told before anything is written.
    reach()?;
    let manager = Manager::of_this_system();
    let (file, text) = (file(manager, environment), manager.text(&described(environment)?));
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(&file, text)).map_err(Failure::io(format!("write {}", file.display())))?;
    if manager == Manager::Systemd {
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", NAME])?;
    }
    let next = match manager {
        Manager::Systemd => {
            "It starts when you log in; `collieclaw service start` starts it now. `loginctl enable-linger` keeps it\n\
             running while you are not logged in."
        }
        Manager::Launchd => "It is not tested here. `launchctl bootstrap gui/$(id -u) FILE` starts it.",
    };
    screen.answer(&json!({ "file": file }), || format!("wrote {}\n{next}", file.display()));
    Ok(())
}

fn status(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    reach()?;
    let is_installed = file(Manager::Systemd, environment).exists();
    let property = |name: &str| {
        let shown = systemctl(&["show", "--value", "--property", name, NAME])?;
        Ok::<_, Failure>(String::from_utf8_lossy(&shown.stdout).trim().to_owned())
    };
    let (active, enabled, process) =
        (property("ActiveState")?, property("UnitFileState")?, property("MainPID")?);
    let running = active == "active";
    let value = json!({ "installed": is_installed, "enabled": enabled == "enabled", "state": active, "running": running });
    screen.answer(&value, || match (is_installed, running) {
        (false, _) => "not installed; `collieclaw service install` does it".to_owned(),
        (true, true) => format!("running as process {process}, {enabled}"),
        (true, false) => format!("{active}, {enabled}; `collieclaw service start` starts it"),
    });
    if running { Ok(()) } else { Err(Failure::NotRunning) }
}

fn uninstall(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    reach()?;
    let file = file(Manager::of_this_system(), environment);
    if !file.exists() {
        screen.answer(&json!({ "removed": false }), || "It was not installed.".to_owned());
        return Ok(());
    }
    if Manager::of_this_system() == Manager::Systemd {
        systemctl(&["disable", "--now", NAME])?;
    }
    fs::remove_file(&file).map_err(Failure::io(format!("remove {}", file.display())))?;
    if Manager::of_this_system() == Manager::Systemd {
        systemctl(&["daemon-reload"])?;
    }
    screen.answer(&json!({ "removed": true }), || format!("removed {}", file.display()));
    Ok(())
}

fn described(environment: &Environment) -> Result<Described, Failure> {
    let program = std::env::current_exe().map_err(Failure::io("find this program"))?;
    let config = open::config(environment)?;
    if !config.channels.gateway.enabled {
        return Err(Failure::GatewayOff);
    }
    Ok(Described { program, home: environment.home.folder().to_owned() })
}

fn file(manager: Manager, environment: &Environment) -> PathBuf {
    let user_home = &environment.surroundings.user_home;
    let config =
        environment.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    manager.file(user_home, &config.unwrap_or_else(|| user_home.join(".config")))
}

fn installed(environment: &Environment) -> Result<(), Failure> {
    if file(Manager::of_this_system(), environment).exists() { Ok(()) } else { Err(Failure::NotInstalled) }
}

/// Whether the user has a service manager at all.
fn reach() -> Result<(), Failure> {
    match Manager::of_this_system() {
        Manager::Systemd => systemctl(&["show-environment"]).map(drop),
        Manager::Launchd => Ok(()),
    }
}

fn systemctl(arguments: &[&str]) -> Result<Output, Failure> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(arguments).stdin(Stdio::null());
    let done = command.output().map_err(|source| Failure::NoManager { said: source.to_string() })?;
    if done.status.success() {
        return Ok(done);
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let unreached = ["Failed to connect", "not been booted", "No medium found", "DBUS_SESSION_BUS_ADDRESS"];
    if unreached.iter().any(|words| said.contains(words)) {
        return Err(Failure::NoManager { said });
    }
    Err(Failure::Manager { what: format!("systemctl --user {}", arguments.join(" ")), said })
}
