//! A test double that follows a script, mostly to escape from its supervisor.
//!
//! `fake-child 'fork 3 [ setsid; ignore term; sleep 60 ]; exit 0'`
//!
//! | word | effect |
//! | --- | --- |
//! | `fork N [ … ]` | forks N children that follow the inner script, and continues at once |
//! | `daemon [ … ]` | forks twice with `setsid` in between, like a classic daemon |
//! | `tree D [ … ]` | forks a binary tree of depth D whose leaves follow the inner script |
//! | `setsid`, `setpgid` | starts a new session or a new process group |
//! | `ignore term` | ignores every signal that can be ignored |
//! | `sleep MS` | sleeps; signals that are handled or ignored don't end the sleep |
//! | `arrive` | appends `!` to its name, so that the test sees how far the script has come |
//! | `stop` | stops itself with `SIGSTOP` |
//! | `rename NAME` | changes its name in `ps` |
//! | `close` | closes every descriptor |
//! | `end-first-thread` | continues the script in another thread and ends the first one |
//! | `exec N` | executes itself N times, then continues |
//! | `bomb MS` | forks children that fork too, as fast as possible, for this time |
//! | `hop N` | N times in a row, forks a child that continues the script, and exits |
//! | `kill-parent` | sends `SIGKILL` to its parent |
//! | `stop-parent` | sends `SIGSTOP` to its parent |
//! | `forget [ … ]` | executes itself with an empty environment and the inner script |
//! | `leave PATH` | moves itself to the cgroup of this folder, as a service manager does on request |
//! | `trace PID` | becomes the tracer of a process and never waits for it |
//! | `print N` | writes N bytes to standard output |
//! | `touch PATH` | creates a file |
//! | `await PATH` | waits until a file exists |
//! | `stray N` | forks N children of its own parent (`CLONE_PARENT`), which exit at once |
//! | `stop-recorder` | sends `SIGSTOP` to the recorders among its parent's children |
//! | `exit N` | exits with this code |
#![expect(unsafe_code, reason = "a test double that forks as C programs do")]
#![expect(clippy::panic, reason = "an invalid script is an error in the test")]

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

/// Runs one step and returns the rest of the script.
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
            // SAFETY: waits for our own child, and a null status pointer is allowed.
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
        "end-first-thread" => end_first_thread(rest),
        "exit" => exit(number(rest).0.try_into().unwrap_or(1)),
        "trace" => {
            let (pid, rest) = number(rest);
            // SAFETY: the call accesses no memory of ours.
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
            let (argument, rest) = rest.split_first().unwrap_or_else(|| panic!("`{word}` needs an argument"));
            match word {
                "ignore" => ignore_signals(),
                "rename" => rename(argument),
                "leave" => {
                    // The pid 0 stands for the writing process itself.
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
    // SAFETY: none of these calls accesses memory; each acts on this process or its parent.
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
    (first.parse().unwrap_or_else(|_| panic!("`{first}` is not a number")), rest)
}

/// Returns the words between the first bracket and its partner, and the words after it.
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

/// Forks a child that runs `child_main` and exits.
fn child(child_main: impl FnOnce()) -> i32 {
    // SAFETY: this program has one thread, so the child can run any code.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child_main();
        exit(0);
    }
    pid
}

/// Forks a child of our parent, which exits at once. The parent doesn't know about it.
fn fork_sibling() {
    let flags = u64::from((libc::CLONE_PARENT | libc::SIGCHLD).cast_unsigned());
    // SAFETY: this program has one thread; without a new stack the child gets a copy of ours.
    if unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } == 0 {
        exit(0);
    }
}

fn stop_recorders() {
    // SAFETY: the call accesses no memory.
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
    // SAFETY: waits for our own children, and a null status pointer is allowed.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// Forks as fast as possible; parents and children all keep forking.
fn bomb(duration: Duration) {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        // SAFETY: this program has one thread, so the child can run any code.
        if unsafe { libc::fork() } < 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Forks a child that continues in place of its parent, under a pid that the supervisor doesn't know yet.
fn fork_and_continue() {
    // SAFETY: this program has one thread, so the child can run any code.
    if unsafe { libc::fork() } > 0 {
        exit(0);
    }
}

/// Continues the script in another thread and ends the calling one. If that is the first, the process looks like a
/// zombie.
fn end_first_thread(rest: &[&str]) -> ! {
    let rest = rest.join(" ");
    std::thread::spawn(move || {
        run_script(&rest.split(' ').collect::<Vec<_>>());
        exit(0);
    });
    loop {
        // SAFETY: the call ends this thread, whose stack nobody else uses.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

fn new_session() {
    // SAFETY: the call accesses no memory.
    unsafe { libc::setsid() };
}

fn ignore_signals() {
    for signal in 1..32 {
        // SAFETY: SIG_IGN runs no code of ours, and the call fails for a signal that can't be ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // If SIGCHLD were ignored, children would vanish without being waited for.
    // SAFETY: SIG_DFL runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

fn rename(name: &str) {
    let name = std::ffi::CString::new(name).unwrap_or_default();
    // SAFETY: the kernel copies at most 16 bytes of a NUL-terminated text.
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
