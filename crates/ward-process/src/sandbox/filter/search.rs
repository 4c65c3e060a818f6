//! The search for a call's number among those that are not simply allowed.
//!
//! The kernel runs a filter once for each call there is when it is installed, so that every step on
//! the way to an "allowed" is felt at each start of a program.

use seccompiler::{BpfProgram, sock_filter};

/// What the search ends in; numbers that are not in the table are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Errno(libc::c_int),
    /// The arguments matter: go on behind the search.
    Look,
}

/// Numbers compared one after the other at the end of a search.
const LEAF: usize = 8;

/// Searches by halves. `table` is sorted; the number is in the accumulator.
pub(super) fn among(table: &[(u32, Answer)]) -> BpfProgram {
    subtree(table, 0)
}

/// Behind it come `after` instructions of the same search.
fn subtree(table: &[(u32, Answer)], after: usize) -> BpfProgram {
    let (left, right) = table.split_at(table.len() / 2);
    let Some((middle, _)) = right.first().filter(|_| table.len() > LEAF) else {
        return leaf(table, after);
    };
    let right = subtree(right, after);
    let mut left = subtree(left, after + right.len());
    let mut program = vec![unless(libc::BPF_JGE, *middle), go_on(left.len())];
    program.append(&mut left);
    program.extend(right);
    program
}

fn leaf(table: &[(u32, Answer)], after: usize) -> BpfProgram {
    let mut program = BpfProgram::with_capacity(2 * table.len() + 1);
    for (index, (number, answer)) in table.iter().enumerate() {
        let behind = 2 * (table.len() - index - 1) + 1;
        program.push(unless(libc::BPF_JEQ, *number));
        program.push(match answer {
            Answer::Errno(errno) => refuse(*errno),
            Answer::Look => go_on(behind + after),
        });
    }
    program.push(allow());
    program
}

/// Passes over the next instruction unless the comparison holds.
pub(super) fn unless(comparison: u32, number: u32) -> sock_filter {
    let code = narrow(libc::BPF_JMP | comparison | libc::BPF_K);
    sock_filter { code, jt: 0, jf: 1, k: number }
}

/// Passes over so many instructions.
pub(super) fn go_on(instructions: usize) -> sock_filter {
    // A filter has at most 4096 instructions.
    statement(libc::BPF_JMP | libc::BPF_JA, u32::try_from(instructions).unwrap_or(u32::MAX))
}

/// Takes 32 bits of `struct seccomp_data` into the accumulator.
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
    sock_filter { code: narrow(code), jt: 0, jf: 0, k: value }
}

#[expect(clippy::cast_possible_truncation, reason = "operation codes have 16 bits, libc's constants 32")]
const fn narrow(code: u32) -> u16 {
    code as u16
}
