//! The seccomp program: everything is allowed but the table in [`denied_syscalls`](super::denied).

mod syscall_search;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::SandboxNetwork;
use super::denied_syscalls::{
    CLONE_FLAGS, CREATING_FLAGS, ENOSYS_CALLS, EPERM_CALLS, MODE_SETTING_CALLS, NEWEST_KNOWN, OPEN_CALLS,
    OWN_PROCESS_ONLY, PRIVILEGED_MODES, TERMINAL_REQUESTS,
};
use syscall_search::{SyscallAction, allow, jump_over, kill, load, refuse, skip_unless};

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// How the kernel names this architecture in `struct seccomp_data`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Where in `struct seccomp_data` the number of the call is, and where the architecture.
const NUMBER: u32 = 0;
const ARCHITECTURE_OF_CALL: u32 = 4;

/// The filter for this machine, compiled once.
pub(super) fn compiled(network: SandboxNetwork) -> Result<&'static [sock_filter], &'static BackendError> {
    static OFF: LazyLock<Result<BpfProgram, BackendError>> = LazyLock::new(|| compile(SandboxNetwork::Off));
    static ON: LazyLock<Result<BpfProgram, BackendError>> = LazyLock::new(|| compile(SandboxNetwork::On));
    let program = match network {
        SandboxNetwork::Off => &OFF,
        SandboxNetwork::On => &ON,
    };
    program.as_ref().map(Vec::as_slice)
}

fn compile(network: SandboxNetwork) -> Result<BpfProgram, BackendError> {
    let groups = [(libc::EPERM, conditional_rules()?), (libc::EACCES, socket_rules(network)?)];
    let looks = groups.iter().flat_map(|(_, rules)| rules.keys().copied());
    let mut program = architecture_check();
    program.append(&mut syscall_search::build_search(&syscall_table(looks)));
    let mut looking = BpfProgram::new();
    for (errno, rules) in groups {
        // Each group ends in "allow"; the next one takes its place. No call is in two groups, so
        // that an early "allow" within a group is final.
        looking.pop_if(|last| *last == allow());
        looking.append(&mut compile_group(rules, errno)?);
    }
    program.append(&mut looking);
    Ok(program)
}

/// Kills calls of another architecture, whose numbers mean something else. Numbers with bit 30 set are
/// x32 calls: other names for the calls in the table, and above the newest that is known.
fn architecture_check() -> BpfProgram {
    vec![
        load(ARCHITECTURE_OF_CALL),
        skip_unless(libc::BPF_JEQ, ARCHITECTURE),
        jump_over(1),
        kill(),
        load(NUMBER),
        skip_unless(libc::BPF_JGT, NEWEST_KNOWN),
        refuse(libc::ENOSYS),
    ]
}

/// All calls that are not simply allowed, sorted by their numbers.
fn syscall_table(looks: impl Iterator<Item = libc::c_long>) -> Vec<(u32, SyscallAction)> {
    let refused = EPERM_CALLS.iter().map(|call| (syscall_number(*call), SyscallAction::Errno(libc::EPERM)));
    let absent = ENOSYS_CALLS.iter().map(|call| (syscall_number(*call), SyscallAction::Errno(libc::ENOSYS)));
    let looks = looks.map(|call| (syscall_number(call), SyscallAction::CheckArguments));
    let mut table: Vec<_> = refused.chain(absent).chain(looks).collect();
    table.sort_unstable_by_key(|(number, _)| *number);
    table
}

fn compile_group(rules: SyscallRules, errno: libc::c_int) -> Result<BpfProgram, BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let action = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?.try_into()
}

