//! Finds programs outside of any session that would take over a program that a session starts.
//!
//! The search goes by the process name, which any program can change. It helps users who forgot to quit a program. A
//! user who hides a program isn't stopped.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Returns whether this user runs a program of this name outside of any session.
pub(crate) fn is_running(name: &str, user: u32) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path()).any(|process| {
        let has_user = fs::metadata(&process).is_ok_and(|process| process.uid() == user);
        let has_name =
            || fs::read_to_string(process.join("comm")).is_ok_and(|known| known.trim_end() == name);
        // A process without an environment is a zombie.
        let environment = || fs::read(process.join("environ")).ok().filter(|text| !text.is_empty());
        has_user && has_name() && environment().is_some_and(|environment| !has_session_marker(&environment))
    })
}

fn has_session_marker(environment: &[u8]) -> bool {
    let marker = format!("{}=", ward_process::MARKER);
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(marker.as_bytes()))
}
