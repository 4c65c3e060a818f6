//! Compiles the seccomp program, which allows every call except those in
//! [`denied_syscalls`](super::denied_syscalls). See `seccomp(2)`.

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

/// `AUDIT_ARCH_…` value of this architecture, as in `struct seccomp_data`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Offsets of the call's number and architecture in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE_OF_CALL: u32 = 4;

/// Returns the filter for this machine, compiled on first use.
pub(super) fn compiled(network: SandboxNetwork) -> Result<&'static [sock_filter], &'static BackendError> {
    static OFF: LazyLock<Result<BpfProgram, BackendError>> = LazyLock::new(|| compile(SandboxNetwork::Off));
    static LOOPBACK: LazyLock<Result<BpfProgram, BackendError>> =
        LazyLock::new(|| compile(SandboxNetwork::Loopback));
    static ON: LazyLock<Result<BpfProgram, BackendError>> = LazyLock::new(|| compile(SandboxNetwork::On));
    let program = match network {
        SandboxNetwork::Off => &OFF,
        SandboxNetwork::Loopback | SandboxNetwork::LoopbackWithListener { .. } => &LOOPBACK,
        SandboxNetwork::On => &ON,
    };
    program.as_ref().map(Vec::as_slice)
}

fn compile(network: SandboxNetwork) -> Result<BpfProgram, BackendError> {
    let groups = [(libc::EPERM, conditional_rules()?), (libc::EACCES, socket_rules(network)?)];
    let conditional = groups.iter().flat_map(|(_, rules)| rules.keys().copied());
    let mut program = architecture_check();
    program.append(&mut syscall_search::build_search(&syscall_table(conditional)));
    let mut argument_checks = BpfProgram::new();
    for (errno, rules) in groups {
        // Each group ends in "allow", which the next group replaces. No call is in two groups, so an earlier
        // "allow" inside of a group may be final.
        argument_checks.pop_if(|last| *last == allow());
        argument_checks.append(&mut compile_group(rules, errno)?);
    }
    program.append(&mut argument_checks);
    Ok(program)
}

/// Kills the process on calls of another architecture, because their numbers mean different calls. Numbers
/// with bit 30 set are x32 calls, which are other numbers for the calls in the table; they are above the
/// newest known number and fail with `ENOSYS`. See the caveats of `seccomp(2)`.
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

/// Returns all calls that are not always allowed, sorted by number.
fn syscall_table(conditional: impl Iterator<Item = libc::c_long>) -> Vec<(u32, SyscallAction)> {
    let refused = EPERM_CALLS.iter().map(|call| (syscall_number(*call), SyscallAction::Errno(libc::EPERM)));
    let absent = ENOSYS_CALLS.iter().map(|call| (syscall_number(*call), SyscallAction::Errno(libc::ENOSYS)));
    let conditional = conditional.map(|call| (syscall_number(call), SyscallAction::CheckArguments));
    let mut table: Vec<_> = refused.chain(absent).chain(conditional).collect();
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
    // Arguments (which, who): only PRIO_PROCESS (0) or IOPRIO_WHO_PROCESS (1), and only the caller (0).
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        let other_kind = SeccompRule::new(vec![compare_argument(0, SeccompCmpOp::Ne, process)?])?;
        let other_process = SeccompRule::new(vec![compare_argument(1, SeccompCmpOp::Ne, 0)?])?;
        rules.insert(call, vec![other_kind, other_process]);
    }
    // Querying (all ones) and the ordinary personality (0) are harmless. Others switch off protections such
    // as address space randomisation; see `personality(2)`.
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

/// Returns the rules for `socket` and `socketpair`. Unix sockets lead to the services of the machine (D-Bus,
/// container engines, the display), so they stay closed even if the network is on.
fn socket_rules(network: SandboxNetwork) -> Result<SyscallRules, BackendError> {
    let rules = match network {
        SandboxNetwork::Off => Vec::new(),
        SandboxNetwork::Loopback | SandboxNetwork::LoopbackWithListener { .. } => {
            let mut rules = other_family_rules()?;
            rules.append(&mut unusual_socket_rules()?);
            rules
        }
        SandboxNetwork::On => other_family_rules()?,
    };
    Ok(SyscallRules::from([(libc::SYS_socket, rules), (libc::SYS_socketpair, unsafe_socketpair_rules()?)]))
}

/// Returns rules that refuse sockets of other families than the internet protocols and `NETLINK_ROUTE`.
fn other_family_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let [ipv4, ipv6, netlink] =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| u64::from(family.cast_unsigned()));
    let other_family = vec![
        compare_argument(0, SeccompCmpOp::Ne, ipv4)?,
        compare_argument(0, SeccompCmpOp::Ne, ipv6)?,
        compare_argument(0, SeccompCmpOp::Ne, netlink)?,
    ];
    // Name resolution asks NETLINK_ROUTE (0) for the local addresses, so only that protocol is allowed.
    let other_netlink =
        vec![compare_argument(0, SeccompCmpOp::Eq, netlink)?, compare_argument(2, SeccompCmpOp::Ne, 0)?];
    Ok(vec![SeccompRule::new(other_family)?, SeccompRule::new(other_netlink)?])
}

/// Returns rules that refuse every internet socket except TCP and UDP. Rarely used protocols such as SCTP and
/// DCCP are a part of the kernel with many known bugs. Netlink sockets are raw (3) or datagram sockets.
fn unusual_socket_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let of_family = || compare_argument(0, SeccompCmpOp::Eq, u64::from(family.cast_unsigned()));
        // Types 1 (stream) and 2 (datagram) have neither bit 4 nor bit 8, and not both lower bits.
        for unusual_type in [bit_is_set(1, 4)?, bit_is_set(1, 8)?, bit_is_set(1, 3)?] {
            rules.push(SeccompRule::new(vec![of_family()?, unusual_type])?);
        }
        let mut other_protocol = vec![of_family()?];
        for protocol in [libc::IPPROTO_IP, libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
            other_protocol.push(compare_argument(2, SeccompCmpOp::Ne, u64::from(protocol.cast_unsigned()))?);
        }
        rules.push(SeccompRule::new(other_protocol)?);
    }
    Ok(rules)
}

/// Returns rules that refuse every `socketpair` except Unix stream (1) and seqpacket (5) sockets. Only these
/// stay connected to each other; a datagram socket of a pair could be connected to the path of a service.
/// Types 1 and 5 have the lowest of the four type bits set and neither bit 2 nor bit 8. Raw sockets are
/// refused too, because in the Unix family the kernel treats them as datagram sockets.
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

/// Compares the lower 32 bits of an argument. The kernel uses only these bits, so a program must not be able
/// to hide a value by setting upper bits.
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
