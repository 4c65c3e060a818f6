//! Probes once which sandbox mechanisms this host offers, and derives the report for a sandbox from them.

use std::sync::LazyLock;

use rustix::io::Errno;

use super::report::{SandboxPartStatus, SandboxReport};
use super::{Sandbox, SandboxNetwork, TemporaryFiles};
use crate::containment::user_namespace_flag;
use crate::sys::confinement;

const PERMIT_NAMESPACES: &str = "permit user namespaces (user.max_user_namespaces, AppArmor), or run as root";

/// The results of probing the kernel, which can't change during the lifetime of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelSupport {
    pub(super) landlock: Result<i64, Errno>,
    pub(super) seccomp: Result<(), Errno>,
    pub(super) network_namespace: Result<(), Errno>,
    /// True if a child can also bring up the loopback interface of its network namespace.
    pub(super) loopback: Result<(), Errno>,
    pub(super) read_only_mounts: Result<(), Errno>,
}

pub(super) fn kernel_support() -> &'static KernelSupport {
    static HOST: LazyLock<KernelSupport> = LazyLock::new(|| {
        let network = libc::CLONE_NEWNET | user_namespace_flag();
        let loopback = confinement::try_loopback(network);
        KernelSupport {
            landlock: confinement::landlock_abi(),
            seccomp: confinement::seccomp_available(),
            network_namespace: loopback.or_else(|_| confinement::try_namespaces(network)),
            loopback,
            read_only_mounts: confinement::try_read_only_mounts(libc::CLONE_NEWNS | user_namespace_flag()),
        }
    });
    &HOST
}

/// Reports how this host would enforce a sandbox that asks for everything, with reasons for missing parts.
#[must_use]
pub fn probe() -> SandboxReport {
    kernel_support().report(&Sandbox { temporary: TemporaryFiles::Private, ..Sandbox::default() })
}

impl KernelSupport {
    /// Reports how this host enforces each part of `sandbox`.
    pub(super) fn report(&self, sandbox: &Sandbox) -> SandboxReport {
        SandboxReport {
            filesystem: self.filesystem(sandbox),
            metadata: self.metadata(),
            network: self.network(sandbox.network),
            syscalls: self.syscalls(),
            signals: self.signals(),
            privileges: SandboxPartStatus::InForce { by: "no new privileges, no capabilities".into() },
            temporary: match sandbox.temporary {
                TemporaryFiles::Private | TemporaryFiles::PrivateTmp | TemporaryFiles::PrivateIn(_) => {
                    SandboxPartStatus::InForce { by: "folder of mode 0700".into() }
                }
                TemporaryFiles::None => SandboxPartStatus::NotAsked,
            },
        }
    }

    /// Returns the requested network, or `Off` instead of a loopback interface that this host can't provide.
    pub(super) fn available_network(&self, requested: SandboxNetwork) -> SandboxNetwork {
        match requested {
            SandboxNetwork::Loopback | SandboxNetwork::LoopbackWithListener { .. }
                if self.loopback.is_err() =>
            {
                SandboxNetwork::Off
            }
            available => available,
        }
    }

    fn filesystem(&self, sandbox: &Sandbox) -> SandboxPartStatus {
        if let (false, Err(errno)) = (sandbox.closed.is_empty(), self.read_only_mounts) {
            return SandboxPartStatus::Missing {
                why: format!("folders inside of an open tree can't be closed (no mount namespace: {errno})"),
                cure: PERMIT_NAMESPACES.into(),
            };
        }
        let abi = match self.landlock {
            Ok(abi) => abi,
            Err(errno) => return no_landlock(errno),
        };
        // ABI 1 always denies renames and links across folders (LANDLOCK_ACCESS_FS_REFER), which is
        // inconvenient but no gap.
        let no_moves = if abi == 1 { ", without moving files between folders" } else { "" };
        let by = format!("Landlock ABI {abi}{no_moves}");
        match (abi, self.read_only_mounts) {
            (3.., _) => SandboxPartStatus::InForce { by },
            (_, Ok(())) => SandboxPartStatus::InForce { by: format!("{by}, read-only mounts") },
            (_, Err(_)) => SandboxPartStatus::Partial {
                by,
                gap: "files outside of the sandbox can be truncated to zero bytes".into(),
                cure: format!("needs Linux 6.2 or newer, or a mount namespace: {PERMIT_NAMESPACES}"),
            },
        }
    }

    fn metadata(&self) -> SandboxPartStatus {
        match self.read_only_mounts {
            Ok(()) => SandboxPartStatus::InForce { by: "read-only mounts".into() },
            Err(errno) => SandboxPartStatus::Missing {
                why: format!(
                    "`chmod` and `touch` work on all files of the user (no mount namespace: {errno})"
                ),
                cure: PERMIT_NAMESPACES.into(),
            },
        }
    }

