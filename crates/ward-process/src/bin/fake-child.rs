//! A test double: a program that follows a script, mostly to get away from its supervisor.
//!
//! `fake-child 'fork 3 [ setsid; ignore term; sleep 60 ]; exit 0'`
//!
//! | word | what it does |
//! | --- | --- |
//! | `fork N [ … ]` | N children follow the inner script; the parent goes on at once |
//! | `daemon [ … ]` | double fork with `setsid` in between: the classic daemon |
//! | `tree D [ … ]` | a binary tree of depth D, whose leaves follow the inner script |
//! | `setsid`, `setpgid` | a session or a process group of its own |
//! | `ignore term` | ignores every signal that can be ignored |
//! | `sleep MS` | sleeps; in pieces, so that nothing wakes it early |
//! | `arrive` | appends `!` to its name, so that the test knows how far it has come |
//! | `stop` | stops itself with `SIGSTOP` |
//! | `rename NAME` | another name in `ps` |
//! | `close` | closes every descriptor |
//! | `exec N` | executes itself N times, then goes on |
//! | `bomb MS` | for so long, forks children that fork, as fast as it can |
//! | `hop N` | N times in a row, goes on as its own child and leaves |
//! | `kill-parent` | `SIGKILL` to its parent |
//! | `stop-parent` | `SIGSTOP` to its parent |
//! | `forget [ … ]` | executes itself with an empty environment and the inner script |
//! | `leave PATH` | moves itself to the cgroup of this folder, as a service manager does on request |
//! | `trace PID` | becomes the tracer of a process, and never asks what becomes of it |
//! | `print N` | writes N bytes to standard output |
//! | `touch PATH` | creates a file |
//! | `await PATH` | waits until there is such a file |
//! | `stray N` | N children that leave at once and are children of its own parent |
//! | `stop-recorder` | `SIGSTOP` to the recorders among its parent's children |
//! | `exit N` | leaves with this code |
#![expect(unsafe_code, reason = "a test double that forks as C programs do")]
#![expect(clippy::panic, reason = "a wrong script is a wrong test")]

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use std::time::{Duration, Instant};

fn main() {
    let script = std::env::args().nth(1).unwrap_or_default();
    let words: Vec<&str> = script.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    run_script(&words);
}

fn run_script(mut words: &[&str]) {
    while let Some((word, rest)) = words.split_first() {
        words = step(word, rest);
    }
}

/// Does one step and returns what is left of the script.
fn step<'a, 'w>(word: &str, rest: &'a [&'w str]) -> &'a [&'w str] {
    match word {
        "fork" => {
            let (count, rest) = number(rest);
            let (inner, rest) = block(rest);
            for _ in 0..count {
                child(|| run_script(inner));
            }
            rest
        }
        "daemon" => {
            let (inner, rest) = block(rest);
            let middle = child(|| {
                new_session();
                child(|| run_script(inner));
            });
            // SAFETY: waits for a child of ours; no status is asked for.
            unsafe { libc::waitpid(middle, std::ptr::null_mut(), 0) };
            rest
        }
        "tree" => {
            let (depth, rest) = number(rest);
            let (inner, rest) = block(rest);
            tree(depth, inner);
            rest
        }
        "sleep" => {
            let (milliseconds, rest) = number(rest);
            std::thread::sleep(Duration::from_millis(milliseconds));
            rest
        }
        "bomb" => {
            let (milliseconds, rest) = number(rest);
            bomb(Duration::from_millis(milliseconds));
            rest
        }
        "hop" => {
            let (count, rest) = number(rest);
            (0..count).for_each(|_| fork_and_continue());
            rest
        }
        "exec" => {
            let (count, rest) = number(rest);
            if count > 0 {
                execute_self(&format!("exec {} {}", count - 1, rest.join(" ")), EnvironmentChoice::Kept);
            }
            rest
        }
        "forget" => {
            let (inner, _) = block(rest);
            execute_self(&inner.join(" "), EnvironmentChoice::Forgotten)
        }
        "print" => {
            let (count, rest) = number(rest);
            print(count);
            rest
        }
        "exit" => exit(number(rest).0.try_into().unwrap_or(1)),
        "trace" => {
            let (pid, rest) = number(rest);
            // SAFETY: no memory is passed.
            let traces = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) } == 0;
            assert!(traces, "trace {pid}: {}", std::io::Error::last_os_error());
            rest
        }
        "stray" => {
            let (count, rest) = number(rest);
            (0..count).for_each(|_| fork_sibling());
            rest
        }
        "ignore" | "rename" | "touch" | "leave" | "await" => {
            let (argument, rest) = rest.split_first().unwrap_or_else(|| panic!("{word} what?"));
            match word {
                "ignore" => ignore_signals(),
                "rename" => rename(argument),
                "leave" => {
                    // 0 is whoever writes.
                    let done = std::fs::write(format!("{argument}/cgroup.procs"), "0");
                    done.unwrap_or_else(|error| panic!("{argument}: {error}"));
                }
                "await" => {
                    while !std::path::Path::new(argument).exists() {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
                _ => std::fs::write(argument, "").unwrap_or_else(|error| panic!("{argument}: {error}")),
            }
            rest
        }
        "arrive" => {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
            rename(&format!("{:.14}!", name.trim_end()));
            rest
        }
        _ => {
            run_simple_step(word);
            rest
        }
    }
}

