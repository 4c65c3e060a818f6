//! Programs that run outside of any session and would take over what a session starts.
//!
//! They are known by their names, which any program can change: this is for those who forgot to end one, and keeps
//! nobody from hiding one.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Whether this user runs a program of this name that is part of no session.
pub(crate) fn is_running(name: &str, user: u32) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path()).any(|process| {
        let is_of = fs::metadata(&process).is_ok_and(|process| process.uid() == user);
        let is_called =
            || fs::read_to_string(process.join("comm")).is_ok_and(|known| known.trim_end() == name);
        // One without an environment has ended, and waits for its parent to notice.
        let environment = || fs::read(process.join("environ")).ok().filter(|text| !text.is_empty());
        is_of && is_called() && environment().is_some_and(|environment| !has_session_marker(&environment))
    })
}

fn has_session_marker(environment: &[u8]) -> bool {
    let mark = format!("{}=", ward_process::MARKER);
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()))
}