    fn network(&self, network: SandboxNetwork) -> SandboxPartStatus {
        match (network, self.loopback) {
            (SandboxNetwork::On, _) => return SandboxPartStatus::NotAsked,
            (SandboxNetwork::LoopbackWithListener { .. }, Err(errno)) => {
                return SandboxPartStatus::Missing {
                    why: format!("no network namespace for a network that is limited ({errno})"),
                    cure: PERMIT_NAMESPACES.into(),
                };
            }
            (SandboxNetwork::Loopback | SandboxNetwork::LoopbackWithListener { .. }, Ok(())) => {
                return self.loopback_only();
            }
            (SandboxNetwork::Off, _) | (SandboxNetwork::Loopback, Err(_)) => {}
        }
        let mechanisms = [
            self.network_namespace.is_ok().then(|| "network namespace".to_owned()),
            self.seccomp.is_ok().then(|| "seccomp refuses sockets".to_owned()),
            self.landlock.ok().filter(|abi| *abi >= 4).map(|abi| format!("Landlock ABI {abi} refuses TCP")),
        ];
        let by = mechanisms.into_iter().flatten().collect::<Vec<_>>().join(", ");
        match (self.network_namespace, self.seccomp) {
            // Seccomp alone is sufficient: it refuses sockets of every family.
            (_, Ok(())) => SandboxPartStatus::InForce { by },
            (Ok(()), Err(_)) => SandboxPartStatus::Partial {
                by,
                gap: "services of this machine can be reached through Unix socket files".into(),
                cure: "needs a kernel with seccomp filters".into(),
            },
            (Err(_), Err(_)) if !by.is_empty() => SandboxPartStatus::Partial {
                by,
                gap: "UDP and Unix socket files are open".into(),
                cure: "needs a kernel with seccomp filters".into(),
            },
            (Err(namespace), Err(seccomp)) => SandboxPartStatus::Missing {
                why: format!("no network namespace ({namespace}), no seccomp ({seccomp})"),
                cure: "needs a kernel with seccomp filters, or permitted user namespaces".into(),
            },
        }
    }

    /// Reports how a network that consists of a loopback interface is enforced.
    fn loopback_only(&self) -> SandboxPartStatus {
        let by = "network namespace with a loopback interface only".to_owned();
        match self.seccomp {
            Ok(()) => {
                SandboxPartStatus::InForce { by: format!("{by}, seccomp refuses other kinds of sockets") }
            }
            Err(_) => SandboxPartStatus::Partial {
                by,
                gap: "services of this machine can be reached through Unix socket files".into(),
                cure: "needs a kernel with seccomp filters".into(),
            },
        }
    }

    fn syscalls(&self) -> SandboxPartStatus {
        match self.seccomp {
            Ok(()) => SandboxPartStatus::InForce { by: "seccomp".into() },
            Err(errno) => SandboxPartStatus::Missing {
                why: format!("no seccomp filters ({errno})"),
                cure: "needs a kernel with CONFIG_SECCOMP_FILTER".into(),
            },
        }
    }

    fn signals(&self) -> SandboxPartStatus {
        match self.landlock {
            Ok(abi @ 6..) => SandboxPartStatus::InForce { by: format!("Landlock ABI {abi}") },
            // Seccomp can't help: a filter sees a pid but can't tell which process it belongs to.
            Ok(_) | Err(_) => SandboxPartStatus::Partial {
                by: "the kernel protects processes of other users".into(),
                gap: "processes of the same user can be signalled, also the supervisor".into(),
                cure: "needs Linux 6.12 or newer, a PID namespace as containment, or a user of its own"
                    .into(),
            },
        }
    }
}

fn no_landlock(errno: Errno) -> SandboxPartStatus {
    let (why, cure) = match errno {
        Errno::OPNOTSUPP => ("Landlock is switched off", "add landlock to the kernel's lsm= list and reboot"),
        Errno::NOSYS => {
            ("this kernel has no Landlock", "needs Linux 5.19 or newer with CONFIG_SECURITY_LANDLOCK")
        }
        _ => ("Landlock is not permitted here", "allow its system calls in the container"),
    };
    SandboxPartStatus::Missing { why: format!("{why} ({errno})"), cure: cure.into() }
}

#[cfg(test)]
mod tests {
    use super::super::{SandboxError, SandboxStrictness};
    use super::*;

    const EVERYTHING: KernelSupport = KernelSupport {
        landlock: Ok(7),
        seccomp: Ok(()),
        network_namespace: Ok(()),
        loopback: Ok(()),
        read_only_mounts: Ok(()),
    };

    fn everything() -> Sandbox {
        Sandbox { temporary: TemporaryFiles::Private, ..Sandbox::default() }
    }

    #[test]
    fn a_new_kernel_enforces_every_part() {
        let report = EVERYTHING.report(&everything());
        assert!(report.is_complete(), "{report}");
        let by = "network namespace, seccomp refuses sockets, Landlock ABI 7 refuses TCP";
        assert_eq!(report.network, SandboxPartStatus::InForce { by: by.into() });
    }

    #[test]
    fn without_user_namespaces_the_network_is_still_off() {
        let host = KernelSupport { network_namespace: Err(Errno::PERM), ..EVERYTHING };
        assert!(host.report(&everything()).network.is_enforced());
    }

