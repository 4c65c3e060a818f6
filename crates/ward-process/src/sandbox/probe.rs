//! What this host gives a sandbox, found out once by trying.

use std::sync::LazyLock;

use rustix::io::Errno;

use super::report::{Part, SandboxReport};
use super::{Network, Sandbox, Temporary};
use crate::containment::user_namespace_flag;
use crate::sys::confine;

const PERMIT_NAMESPACES: &str = "permit user namespaces (user.max_user_namespaces, AppArmor), or run as root";

/// Facts about the kernel that can't change while this process lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) landlock: Result<i64, Errno>,
    pub(super) seccomp: Result<(), Errno>,
    pub(super) network_namespace: Result<(), Errno>,
    pub(super) read_only_mounts: Result<(), Errno>,
}

pub(super) fn host() -> &'static Host {
    static HOST: LazyLock<Host> = LazyLock::new(|| Host {
        landlock: confine::landlock_abi(),
        seccomp: confine::seccomp_available(),
        network_namespace: confine::try_namespaces(libc::CLONE_NEWNET | user_namespace_flag()),
        read_only_mounts: confine::try_read_only_mounts(libc::CLONE_NEWNS | user_namespace_flag()),
    });
    &HOST
}

/// What this host would give to a sandbox that asks for everything, and why not more.
#[must_use]
pub fn probe() -> SandboxReport {
    host().report(&Sandbox { temporary: Temporary::Private, ..Sandbox::default() })
}

impl Host {
    /// What is in force for `sandbox` on this host.
    pub(super) fn report(&self, sandbox: &Sandbox) -> SandboxReport {
        SandboxReport {
            filesystem: self.filesystem(sandbox),
            metadata: self.metadata(),
            network: self.network(sandbox.network),
            syscalls: self.syscalls(),
            signals: self.signals(),
            privileges: Part::InForce { by: "no new privileges, no capabilities".into() },
            temporary: match sandbox.temporary {
                Temporary::Private | Temporary::PrivateIn(_) => {
                    Part::InForce { by: "folder of mode 0700".into() }
                }
                Temporary::None => Part::NotAsked,
            },
        }
    }

    fn filesystem(&self, sandbox: &Sandbox) -> Part {
        if let (false, Err(errno)) = (sandbox.closed.is_empty(), self.read_only_mounts) {
            return Part::Missing {
                why: format!("nothing inside an open tree can be closed (no mount namespace: {errno})"),
                cure: PERMIT_NAMESPACES.into(),
            };
        }
        let abi = match self.landlock {
            Ok(abi) => abi,
            Err(errno) => return no_landlock(errno),
        };
        // Without the right to move files none can be moved to another folder: a nuisance, no gap.
        let moves = if abi == 1 { ", which moves no file to another folder" } else { "" };
        let by = format!("Landlock ABI {abi}{moves}");
        match (abi, self.read_only_mounts) {
            (3.., _) => Part::InForce { by },
            (_, Ok(())) => Part::InForce { by: format!("{by}, read-only mounts") },
            (_, Err(_)) => Part::Partial {
                by,
                gap: "files outside can be cut to length zero".into(),
                cure: format!("needs Linux 6.2 or newer, or a mount namespace: {PERMIT_NAMESPACES}"),
            },
        }
    }

    fn metadata(&self) -> Part {
        match self.read_only_mounts {
            Ok(()) => Part::InForce { by: "read-only mounts".into() },
            Err(errno) => Part::Missing {
                why: format!("`chmod` and `touch` reach all files of the user (no mount namespace: {errno})"),
                cure: PERMIT_NAMESPACES.into(),
            },
        }
    }

