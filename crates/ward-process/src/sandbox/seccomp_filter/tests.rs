//! Runs the compiled filter in a small interpreter of the BPF operations that the filter uses.

use std::sync::LazyLock;

use super::*;

#[derive(Debug, PartialEq, Eq)]
enum FilterVerdict {
    Allowed,
    Refused(i32),
    Killed,
}

#[derive(Clone, Copy)]
struct SimulatedCall {
    architecture: u32,
    number: u32,
    arguments: [u64; 6],
}

const FOREIGN: u32 = 0x4000_0003;

fn call(number: libc::c_long, arguments: &[u64]) -> SimulatedCall {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    SimulatedCall { architecture: ARCHITECTURE, number: u32::try_from(number).unwrap(), arguments: all }
}

/// Returns the 32 bits of `struct seccomp_data` at an offset (little endian).
fn load(call: SimulatedCall, offset: u32) -> u32 {
    match offset {
        0 => call.number,
        4 => call.architecture,
        16.. => {
            let argument = call.arguments[usize::try_from((offset - 16) / 8).unwrap()];
            let half = if offset.is_multiple_of(8) { argument & 0xFFFF_FFFF } else { argument >> 32 };
            u32::try_from(half).unwrap()
        }
        other => panic!("load from {other}"),
    }
}

fn verdict(network: SandboxNetwork, call: SimulatedCall) -> FilterVerdict {
    interpret(&compile(network).unwrap(), call)
}

fn interpret(program: &[sock_filter], call: SimulatedCall) -> FilterVerdict {
    interpret_counting_steps(program, call).0
}

/// Returns the verdict and the number of executed instructions.
fn interpret_counting_steps(program: &[sock_filter], call: SimulatedCall) -> (FilterVerdict, usize) {
    let (mut at, mut accumulator) = (0, 0);
    for steps in 1.. {
        let sock_filter { code, jt, jf, k } = program[at].clone();
        at += 1;
        let mut branch = |taken: bool| at += usize::from(if taken { jt } else { jf });
        match u32::from(code) {
            0x20 => accumulator = load(call, k),
            0x54 => accumulator &= k,
            0x05 => at += usize::try_from(k).unwrap(),
            0x15 => branch(accumulator == k),
            0x25 => branch(accumulator > k),
            0x35 => branch(accumulator >= k),
            0x06 => {
                let verdict = match k & 0xFFFF_0000 {
                    0x7FFF_0000 => FilterVerdict::Allowed,
                    0x0005_0000 => FilterVerdict::Refused(i32::try_from(k & 0xFFFF).unwrap()),
                    0x8000_0000 => FilterVerdict::Killed,
                    other => panic!("unexpected action {other:#x}"),
                };
                return (verdict, steps);
            }
            other => panic!("unexpected operation {other:#x}"),
        }
    }
    unreachable!("every program ends in a return instruction")
}

fn check(call: SimulatedCall, expected: &FilterVerdict) {
    static PROGRAMS: LazyLock<[(SandboxNetwork, BpfProgram); 3]> = LazyLock::new(|| {
        [SandboxNetwork::Off, SandboxNetwork::Loopback, SandboxNetwork::On]
            .map(|network| (network, compile(network).unwrap()))
    });
    for (network, program) in &*PROGRAMS {
        assert_eq!(interpret(program, call), *expected, "{} {:?} {network:?}", call.number, call.arguments);
    }
}

#[test]
fn everyday_calls_are_allowed() {
    for number in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_openat,
        libc::SYS_execve,
        libc::SYS_mmap,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_renameat2,
        libc::SYS_landlock_restrict_self,
        libc::SYS_seccomp,
        libc::SYS_statx,
    ] {
        check(call(number, &[]), &FilterVerdict::Allowed);
    }
}