fn conditional_rules() -> Result<SyscallRules, BackendError> {
    let mut rules = privileged_mode_rules()?;
    let flags = CLONE_FLAGS.iter().map(|flag| SeccompRule::new(vec![bit_is_set(0, flag.cast_unsigned())?]));
    rules.insert(libc::SYS_clone, flags.collect::<Result<_, _>>()?);
    let requests = TERMINAL_REQUESTS
        .iter()
        .map(|request| SeccompRule::new(vec![compare_argument(1, SeccompCmpOp::Eq, *request)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    for call in OWN_PROCESS_ONLY {
        rules.insert(*call, vec![SeccompRule::new(vec![compare_argument(0, SeccompCmpOp::Ne, 0)?])?]);
    }
    // (which, who): only PRIO_PROCESS (0) or IOPRIO_WHO_PROCESS (1), and only oneself (0).
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        let other_kind = SeccompRule::new(vec![compare_argument(0, SeccompCmpOp::Ne, process)?])?;
        let other_process = SeccompRule::new(vec![compare_argument(1, SeccompCmpOp::Ne, 0)?])?;
        rules.insert(call, vec![other_kind, other_process]);
    }
    // Asking (all ones) and the ordinary one (0) are harmless; others switch off protections.
    let unusual = vec![
        compare_argument(0, SeccompCmpOp::Ne, 0)?,
        compare_argument(0, SeccompCmpOp::Ne, u32::MAX.into())?,
    ];
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(unusual)?]);
    Ok(rules)
}

fn privileged_mode_rules() -> Result<SyscallRules, BackendError> {
    let mut rules = SyscallRules::new();
    for (call, mode) in MODE_SETTING_CALLS {
        let bits = PRIVILEGED_MODES.iter().map(|bit| SeccompRule::new(vec![bit_is_set(*mode, *bit)?]));
        rules.insert(*call, bits.collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPEN_CALLS {
        let bits = PRIVILEGED_MODES.iter().flat_map(|bit| CREATING_FLAGS.map(|flag| (flag, *bit)));
        let creations = bits.map(|(flag, bit)| {
            SeccompRule::new(vec![bit_is_set(*flags, flag.cast_unsigned())?, bit_is_set(*mode, bit)?])
        });
        rules.insert(*call, creations.collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

/// Sockets bound to a path lead to the services of the machine (D-Bus, container engines, the
/// display), so that they stay closed with the network on too.
fn socket_rules(network: SandboxNetwork) -> Result<SyscallRules, BackendError> {
    let rules = match network {
        SandboxNetwork::Off => Vec::new(),
        SandboxNetwork::On => {
            let [ipv4, ipv6, netlink] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
                .map(|family| u64::from(family.cast_unsigned()));
            let other_family = vec![
                compare_argument(0, SeccompCmpOp::Ne, ipv4)?,
                compare_argument(0, SeccompCmpOp::Ne, ipv6)?,
                compare_argument(0, SeccompCmpOp::Ne, netlink)?,
            ];
            // Name resolution asks NETLINK_ROUTE (0) for the local addresses.
            let other_netlink = vec![
                compare_argument(0, SeccompCmpOp::Eq, netlink)?,
                compare_argument(2, SeccompCmpOp::Ne, 0)?,
            ];
            vec![SeccompRule::new(other_family)?, SeccompRule::new(other_netlink)?]
        }
    };
    Ok(SyscallRules::from([(libc::SYS_socket, rules), (libc::SYS_socketpair, unsafe_socketpair_rules()?)]))
}

/// Only pairs that stay connected to each other can't be turned to a path: streams (1) and sequences
/// of packets (5), which have the lowest of the four bits of the type and neither 2 nor 8. In the
/// local family the kernel takes a raw socket for a datagram socket.
fn unsafe_socketpair_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let local = u64::from(libc::AF_UNIX.cast_unsigned());
    let rules = [
        compare_argument(0, SeccompCmpOp::Ne, local)?,
        compare_argument(1, SeccompCmpOp::MaskedEq(1), 0)?,
        bit_is_set(1, 2)?,
        bit_is_set(1, 8)?,
    ];
    rules.into_iter().map(|condition| SeccompRule::new(vec![condition])).collect()
}

fn bit_is_set(index: u8, bit: u32) -> Result<SeccompCondition, BackendError> {
    compare_argument(index, SeccompCmpOp::MaskedEq(bit.into()), bit.into())
}

/// The kernel reads these arguments as 32 bits, so that the upper half must not hide a value.
fn compare_argument(index: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of system calls are small and positive"
)]
const fn syscall_number(call: libc::c_long) -> u32 {
    call as u32
}

#[cfg(test)]
mod tests;