    fn network(&self, network: Network) -> Part {
        if network == Network::On {
            return Part::NotAsked;
        }
        let mechanisms = [
            self.network_namespace.is_ok().then(|| "network namespace".to_owned()),
            self.seccomp.is_ok().then(|| "seccomp refuses sockets".to_owned()),
            self.landlock.ok().filter(|abi| *abi >= 4).map(|abi| format!("Landlock ABI {abi} refuses TCP")),
        ];
        let by = mechanisms.into_iter().flatten().collect::<Vec<_>>().join(", ");
        match (self.network_namespace, self.seccomp) {
            // Alone it is enough: no socket of any family can be made.
            (_, Ok(())) => Part::InForce { by },
            (Ok(()), Err(_)) => Part::Partial {
                by,
                gap: "services of this machine can be reached through socket files".into(),
                cure: "needs a kernel with seccomp filters".into(),
            },
            (Err(_), Err(_)) if !by.is_empty() => Part::Partial {
                by,
                gap: "UDP and socket files are open".into(),
                cure: "needs a kernel with seccomp filters".into(),
            },
            (Err(namespace), Err(seccomp)) => Part::Missing {
                why: format!("no network namespace ({namespace}), no seccomp ({seccomp})"),
                cure: "needs a kernel with seccomp filters, or permitted user namespaces".into(),
            },
        }
    }

    fn syscalls(&self) -> Part {
        match self.seccomp {
            Ok(()) => Part::InForce { by: "seccomp".into() },
            Err(errno) => Part::Missing {
                why: format!("no seccomp filters ({errno})"),
                cure: "needs a kernel with CONFIG_SECCOMP_FILTER".into(),
            },
        }
    }

    fn signals(&self) -> Part {
        match self.landlock {
            Ok(abi @ 6..) => Part::InForce { by: format!("Landlock ABI {abi}") },
            // Seccomp can't help: a filter does not know whose process a number is.
            Ok(_) | Err(_) => Part::Partial {
                by: "users are kept apart".into(),
                gap: "other processes of the same user can be signalled, the supervisor among them".into(),
                cure: "needs Linux 6.12 or newer, a PID namespace as containment, or a user of its own"
                    .into(),
            },
        }
    }
}

fn no_landlock(errno: Errno) -> Part {
    let (why, cure) = match errno {
        Errno::OPNOTSUPP => ("Landlock is switched off", "add landlock to the kernel's lsm= list and reboot"),
        Errno::NOSYS => {
            ("this kernel has no Landlock", "needs Linux 5.19 or newer with CONFIG_SECURITY_LANDLOCK")
        }
        _ => ("Landlock is not permitted here", "allow its system calls in the container we run in"),
    };
    Part::Missing { why: format!("{why} ({errno})"), cure: cure.into() }
}

#[cfg(test)]
mod tests {
    use super::super::{SandboxError, Strictness};
    use super::*;

    const EVERYTHING: Host =
        Host { landlock: Ok(7), seccomp: Ok(()), network_namespace: Ok(()), read_only_mounts: Ok(()) };

    fn everything() -> Sandbox {
        Sandbox { temporary: Temporary::Private, ..Sandbox::default() }
    }

    #[test]
    fn a_new_kernel_gives_everything() {
        let report = EVERYTHING.report(&everything());
        assert!(report.is_complete(), "{report}");
        let by = "network namespace, seccomp refuses sockets, Landlock ABI 7 refuses TCP";
        assert_eq!(report.network, Part::InForce { by: by.into() });
    }

    #[test]
    fn without_user_namespaces_the_network_is_still_off() {
        let host = Host { network_namespace: Err(Errno::PERM), ..EVERYTHING };
        assert!(host.report(&everything()).network.holds());
    }

    #[test]
    fn without_mount_namespaces_the_report_says_what_stays_possible() {
        let host = Host { read_only_mounts: Err(Errno::PERM), ..EVERYTHING };
        let report = host.report(&everything());
        assert!(!report.is_complete());
        assert!(report.metadata.to_string().contains("chmod"), "{report}");
    }

    #[test]
    fn an_older_kernel_says_what_it_lacks_and_what_brings_it() {
        let report = Host { landlock: Ok(5), ..EVERYTHING }.report(&everything());
        assert!(report.filesystem.holds());
        assert_eq!(
            report.signals.to_string(),
            "in part (users are kept apart): other processes of the same user can be signalled, the \
             supervisor among them; needs Linux 6.12 or newer, a PID namespace as containment, or a user \
             of its own"
        );
        assert_eq!(report.lacking(Strictness::Everything), ["signals"]);
    }

