//! `shepherd doctor`: shows what this machine can enforce, what it can't, and what would help.

use std::path::PathBuf;

use rustix::process::geteuid;
use serde::Serialize;
use shepherd_api::{ClientRole, Command, CommandReply, HealthView};
use shepherd_ipc::{BlockingClient, ClientOptions};
use ward_process::sandbox::{self, SandboxPartStatus, SandboxReport};
use ward_process::{Containment, ContainmentReport};
use ward_terminal::{TextTone, escape_label};

use crate::context::{CommandContext, DisplaySettings};
use crate::error::{NO_DAEMON_HELP, ShepherdCliError};
use crate::humanize;
use crate::output::ConsoleOutput;

#[derive(Serialize)]
struct DoctorReport {
    /// The containment that a daemon of this user would use. `daemon.health` has that of the running daemon.
    containment: Containment,
    containments: ContainmentReport,
    sandbox: SandboxReport,
    daemon: DaemonFindings,
}

/// Facts about the daemon, as seen by this user.
#[derive(Serialize)]
struct DaemonFindings {
    socket: PathBuf,
    /// The error, if the daemon can't be reached.
    unreachable: Option<String>,
    /// The role of this user at the daemon.
    role: Option<ClientRole>,
    health: Option<HealthView>,
    /// True if the daemon runs as this user, who could then stop it or change its files.
    same_user: Option<bool>,
}

pub(crate) fn run(context: &CommandContext, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let containments = ward_process::probe();
    let findings = DoctorReport {
        containment: containments.strongest(),
        containments,
        sandbox: sandbox::probe(),
        daemon: inspect_daemon(context.socket()?),
    };
    output.print_result(&findings, |output| {
        show_daemon(output, &findings.daemon, &context.display);
        // The daemon of another user reports its containment itself.
        if findings.daemon.unreachable.is_some() || findings.daemon.same_user == Some(true) {
            show_containments(output, &findings.containments, ContainmentScope::NewDaemon);
        }
        show_sandbox(output, &findings.sandbox);
    });
    Ok(())
}

fn inspect_daemon(socket: PathBuf) -> DaemonFindings {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(&socket).ok().map(|socket| socket.uid());
    let same_user = owner.map(|owner| owner == geteuid().as_raw());
    let mut findings =
        DaemonFindings { socket: socket.clone(), unreachable: None, role: None, health: None, same_user };
    match BlockingClient::connect(&ClientOptions::new(socket, "shepherd doctor")) {
        Err(error) => findings.unreachable = Some(error.to_string()),
        Ok(mut client) => {
            findings.role = Some(client.welcome().role);
            if let Ok(CommandReply::Health { health }) = client.call(Command::Health {}) {
                findings.health = Some(health);
            }
        }
    }
    findings
}

fn show_daemon(output: &mut ConsoleOutput, daemon: &DaemonFindings, display: &DisplaySettings) {
    output.print_heading("The daemon");
    let socket = daemon.socket.display();
    if let Some(why) = &daemon.unreachable {
        output.print_marked(TextTone::Bad, "✗", &escape_label(why));
        output.print_marked(TextTone::Faint, "→", NO_DAEMON_HELP);
        return;
    }
    if let Some(role) = daemon.role {
        let (tone, may) = match role {
            ClientRole::Admin => (TextTone::Good, "are an administrator"),
            ClientRole::Shell => (TextTone::Good, "may launch entries, and stop what you launched"),
            ClientRole::Observer => (TextTone::Warn, "may only watch"),
        };
        output.print_marked(tone, "●", &format!("{socket}: you {may}"));
    }
    if daemon.same_user == Some(true) && !geteuid().is_root() {
        output.print_marked(
            TextTone::Warn,
            "!",
            "it runs as you, so anybody who uses this login can stop it or change its files. On a child's computer, run it \
             as a service; if parent and child share a login, also set a PIN with `shepherd pin set`",
        );
    }
    let Some(health) = &daemon.health else { return };
    for check in &health.checks {
        let (tone, mark) = if check.passed { (TextTone::Good, "●") } else { (TextTone::Bad, "✗") };
        output.print_marked(
            tone,
            mark,
            &format!("{}: {}", escape_label(&check.name), escape_label(&check.detail)),
        );
    }
    if let Some(advice) = humanize::rejected_policy(health, display) {
        output.print_marked(TextTone::Warn, "!", &advice);
    }
    if let Some(containment) = humanize::containment(health) {
        output.print_marked(TextTone::Good, "●", &containment);
    }
    for limitation in &health.limitations {
        output.print_marked(TextTone::Warn, "–", &escape_label(limitation));
    }
}

/// The programs that a containment report is about.
#[derive(Clone, Copy)]
pub(crate) enum ContainmentScope {
    /// Programs that this process starts.
    ThisProcess,
    /// Programs of a daemon that this user would start. A daemon of another user may use another containment.
    NewDaemon,
}

pub(crate) fn show_containments(
    output: &mut ConsoleOutput,
    probe: &ContainmentReport,
    scope: ContainmentScope,
) {
    let (heading, best) = match scope {
        ContainmentScope::ThisProcess => ("How a program and all its children are contained", "in use"),
        ContainmentScope::NewDaemon => {
            ("How a daemon that you start would contain a program and all its children", "would be used")
        }
    };
    output.print_heading(heading);
    for offer in &probe.offers {
        let name = offer.containment;
        match &offer.missing {
            None if name == probe.strongest() => {
                output.print_marked(TextTone::Good, "●", &format!("{name}: {best}"));
            }
            None => output.print_marked(TextTone::Faint, "○", &format!("{name}: available")),
            Some(reason) => output.print_marked(TextTone::Bad, "✗", &format!("{name}: {reason}")),
        }
    }
}

fn show_sandbox(output: &mut ConsoleOutput, report: &SandboxReport) {
    output.print_heading("What a sandbox can restrict");
    for (name, part) in report.parts() {
        let (tone, mark) = match part {
            SandboxPartStatus::InForce { .. } => (TextTone::Good, "●"),
            SandboxPartStatus::NotAsked => (TextTone::Faint, "○"),
            SandboxPartStatus::Partial { .. } | SandboxPartStatus::Missing { .. } => (TextTone::Bad, "✗"),
        };
        output.print_marked(tone, mark, &format!("{name}: {part}"));
    }
}
