//! Generates the binary search for a call's number among the calls that are not always allowed.
//!
//! When a filter is installed, the kernel runs it once for every existing call to cache which calls are
//! always allowed. Every step of the search therefore adds to the start time of each program.

use seccompiler::{BpfProgram, sock_filter};

/// The result of the search. Numbers that are not in the table are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyscallAction {
    Errno(libc::c_int),
    /// The arguments decide; the program continues after the search.
    CheckArguments,
}

/// Largest number of entries that are compared one after the other instead of being split further.
const LINEAR_SEARCH_LENGTH: usize = 8;

/// Builds a binary search over a sorted table. At run time the call's number is in the accumulator.
pub(super) fn build_search(table: &[(u32, SyscallAction)]) -> BpfProgram {
    subtree(table, 0)
}

/// Builds the search over a part of the table; `after` instructions of the same search follow it.
fn subtree(table: &[(u32, SyscallAction)], after: usize) -> BpfProgram {
    let (left, right) = table.split_at(table.len() / 2);
    let Some((middle, _)) = right.first().filter(|_| table.len() > LINEAR_SEARCH_LENGTH) else {
        return linear_search(table, after);
    };
    let right = subtree(right, after);
    let mut left = subtree(left, after + right.len());
    let mut program = vec![skip_unless(libc::BPF_JGE, *middle), jump_over(left.len())];
    program.append(&mut left);
    program.extend(right);
    program
}

fn linear_search(table: &[(u32, SyscallAction)], after: usize) -> BpfProgram {
    let mut program = BpfProgram::with_capacity(2 * table.len() + 1);
    for (index, (number, action)) in table.iter().enumerate() {
        let rest = 2 * (table.len() - index - 1) + 1;
        program.push(skip_unless(libc::BPF_JEQ, *number));
        program.push(match action {
            SyscallAction::Errno(errno) => refuse(*errno),
            SyscallAction::CheckArguments => jump_over(rest + after),
        });
    }
    program.push(allow());
    program
}

/// Skips the next instruction unless the comparison is true.
pub(super) fn skip_unless(comparison: u32, number: u32) -> sock_filter {
    let code = opcode(libc::BPF_JMP | comparison | libc::BPF_K);
    sock_filter { code, jt: 0, jf: 1, k: number }
}

/// Skips a number of instructions.
pub(super) fn jump_over(instructions: usize) -> sock_filter {
    // The number always fits: a filter has at most 4096 instructions.
    statement(libc::BPF_JMP | libc::BPF_JA, u32::try_from(instructions).unwrap_or(u32::MAX))
}

/// Loads 32 bits of `struct seccomp_data` into the accumulator.
pub(super) fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

pub(super) fn refuse(errno: libc::c_int) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned())
}

pub(super) fn kill() -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS)
}

pub(super) fn allow() -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW)
}

fn statement(code: u32, value: u32) -> sock_filter {
    sock_filter { code: opcode(code), jt: 0, jf: 0, k: value }
}

#[expect(clippy::cast_possible_truncation, reason = "operation codes have 16 bits, libc's constants 32")]
const fn opcode(code: u32) -> u16 {
    code as u16
}