    #[test]
    fn without_mount_namespaces_the_report_names_the_gap() {
        let host = KernelSupport { read_only_mounts: Err(Errno::PERM), ..EVERYTHING };
        let report = host.report(&everything());
        assert!(!report.is_complete());
        assert!(report.metadata.to_string().contains("chmod"), "{report}");
    }

    #[test]
    fn on_an_older_kernel_the_report_names_the_gap_and_the_cure() {
        let report = KernelSupport { landlock: Ok(5), ..EVERYTHING }.report(&everything());
        assert!(report.filesystem.is_enforced());
        assert_eq!(
            report.signals.to_string(),
            "enforced with a gap (the kernel protects processes of other users): processes of the same user \
             can be signalled, also the supervisor; needs Linux 6.12 or newer, a PID namespace as \
             containment, or a user of its own"
        );
        assert_eq!(report.missing_parts(SandboxStrictness::Everything), ["signals"]);
    }

    #[test]
    fn stock_kernels_of_debian_12_and_ubuntu_24_04_enforce_the_essentials() {
        let debian = KernelSupport { landlock: Ok(2), ..EVERYTHING };
        // AppArmor on Ubuntu removes all capabilities inside of a user namespace.
        let denied = Err(Errno::ACCESS);
        let ubuntu = KernelSupport {
            landlock: Ok(4),
            network_namespace: denied,
            read_only_mounts: denied,
            ..EVERYTHING
        };
        for host in [debian, ubuntu] {
            let report = host.report(&everything());
            assert!(everything().check_report(report.clone()).is_ok(), "{report}");
            assert!(!report.is_complete());
        }
    }

    #[test]
    fn an_old_landlock_needs_read_only_mounts_against_truncating_files() {
        let report = |abi, read_only_mounts| {
            KernelSupport { landlock: Ok(abi), read_only_mounts, ..EVERYTHING }
                .report(&everything())
                .filesystem
        };
        for abi in [1, 2] {
            assert!(report(abi, Ok(())).is_enforced());
            assert!(matches!(report(abi, Err(Errno::PERM)), SandboxPartStatus::Partial { .. }));
        }
        assert!(report(3, Err(Errno::PERM)).is_enforced());
    }

    #[test]
    fn landlock_switched_off_has_a_different_cure_from_landlock_missing() {
        let cure = |errno| match (KernelSupport { landlock: Err(errno), ..EVERYTHING })
            .report(&everything())
            .filesystem
        {
            SandboxPartStatus::Missing { cure, .. } => cure,
            other => panic!("{other}"),
        };
        assert!(cure(Errno::OPNOTSUPP).contains("lsm="));
        assert!(cure(Errno::NOSYS).contains("CONFIG_SECURITY_LANDLOCK"));
    }

    #[test]
    fn a_part_without_any_mechanism_is_missing_and_not_partial() {
        let host = KernelSupport {
            landlock: Err(Errno::NOSYS),
            seccomp: Err(Errno::INVAL),
            network_namespace: Err(Errno::PERM),
            loopback: Err(Errno::PERM),
            read_only_mounts: Err(Errno::PERM),
        };
        let report = host.report(&everything());
        assert!(matches!(report.network, SandboxPartStatus::Missing { .. }));
        assert!(matches!(report.syscalls, SandboxPartStatus::Missing { .. }));
    }

    #[test]
    fn parts_that_were_not_requested_are_not_missing() {
        let host = KernelSupport { seccomp: Ok(()), network_namespace: Err(Errno::PERM), ..EVERYTHING };
        let sandbox =
            Sandbox { network: SandboxNetwork::On, temporary: TemporaryFiles::None, ..Sandbox::default() };
        let report = host.report(&sandbox);
        assert_eq!(
            (report.network, report.temporary),
            (SandboxPartStatus::NotAsked, SandboxPartStatus::NotAsked)
        );
    }

    #[test]
    fn a_missing_part_is_an_error_or_only_reported_depending_on_strictness() {
        let host = KernelSupport { seccomp: Err(Errno::INVAL), ..EVERYTHING };
        let strict = everything();
        let error = strict.check_report(host.report(&strict)).unwrap_err();
        let message = "this machine can't enforce these parts of the sandbox: network, syscalls";
        assert_eq!(error.to_string(), message);
        assert!(matches!(error, SandboxError::Incomplete { report, .. } if !report.syscalls.is_enforced()));
        let lenient = Sandbox { strictness: SandboxStrictness::BestEffort, ..everything() };
        assert_eq!(lenient.check_report(host.report(&lenient)).unwrap(), host.report(&lenient));
        assert!(strict.check_report(EVERYTHING.report(&strict)).is_ok());
    }

    #[test]
    fn only_the_strictest_sandbox_demands_signals_and_metadata() {
        let host = KernelSupport { landlock: Ok(5), read_only_mounts: Err(Errno::PERM), ..EVERYTHING };
        assert!(everything().check_report(host.report(&everything())).is_ok());
        let strictest = Sandbox { strictness: SandboxStrictness::Everything, ..everything() };
        let error = strictest.check_report(host.report(&strictest)).unwrap_err();
        assert!(error.to_string().ends_with(": metadata, signals"), "{error}");
    }
}
