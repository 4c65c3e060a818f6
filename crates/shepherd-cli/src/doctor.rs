//! What this machine can enforce, what it can't, and what would help.

use std::path::PathBuf;

use rustix::process::geteuid;
use serde::Serialize;
use shepherd_api::{Command, HealthView, Reply, Role};
use shepherd_ipc::{Client, ClientOptions};
use ward_process::sandbox::{self, Part, SandboxReport};
use ward_process::{Containment, Probe};

use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Screen, Tone};
use crate::text::clean;
use crate::words;

#[derive(Serialize)]
struct Findings {
    /// What a daemon of the user who asks would use. `daemon.health` says what the one that runs does.
    containment: Containment,
    containments: Probe,
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
    role: Option<Role>,
    health: Option<HealthView>,
    /// Whether it runs as the user who asks: then that user could end it, or change what it keeps.
    same_user: Option<bool>,
}

pub(crate) fn run(context: &Context, screen: &mut Screen) -> Result<(), Failure> {
    let containments = ward_process::probe();
    let findings = Findings {
        containment: containments.best(),
        containments,
        sandbox: sandbox::probe(),
        daemon: look_at_daemon(context.socket()?),
    };
    screen.answer(&findings, |screen| {
        show_daemon(screen, &findings.daemon);
        show_containments(screen, &findings.containments, Held::IfStartedByYou);
        show_sandbox(screen, &findings.sandbox);
    });
    Ok(())
}

fn look_at_daemon(socket: PathBuf) -> DaemonFindings {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(&socket).ok().map(|socket| socket.uid());
    let same_user = owner.map(|owner| owner == geteuid().as_raw());
    let mut findings =
        DaemonFindings { socket: socket.clone(), unreachable: None, role: None, health: None, same_user };
    match Client::connect(&ClientOptions::new(socket, "shepherd doctor")) {
        Err(error) => findings.unreachable = Some(error.to_string()),
        Ok(mut client) => {
            findings.role = Some(client.welcome().role);
            if let Ok(Reply::Health { health }) = client.call(Command::Health {}) {
                findings.health = Some(health);
            }
        }
    }
    findings
}

fn show_daemon(screen: &mut Screen, daemon: &DaemonFindings) {
    screen.heading("The daemon");
    let socket = daemon.socket.display();
    if let Some(why) = &daemon.unreachable {
        screen.toned(Tone::Bad, "✗", &clean(why));
        screen.toned(
            Tone::Faint,
            "→",
            "start it with `shepherd up`, or as a service with `systemctl start shepherdd`",
        );
        return;
    }
    if let Some(role) = daemon.role {
        let (tone, may) = match role {
            Role::Admin => (Tone::Good, "are an administrator"),
            Role::Shell => (Tone::Good, "may launch, and stop what you launched"),
            Role::Observer => (Tone::Warn, "may look"),
        };
        screen.toned(tone, "●", &format!("{socket}: you {may}"));
    }
    if daemon.same_user == Some(true) && !geteuid().is_root() {
        screen.toned(
            Tone::Warn,
            "!",
            "it runs as you: whoever has this login can end it or change its files. Run it as a service of its own \
             for a child's machine; where parent and child share a login, set a PIN with `shepherd pin set`",
        );
    }
    let Some(health) = &daemon.health else { return };
    for check in &health.checks {
        let (tone, mark) = if check.passed { (Tone::Good, "●") } else { (Tone::Bad, "✗") };
        screen.toned(tone, mark, &format!("{}: {}", clean(&check.name), clean(&check.detail)));
    }
    if let Some(held) = words::held(health) {
        screen.toned(Tone::Good, "●", &held);
    }
    for limitation in &health.limitations {
        screen.toned(Tone::Warn, "–", &clean(limitation));
    }
}

/// Whose programs it is about.
#[derive(Clone, Copy)]
pub(crate) enum Held {
    /// Those that this process starts.
    Here,
    /// Those of a daemon that the user who asks would start. One that another user started may hold its own otherwise.
    IfStartedByYou,
}

pub(crate) fn show_containments(screen: &mut Screen, probe: &Probe, held: Held) {
    let (heading, best) = match held {
        Held::Here => ("What holds a program and all its children together", "in use"),
        Held::IfStartedByYou => (
            "What would hold a program and all its children together under a daemon that you start",
            "would be used",
        ),
    };
    screen.heading(heading);
    for offer in &probe.offers {
        let name = offer.containment;
        match &offer.missing {
            None if name == probe.best() => screen.toned(Tone::Good, "●", &format!("{name}: {best}")),
            None => screen.toned(Tone::Faint, "○", &format!("{name}: could be used")),
            Some(reason) => screen.toned(Tone::Bad, "✗", &format!("{name}: {reason}")),
        }
    }
}

fn show_sandbox(screen: &mut Screen, report: &SandboxReport) {
    screen.heading("What a sandboxed command can be kept from");
    for (name, part) in report.parts() {
        let (tone, mark) = match part {
            Part::InForce { .. } => (Tone::Good, "●"),
            Part::NotAsked => (Tone::Faint, "○"),
            Part::Partial { .. } | Part::Missing { .. } => (Tone::Bad, "✗"),
        };
        screen.toned(tone, mark, &format!("{name}: {part}"));
    }
}