    #[test]
    fn stock_kernels_of_debian_12_and_ubuntu_24_04_give_the_essentials() {
        let debian = Host { landlock: Ok(2), ..EVERYTHING };
        // AppArmor takes all capabilities from a user namespace there.
        let no = Err(Errno::ACCESS);
        let ubuntu = Host { landlock: Ok(4), network_namespace: no, read_only_mounts: no, ..EVERYTHING };
        for host in [debian, ubuntu] {
            let report = host.report(&everything());
            assert!(everything().accept(report.clone()).is_ok(), "{report}");
            assert!(!report.is_complete());
        }
    }

    #[test]
    fn an_old_landlock_needs_read_only_mounts_against_cutting_files_off() {
        let report = |abi, read_only_mounts| {
            Host { landlock: Ok(abi), read_only_mounts, ..EVERYTHING }.report(&everything()).filesystem
        };
        for abi in [1, 2] {
            assert!(report(abi, Ok(())).holds());
            assert!(matches!(report(abi, Err(Errno::PERM)), Part::Partial { .. }));
        }
        assert!(report(3, Err(Errno::PERM)).holds());
    }

    #[test]
    fn landlock_switched_off_has_another_cure_than_landlock_absent() {
        let cure =
            |errno| match (Host { landlock: Err(errno), ..EVERYTHING }).report(&everything()).filesystem {
                Part::Missing { cure, .. } => cure,
                other => panic!("{other}"),
            };
        assert!(cure(Errno::OPNOTSUPP).contains("lsm="));
        assert!(cure(Errno::NOSYS).contains("CONFIG_SECURITY_LANDLOCK"));
    }

    #[test]
    fn no_mechanism_at_all_is_missing_and_not_partial() {
        let host = Host {
            landlock: Err(Errno::NOSYS),
            seccomp: Err(Errno::INVAL),
            network_namespace: Err(Errno::PERM),
            read_only_mounts: Err(Errno::PERM),
        };
        let report = host.report(&everything());
        assert!(matches!(report.network, Part::Missing { .. }));
        assert!(matches!(report.syscalls, Part::Missing { .. }));
    }

    #[test]
    fn what_was_not_asked_for_is_not_missing() {
        let host = Host { seccomp: Ok(()), network_namespace: Err(Errno::PERM), ..EVERYTHING };
        let sandbox = Sandbox { network: Network::On, temporary: Temporary::None, ..Sandbox::default() };
        let report = host.report(&sandbox);
        assert_eq!((report.network, report.temporary), (Part::NotAsked, Part::NotAsked));
    }

    #[test]
    fn a_missing_part_is_refused_or_reported_as_ordered() {
        let host = Host { seccomp: Err(Errno::INVAL), ..EVERYTHING };
        let strict = everything();
        let error = strict.accept(host.report(&strict)).unwrap_err();
        let sentence = "this machine can't enforce these parts of the sandbox: network, syscalls";
        assert_eq!(error.to_string(), sentence);
        assert!(matches!(error, SandboxError::Incomplete { report, .. } if !report.syscalls.holds()));
        let lenient = Sandbox { strictness: Strictness::BestEffort, ..everything() };
        assert_eq!(lenient.accept(host.report(&lenient)).unwrap(), host.report(&lenient));
        assert!(strict.accept(EVERYTHING.report(&strict)).is_ok());
    }

    #[test]
    fn only_the_strictest_order_insists_on_signals_and_metadata() {
        let host = Host { landlock: Ok(5), read_only_mounts: Err(Errno::PERM), ..EVERYTHING };
        assert!(everything().accept(host.report(&everything())).is_ok());
        let strictest = Sandbox { strictness: Strictness::Everything, ..everything() };
        let error = strictest.accept(host.report(&strictest)).unwrap_err();
        assert!(error.to_string().ends_with(": metadata, signals"), "{error}");
    }
}
