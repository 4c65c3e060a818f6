//! `cargo xtask vm`: installs the packages on a real Debian in a virtual machine, by the words of the guide, and plays
//! a family's day on it.
//!
//! A container shares the kernel and the cgroups of the machine that runs the tests. A guest has its own: all
//! controllers, its own service manager as the first process, its own clock, and it can be rebooted.

mod family_day;
mod guest;
mod guide;
mod image;
mod lifecycle;
mod limits_check;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::package::{self, BuiltPackages, PackageOptions};
use crate::workspace::CargoWorkspace;
use crate::{setup, terminal};

use guest::RunningGuest;
use image::GuestImage;

/// The choice of guests.
#[derive(Args)]
pub(crate) struct VmOptions {
    /// Release to install on; both if none is named.
    #[arg(value_enum)]
    release: Option<DebianRelease>,
    #[command(flatten)]
    package: PackageOptions,
}

/// A release of Debian that Shepherd supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DebianRelease {
    /// Debian 12, with systemd 252.
    Debian12,
    /// Debian 13, with systemd 257.
    Debian13,
}

impl DebianRelease {
    fn name(self) -> &'static str {
        match self {
            Self::Debian12 => "debian12",
            Self::Debian13 => "debian13",
        }
    }

    fn suite(self) -> &'static str {
        match self {
            Self::Debian12 => "bookworm",
            Self::Debian13 => "trixie",
        }
    }
}

/// Runs the checks in each chosen guest.
pub(crate) fn run(workspace: &CargoWorkspace, options: &VmOptions) -> Result<()> {
    if !setup::is_root() {
        bail!("only root can build the file system of a guest\nhelp: run it as root, or in a container");
    }
    setup::install_tools()?;
    let releases = options.release.map_or(DebianRelease::value_variants().to_vec(), |one| vec![one]);
    let packages = package::build(workspace, &options.package)?;
    for release in releases {
        check_release(workspace, release, &packages)?;
    }
    println!("\n{}", terminal::success("every guest passed"));
    Ok(())
}

/// A part of the day, and what it shows.
struct GuestCheck {
    name: &'static str,
    run: fn(&RunningGuest, &BuiltPackages) -> Result<()>,
}

/// In order: each check finds the machine as the one before left it.
const CHECKS: &[GuestCheck] = &[
    GuestCheck { name: "the guide installs Shepherd, and it is ready", run: guide::install },
    GuestCheck { name: "the daemon is small", run: family_day::daemon_is_small },
    GuestCheck { name: "children see and launch their own entries only", run: family_day::children_launch },
    GuestCheck {
        name: "a program gets the display of the child who launches it",
        run: family_day::desktop_display,
    },
    GuestCheck {
        name: "a session is warned and ended with all its processes",
        run: family_day::session_ends,
    },
    GuestCheck { name: "memory, processes and processor time are limited", run: limits_check::run },
    GuestCheck {
        name: "a killed daemon takes its session and its limits back",
        run: lifecycle::killed_daemon,
    },
    GuestCheck {
        name: "a session with 2,000 threads doesn't keep a killed daemon away",
        run: lifecycle::many_threads,
    },
    GuestCheck { name: "an upgrade leaves the session alone", run: lifecycle::upgrade },
    GuestCheck { name: "a program started by the user's manager ends too", run: family_day::user_manager },
    GuestCheck { name: "a clock set a day on and back wins nothing", run: family_day::clock_a_day_on },
    GuestCheck { name: "a reboot ends and charges the session", run: lifecycle::reboot },
    GuestCheck {
        name: "CollieClaw installs, works in its sandbox and leaves",
        run: lifecycle::agent_package,
    },
    GuestCheck {
        name: "remove keeps the family's files, purge asks and leaves nothing",
        run: lifecycle::removal,
    },
];

fn check_release(workspace: &CargoWorkspace, release: DebianRelease, packages: &BuiltPackages) -> Result<()> {
    println!("\n{}", terminal::heading(release.name()));
    let image = GuestImage::prepare(workspace, release)?;
    let begin = Instant::now();
    let guest = RunningGuest::boot(&image)?;
    println!("  booted in {}", terminal::seconds(begin.elapsed()).trim_start());
    for check in CHECKS {
        let start = Instant::now();
        let result = (check.run)(&guest, packages);
        let took = terminal::seconds(start.elapsed());
        match result {
            Ok(()) => println!("  {} {took}  {}", terminal::success("passed"), check.name),
            Err(error) => {
                println!("  {} {took}  {}", terminal::failure("FAILED"), check.name);
                println!("{}", guest.journal());
                return Err(error.context(format!("{}: {}", release.name(), check.name)));
            }
        }
    }
    println!("  {} {}", release.name(), terminal::seconds(begin.elapsed()).trim_start());
    Ok(())
}
