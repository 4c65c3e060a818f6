//! The seccomp program: everything is allowed but the table in [`denied`](super::denied).

mod search;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::Network;
use super::denied::{
    ABSENT, CLONE_FLAGS, CREATING_FLAGS, NEWEST_KNOWN, OPEN, OWN_PROCESS_ONLY, PRIVILEGED_MODES, REFUSED,
    SET_MODE, TERMINAL_REQUESTS,
};
use search::{Answer, allow, go_on, kill, load, refuse, unless};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// How the kernel names this architecture in `struct seccomp_data`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Where in `struct seccomp_data` the number of the call is, and where the architecture.
const NUMBER: u32 = 0;
const ARCHITECTURE_OF_CALL: u32 = 4;

/// The filter for this machine, compiled once.
pub(super) fn compiled(network: Network) -> Result<&'static [sock_filter], &'static BackendError> {
    static OFF: LazyLock<Result<BpfProgram, BackendError>> = LazyLock::new(|| compile(Network::Off));
    static ON: LazyLock<Result<BpfProgram, BackendError>> = LazyLock::new(|| compile(Network::On));
    let program = match network {
        Network::Off => &OFF,
        Network::On => &ON,
    };
    program.as_ref().map(Vec::as_slice)
}

fn compile(network: Network) -> Result<BpfProgram, BackendError> {
    let groups = [(libc::EPERM, conditional()?), (libc::EACCES, sockets(network)?)];
    let looks = groups.iter().flat_map(|(_, rules)| rules.keys().copied());
    let mut program = beginning();
    program.append(&mut search::among(&table(looks)));
    let mut looking = BpfProgram::new();
    for (errno, rules) in groups {
        // Each group ends in "allow"; the next one takes its place. No call is in two groups, so
        // that an early "allow" within a group is final.
        looking.pop_if(|last| *last == allow());
        looking.append(&mut group(rules, errno)?);
    }
    program.append(&mut looking);
    Ok(program)
}

/// Kills calls of another architecture, whose numbers mean something else. Numbers with bit 30 set are
/// x32 calls: other names for the calls in the table, and above the newest that is known.
fn beginning() -> BpfProgram {
    vec![
        load(ARCHITECTURE_OF_CALL),
        unless(libc::BPF_JEQ, ARCHITECTURE),
        go_on(1),
        kill(),
        load(NUMBER),
        unless(libc::BPF_JGT, NEWEST_KNOWN),
        refuse(libc::ENOSYS),
    ]
}

/// All calls that are not simply allowed, sorted by their numbers.
fn table(looks: impl Iterator<Item = libc::c_long>) -> Vec<(u32, Answer)> {
    let refused = REFUSED.iter().map(|call| (number_of(*call), Answer::Errno(libc::EPERM)));
    let absent = ABSENT.iter().map(|call| (number_of(*call), Answer::Errno(libc::ENOSYS)));
    let looks = looks.map(|call| (number_of(call), Answer::Look));
    let mut table: Vec<_> = refused.chain(absent).chain(looks).collect();
    table.sort_unstable_by_key(|(number, _)| *number);
    table
}

fn group(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let action = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?.try_into()
}

fn conditional() -> Result<Rules, BackendError> {
    let mut rules = privileged_modes()?;
    let flags = CLONE_FLAGS.iter().map(|flag| SeccompRule::new(vec![has(0, flag.cast_unsigned())?]));
    rules.insert(libc::SYS_clone, flags.collect::<Result<_, _>>()?);
    let requests = TERMINAL_REQUESTS
        .iter()
        .map(|request| SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, *request)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    for call in OWN_PROCESS_ONLY {
        rules.insert(*call, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, 0)?])?]);
    }
    // (which, who): only PRIO_PROCESS (0) or IOPRIO_WHO_PROCESS (1), and only oneself (0).
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        let other_kind = SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, process)?])?;
        let other_process = SeccompRule::new(vec![argument(1, SeccompCmpOp::Ne, 0)?])?;
        rules.insert(call, vec![other_kind, other_process]);
    }
    // Asking (all ones) and the ordinary one (0) are harmless; others switch off protections.
    let unusual = vec![argument(0, SeccompCmpOp::Ne, 0)?, argument(0, SeccompCmpOp::Ne, u32::MAX.into())?];
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(unusual)?]);
    Ok(rules)
}

fn privileged_modes() -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for (call, mode) in SET_MODE {
        let bits = PRIVILEGED_MODES.iter().map(|bit| SeccompRule::new(vec![has(*mode, *bit)?]));
        rules.insert(*call, bits.collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPEN {
        let bits = PRIVILEGED_MODES.iter().flat_map(|bit| CREATING_FLAGS.map(|flag| (flag, *bit)));
        let creations = bits
            .map(|(flag, bit)| SeccompRule::new(vec![has(*flags, flag.cast_unsigned())?, has(*mode, bit)?]));
        rules.insert(*call, creations.collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

/// Sockets bound to a path lead to the services of the machine (D-Bus, container engines, the
/// display), so that they stay closed with the network on too.
fn sockets(network: Network) -> Result<Rules, BackendError> {
    let rules = match network {
        Network::Off => Vec::new(),
        Network::On => {
            let [ipv4, ipv6, netlink] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
                .map(|family| u64::from(family.cast_unsigned()));
            let other_family = vec![
                argument(0, SeccompCmpOp::Ne, ipv4)?,
                argument(0, SeccompCmpOp::Ne, ipv6)?,
                argument(0, SeccompCmpOp::Ne, netlink)?,
            ];
            // Name resolution asks NETLINK_ROUTE (0) for the local addresses.
            let other_netlink =
                vec![argument(0, SeccompCmpOp::Eq, netlink)?, argument(2, SeccompCmpOp::Ne, 0)?];
            vec![SeccompRule::new(other_family)?, SeccompRule::new(other_netlink)?]
        }
    };
    Ok(Rules::from([(libc::SYS_socket, rules), (libc::SYS_socketpair, pairs_that_can_leave()?)]))
}

/// Only pairs that stay connected to each other can't be turned to a path: streams (1) and sequences
/// of packets (5), which have the lowest of the four bits of the type and neither 2 nor 8. In the
/// local family the kernel takes a raw socket for a datagram socket.
fn pairs_that_can_leave() -> Result<Vec<SeccompRule>, BackendError> {
    let local = u64::from(libc::AF_UNIX.cast_unsigned());
    let rules = [
        argument(0, SeccompCmpOp::Ne, local)?,
        argument(1, SeccompCmpOp::MaskedEq(1), 0)?,
        has(1, 2)?,
        has(1, 8)?,
    ];
    rules.into_iter().map(|condition| SeccompRule::new(vec![condition])).collect()
}

fn has(index: u8, bit: u32) -> Result<SeccompCondition, BackendError> {
    argument(index, SeccompCmpOp::MaskedEq(bit.into()), bit.into())
}

/// The kernel reads these arguments as 32 bits, so that the upper half must not hide a value.
fn argument(index: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of system calls are small and positive"
)]
const fn number_of(call: libc::c_long) -> u32 {
    call as u32
}

#[cfg(test)]
mod tests;