#[test]
fn the_whole_table_is_refused() {
    for number in EPERM_CALLS {
        check(call(*number, &[0, 0]), &FilterVerdict::Refused(libc::EPERM));
    }
    for number in ENOSYS_CALLS {
        check(call(*number, &[0, 0]), &FilterVerdict::Refused(libc::ENOSYS));
    }
}

#[test]
fn no_call_is_in_two_groups() {
    let with_conditions: Vec<_> = conditional_rules().unwrap().into_keys().collect();
    let mut all = [
        EPERM_CALLS,
        ENOSYS_CALLS,
        &with_conditions,
        &socket_rules(SandboxNetwork::On).unwrap().into_keys().collect::<Vec<_>>(),
    ]
    .concat();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn calls_of_another_architecture_kill_the_process() {
    for number in 0..500 {
        check(SimulatedCall { architecture: FOREIGN, ..call(number, &[]) }, &FilterVerdict::Killed);
    }
}

#[test]
fn calls_in_no_table_are_allowed_within_a_few_steps() {
    let program = compile(SandboxNetwork::Off).unwrap();
    let conditional: Vec<_> = [conditional_rules().unwrap(), socket_rules(SandboxNetwork::Off).unwrap()]
        .iter()
        .flat_map(SyscallRules::keys)
        .copied()
        .collect();
    let tables = [EPERM_CALLS, ENOSYS_CALLS, &conditional].concat();
    for number in (0..=i64::from(NEWEST_KNOWN)).filter(|number| !tables.contains(number)) {
        let (verdict, steps) = interpret_counting_steps(&program, call(number, &[u64::MAX; 6]));
        assert_eq!(verdict, FilterVerdict::Allowed, "{number}");
        assert!(steps < 30, "{number}: {steps} steps");
    }
}

#[test]
fn x32_calls_and_unknown_newer_calls_fail_with_enosys() {
    for number in
        [0x4000_0000, 0x4000_0000 | libc::SYS_ptrace, 0x4000_0000 + 521, 463, 467, 1_000, 0xFFFF_FFFF]
    {
        check(call(number, &[]), &FilterVerdict::Refused(libc::ENOSYS));
    }
}

#[test]
fn threads_and_forks_are_allowed_and_namespaces_and_siblings_are_not() {
    let thread =
        libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
    for flags in [thread, libc::SIGCHLD, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD] {
        check(call(libc::SYS_clone, &[u64::from(flags.cast_unsigned())]), &FilterVerdict::Allowed);
    }
    for flag in CLONE_FLAGS {
        let flags = u64::from((flag | libc::SIGCHLD).cast_unsigned());
        check(call(libc::SYS_clone, &[flags]), &FilterVerdict::Refused(libc::EPERM));
        check(call(libc::SYS_clone, &[flags | 1 << 40]), &FilterVerdict::Refused(libc::EPERM));
    }
}

#[test]
fn terminal_input_requests_are_refused_whatever_the_upper_bits() {
    check(call(libc::SYS_ioctl, &[0, libc::TCGETS]), &FilterVerdict::Allowed);
    for request in TERMINAL_REQUESTS {
        check(call(libc::SYS_ioctl, &[0, *request]), &FilterVerdict::Refused(libc::EPERM));
        check(call(libc::SYS_ioctl, &[0, *request | 1 << 32]), &FilterVerdict::Refused(libc::EPERM));
    }
}

#[test]
fn limits_and_priorities_can_be_changed_only_for_the_caller() {
    for number in OWN_PROCESS_ONLY {
        check(call(*number, &[0, 7]), &FilterVerdict::Allowed);
        check(call(*number, &[1234, 7]), &FilterVerdict::Refused(libc::EPERM));
    }
    check(call(libc::SYS_setpriority, &[0, 0, 10]), &FilterVerdict::Allowed);
    check(call(libc::SYS_setpriority, &[0, 1234, 10]), &FilterVerdict::Refused(libc::EPERM));
    check(call(libc::SYS_setpriority, &[2, 0, 10]), &FilterVerdict::Refused(libc::EPERM));
    check(call(libc::SYS_ioprio_set, &[1, 0, 10]), &FilterVerdict::Allowed);
    check(call(libc::SYS_ioprio_set, &[1, 1234, 10]), &FilterVerdict::Refused(libc::EPERM));
    check(call(libc::SYS_ioprio_set, &[3, 0, 10]), &FilterVerdict::Refused(libc::EPERM));
}

#[test]
fn setting_the_setuid_or_setgid_bit_is_refused() {
    let refused = FilterVerdict::Refused(libc::EPERM);
    let with = |index: u8, value: u64| {
        let mut arguments = [0; 6];
        arguments[usize::from(index)] = value;
        arguments
    };
    for (number, mode) in MODE_SETTING_CALLS {
        check(call(*number, &with(*mode, 0o1777)), &FilterVerdict::Allowed);
        for bits in [0o4755, 0o2755, 0o6000] {
            check(call(*number, &with(*mode, bits)), &refused);
            check(call(*number, &with(*mode, bits | 1 << 32)), &refused);
        }
    }
    for (number, flags, mode) in OPEN_CALLS {
        for (flag, bits, expected) in [
            (libc::O_CREAT | libc::O_WRONLY, 0o4755, &refused),
            (libc::O_TMPFILE | libc::O_RDWR, 0o2755, &refused),
            (libc::O_CREAT | libc::O_EXCL, 0o1777, &FilterVerdict::Allowed),
            (libc::O_RDONLY | libc::O_DIRECTORY, 0o7777, &FilterVerdict::Allowed),
        ] {
            let mut arguments = with(*mode, bits);
            arguments[usize::from(*flags)] = u64::from(flag.cast_unsigned());
            check(call(*number, &arguments), expected);
        }
    }
}

#[test]
fn personality_can_be_queried_but_not_changed() {
    check(call(libc::SYS_personality, &[0xFFFF_FFFF]), &FilterVerdict::Allowed);
    check(call(libc::SYS_personality, &[0]), &FilterVerdict::Allowed);
    check(call(libc::SYS_personality, &[0x0004_0000]), &FilterVerdict::Refused(libc::EPERM));
}

#[test]
fn only_socket_pairs_that_stay_connected_are_allowed() {
    let flags = u64::from((libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK).cast_unsigned());
    for kind in 0..16 {
        let stays_connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].contains(&kind);
        let expected =
            if stays_connected { FilterVerdict::Allowed } else { FilterVerdict::Refused(libc::EACCES) };
        let kind = u64::from(kind.cast_unsigned());
        for kind in [kind, kind | flags, kind | 1 << 32] {
            check(call(libc::SYS_socketpair, &[1, kind]), &expected);
            check(call(libc::SYS_socketpair, &[1 | 1 << 32, kind]), &expected);
        }
    }
    for family in (0..48).filter(|family| *family != libc::AF_UNIX) {
        let arguments = [u64::from(family.cast_unsigned()), 1];
        check(call(libc::SYS_socketpair, &arguments), &FilterVerdict::Refused(libc::EACCES));
    }
}

#[test]
fn socket_families_depend_on_the_network_setting() {
    let socket =
        |family: i32, protocol| call(libc::SYS_socket, &[u64::from(family.cast_unsigned()), 1, protocol]);
    let refused = FilterVerdict::Refused(libc::EACCES);
    for family in 0..48 {
        assert_eq!(verdict(SandboxNetwork::Off, socket(family, 0)), refused, "family {family}");
        let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].contains(&family);
        let expected = if internet { FilterVerdict::Allowed } else { FilterVerdict::Refused(libc::EACCES) };
        assert_eq!(verdict(SandboxNetwork::On, socket(family, 0)), expected, "family {family}");
    }
    assert_eq!(verdict(SandboxNetwork::On, socket(libc::AF_NETLINK, 9)), refused);
}
