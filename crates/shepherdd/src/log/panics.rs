//! Ends the daemon if any of its threads panics. Without the thread that stops programs, the loop would go on and
//! programs would never end. A daemon that has ended is restarted and reattaches the session with its original end
//! (S9.1).

use std::any::Any;
use std::panic::PanicHookInfo;

use super::{FLUSH_TIMEOUT, LogQueue};

/// Installs a panic hook that logs the panic and ends the process.
pub(crate) fn abort_on_panic(log: LogQueue) {
    std::panic::set_hook(Box::new(move |panic| {
        log.enqueue(describe_panic(panic).as_bytes());
        log.flush(FLUSH_TIMEOUT);
        std::process::abort();
    }));
}

/// Formats a panic without the `tracing` subscriber, which may be the code that panicked.
fn describe_panic(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("(unnamed)");
    let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let message = panic_message(panic.payload());
    format!("the thread {name} panicked at {place}: {message}; the daemon exits and has to be restarted\n")
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::super::thread::LogThread;
    use super::*;

    /// The environment variable that makes the child process of this test panic.
    const PANICS: &str = "SHEPHERDD_TEST_PANICS";

    fn panic_in_a_thread() {
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
        abort_on_panic(LogThread::start(File::from(stderr)).unwrap());
        let worker = std::thread::Builder::new().name("host-worker".to_owned());
        // Caught, as a runtime does with its tasks: it ends the process all the same.
        let caught = || std::panic::catch_unwind(|| panic!("a fault of ours")).is_err();
        assert!(worker.spawn(caught).unwrap().join().unwrap());
    }

    // S9.1, S13.4
    #[test]
    fn a_thread_that_panics_ends_the_daemon_with_a_message() {
        if std::env::var_os(PANICS).is_some() {
            return panic_in_a_thread();
        }
        let this = std::thread::current().name().unwrap().to_owned();
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", &this, "--nocapture"]).env(PANICS, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(6), "{said}");
        assert!(said.contains("the thread host-worker panicked at "), "{said}");
        assert!(said.contains(": a fault of ours; the daemon exits"), "{said}");
    }
}
