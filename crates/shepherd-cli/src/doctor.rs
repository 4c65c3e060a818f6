//! What this machine can enforce, what it can't, and what would help.

use serde::Serialize;
use ward_process::sandbox::{self, Part, SandboxReport};
use ward_process::{Containment, Probe};

use crate::failure::Failure;
use crate::screen::{Screen, Tone};

#[derive(Serialize)]
struct Findings {
    containment: Containment,
    containments: Probe,
    sandbox: SandboxReport,
}

pub(crate) fn run(screen: &mut Screen) -> Result<(), Failure> {
    let containments = ward_process::probe();
    let findings = Findings { containment: containments.best(), containments, sandbox: sandbox::probe() };
    screen.answer(&findings, |screen| {
        show_containments(screen, &findings.containments);
        show_sandbox(screen, &findings.sandbox);
    });
    Ok(())
}

pub(crate) fn show_containments(screen: &mut Screen, probe: &Probe) {
    screen.heading("What holds a program and all its children together");
    for offer in &probe.offers {
        let name = offer.containment;
        match &offer.missing {
            None if name == probe.best() => screen.toned(Tone::Good, "●", &format!("{name}: in use")),
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