fn run_simple_step(word: &str) {
    // SAFETY: none of these takes memory; each acts on this process or its parent.
    unsafe {
        match word {
            "setsid" => _ = libc::setsid(),
            "setpgid" => _ = libc::setpgid(0, 0),
            "stop" => _ = libc::raise(libc::SIGSTOP),
            "close" => _ = libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0),
            "stop-recorder" => stop_recorders(),
            "kill-parent" => _ = libc::kill(libc::getppid(), libc::SIGKILL),
            "stop-parent" => _ = libc::kill(libc::getppid(), libc::SIGSTOP),
            other => panic!("unknown word `{other}`"),
        }
    }
}

fn number<'a, 'w>(words: &'a [&'w str]) -> (u64, &'a [&'w str]) {
    let (first, rest) = words.split_first().unwrap_or_else(|| panic!("a number is missing"));
    (first.parse().unwrap_or_else(|_| panic!("`{first}` is no number")), rest)
}

/// What stands between the first bracket and its partner, and what comes after.
fn block<'a, 'w>(words: &'a [&'w str]) -> (&'a [&'w str], &'a [&'w str]) {
    let mut depth = 0;
    for (index, word) in words.iter().enumerate() {
        match *word {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (words.get(1..index).unwrap_or_default(), words.get(index + 1..).unwrap_or_default());
        }
    }
    panic!("a bracket is missing")
}

/// A child that lives `life` and leaves.
fn child(life: impl FnOnce()) -> i32 {
    // SAFETY: this program has one thread, so the child is a whole process.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        life();
        exit(0);
    }
    pid
}

/// A child of our parent that leaves at once; nobody told the parent.
fn fork_sibling() {
    let flags = u64::from((libc::CLONE_PARENT | libc::SIGCHLD).cast_unsigned());
    // SAFETY: this program has one thread; without a new stack the child gets a copy of ours.
    if unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } == 0 {
        exit(0);
    }
}

fn stop_recorders() {
    // SAFETY: takes no memory.
    let parent = unsafe { libc::getppid() };
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let all = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    for pid in all.collect::<Vec<_>>().join(" ").split_whitespace() {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name == "ward-recorder\n" {
            // SAFETY: kill takes two numbers.
            unsafe { libc::kill(pid.parse().unwrap_or(0), libc::SIGSTOP) };
        }
    }
}

fn tree(depth: u64, leaf: &[&str]) {
    if depth == 0 {
        return run_script(leaf);
    }
    child(|| tree(depth - 1, leaf));
    child(|| tree(depth - 1, leaf));
    // An inner node lives as long as any of its children.
    // SAFETY: waits for children of ours; no status is asked for.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// The children fork in turn; each generation's parents go on, too.
fn bomb(length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        // SAFETY: this program has one thread; parent and child do the same.
        if unsafe { libc::fork() } < 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The child goes on in place of its parent, under a number that nobody knows yet.
fn fork_and_continue() {
    // SAFETY: this program has one thread, so the child is a whole process.
    if unsafe { libc::fork() } > 0 {
        exit(0);
    }
}

fn new_session() {
    // SAFETY: takes no memory.
    unsafe { libc::setsid() };
}

fn ignore_signals() {
    for signal in 1..32 {
        // SAFETY: SIG_IGN runs no code of ours; a signal that can't be ignored is refused.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: as above; children must still be waited for.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

fn rename(name: &str) {
    let name = std::ffi::CString::new(name).unwrap_or_default();
    // SAFETY: the kernel copies at most 16 bytes of a terminated text.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

#[derive(Clone, Copy)]
enum EnvironmentChoice {
    Kept,
    Forgotten,
}

fn execute_self(script: &str, environment: EnvironmentChoice) -> ! {
    let mut command = Command::new("/proc/self/exe");
    command.arg(script);
    if let EnvironmentChoice::Forgotten = environment {
        command.env_clear();
    }
    let error = command.exec();
    panic!("exec: {error}")
}

fn print(count: u64) {
    let mut left = count;
    let line = [b'x'; 4096];
    let mut stdout = std::io::stdout().lock();
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(line.len());
        stdout.write_all(line.get(..piece).unwrap_or_default()).unwrap_or_else(|_| exit(1));
        left -= piece as u64;
    }
}
