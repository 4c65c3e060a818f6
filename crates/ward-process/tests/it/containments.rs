//! The test doubles and the containments of this machine. The tests of `shepherd-host-linux` include this file too.

use std::path::PathBuf;

use ward_process::Containment;

/// Returns the path of a program of the tested crate. Archived test binaries run in another folder than they were built
/// in, so nextest passes the path at run time.
pub(crate) fn test_program(name: &str, built: &str) -> PathBuf {
    std::env::var_os(format!("NEXTEST_BIN_EXE_{name}")).map_or_else(|| built.into(), PathBuf::from)
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the available containments, and fails if one is missing that the current user must have.
pub(crate) fn containments() -> Vec<Containment> {
    let probe = ward_process::probe();
    let required = if is_root() { &Containment::ALL[..] } else { &Containment::ALL[1..] };
    for offer in &probe.offers {
        let missing = offer.missing.as_deref().unwrap_or_default();
        assert!(
            missing.is_empty() || !required.contains(&offer.containment),
            "{}: {missing}",
            offer.containment
        );
    }
    probe.available().collect()
}

/// Returns the containments that hold a program that starts its own session or process group.
pub(crate) fn holding_containments() -> Vec<Containment> {
    containments().into_iter().filter(|containment| *containment != Containment::ProcessGroup).collect()
}
