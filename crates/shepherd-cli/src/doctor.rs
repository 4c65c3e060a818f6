//! What this machine can enforce, what it can't, and what would help.

use std::path::PathBuf;

use rustix::process::geteuid;
use serde::Serialize;
use shepherd_api::{ClientRole, Command, CommandReply, HealthView};
use shepherd_ipc::{BlockingClient, ClientOptions};
use ward_process::sandbox::{self, SandboxPartStatus, SandboxReport};
use ward_process::{Containment, ContainmentReport};

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::output::{ConsoleOutput, TextTone};
use crate::text::escape_unsafe;

#[derive(Serialize)]
struct DoctorReport {
    /// What a daemon of the user who asks would use. `daemon.health` says what the one that runs does.
    containment: Containment,
    containments: ContainmentReport,
    sandbox: SandboxReport,
    daemon: DaemonFindings,
}

/// What can be told of the daemon from here.
#[derive(Serialize)]
struct DaemonFindings {
    socket: PathBuf,
    /// Why it can't be reached, if so.
    unreachable: Option<String>,
    /// What this user may do.
    role: Option<ClientRole>,
    health: Option<HealthView>,
    /// Whether it runs as the user who asks: then that user could end it, or change what it keeps.
    same_user: Option<bool>,
}

pub(crate) fn run(context: &CommandContext, screen: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let containments = ward_process::probe();
    let findings = DoctorReport {
        containment: containments.strongest(),
        containments,
        sandbox: sandbox::probe(),
        daemon: inspect_daemon(context.socket()?),
    };
    screen.print_result(&findings, |screen| {
        show_daemon(screen, &findings.daemon);
        show_containments(screen, &findings.containments, ContainmentScope::NewDaemon);
        show_sandbox(screen, &findings.sandbox);
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

fn show_daemon(screen: &mut ConsoleOutput, daemon: &DaemonFindings) {
    screen.print_heading("The daemon");
    let socket = daemon.socket.display();
    if let Some(why) = &daemon.unreachable {
        screen.print_marked(TextTone::Bad, "✗", &escape_unsafe(why));
        screen.print_marked(
            TextTone::Faint,
            "→",
            "start it with `shepherd up`, or as a service with `systemctl start shepherdd`",
        );
        return;
    }
    if let Some(role) = daemon.role {
        let (tone, may) = match role {
            ClientRole::Admin => (TextTone::Good, "are an administrator"),
            ClientRole::Shell => (TextTone::Good, "may launch, and stop what you launched"),
            ClientRole::Observer => (TextTone::Warn, "may look"),
        };
        screen.print_marked(tone, "●", &format!("{socket}: you {may}"));
    }
    if daemon.same_user == Some(true) && !geteuid().is_root() {
        screen.print_marked(
            TextTone::Warn,
            "!",
            "it runs as you: whoever has this login can end it or change its files. Run it as a service of its own \
             for a child's machine; where parent and child share a login, set a PIN with `shepherd pin set`",
        );
    }
    let Some(health) = &daemon.health else { return };
    for check in &health.checks {
        let (tone, mark) = if check.passed { (TextTone::Good, "●") } else { (TextTone::Bad, "✗") };
        screen.print_marked(
            tone,
            mark,
            &format!("{}: {}", escape_unsafe(&check.name), escape_unsafe(&check.detail)),
        );
    }
    if let Some(held) = humanize::containment(health) {
        screen.print_marked(TextTone::Good, "●", &held);
    }
    for limitation in &health.limitations {
        screen.print_marked(TextTone::Warn, "–", &escape_unsafe(limitation));
    }
}

/// Whose programs it is about.
#[derive(Clone, Copy)]
pub(crate) enum ContainmentScope {
    /// Those that this process starts.
    ThisProcess,
    /// Those of a daemon that the user who asks would start. One that another user started may hold its own otherwise.
    NewDaemon,
}

pub(crate) fn show_containments(
    screen: &mut ConsoleOutput,
    probe: &ContainmentReport,
    held: ContainmentScope,
) {
    let (heading, best) = match held {
        ContainmentScope::ThisProcess => ("What holds a program and all its children together", "in use"),
        ContainmentScope::NewDaemon => (
            "What would hold a program and all its children together under a daemon that you start",
            "would be used",
        ),
    };
    screen.print_heading(heading);
    for offer in &probe.offers {
        let name = offer.containment;
        match &offer.missing {
            None if name == probe.strongest() => {
                screen.print_marked(TextTone::Good, "●", &format!("{name}: {best}"));
            }
            None => screen.print_marked(TextTone::Faint, "○", &format!("{name}: could be used")),
            Some(reason) => screen.print_marked(TextTone::Bad, "✗", &format!("{name}: {reason}")),
        }
    }
}

fn show_sandbox(screen: &mut ConsoleOutput, report: &SandboxReport) {
    screen.print_heading("What a sandboxed command can be kept from");
    for (name, part) in report.parts() {
        let (tone, mark) = match part {
            SandboxPartStatus::InForce { .. } => (TextTone::Good, "●"),
            SandboxPartStatus::NotAsked => (TextTone::Faint, "○"),
            SandboxPartStatus::Partial { .. } | SandboxPartStatus::Missing { .. } => (TextTone::Bad, "✗"),
        };
        screen.print_marked(tone, mark, &format!("{name}: {part}"));
    }
}
