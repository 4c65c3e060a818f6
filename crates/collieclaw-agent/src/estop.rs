//! The emergency stop: a file in the home. As long as the file exists, no process that uses this home runs a
//! tool (C11).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::home::AgentHome;

/// Returns true if tools are stopped. A file that can't be inspected counts as a stop.
#[must_use]
pub fn is_set(home: &AgentHome) -> bool {
    match home.estop().symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound || !home.folder().is_dir(),
    }
}

/// Stops all tools.
///
/// # Errors
/// Fails if the file can't be created.
pub fn set(home: &AgentHome) -> io::Result<()> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.estop());
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        // Creating the file is enough: every process sees it at once. The sync only makes the stop survive a
        // power cut, so a failed sync is not an error.
        Ok(_) => {
            let _ = File::open(home.folder()).and_then(|folder| folder.sync_all());
            Ok(())
        }
    }
}

/// Lets tools run again. Returns true if they were stopped.
///
/// # Errors
/// Fails if the file can't be removed.
pub fn clear(home: &AgentHome) -> io::Result<bool> {
    // A stop has to last until every running watch has seen it.
    let since = home.estop().symlink_metadata().and_then(|stop| stop.modified());
    if let Some(age) = since.ok().and_then(|since| since.elapsed().ok()) {
        std::thread::sleep(CLEAR_DELAY.saturating_sub(age));
    }
    let removed = match std::fs::remove_file(home.estop()) {
        // A person may have stopped tools with a folder of this name. A folder that isn't empty is not ours
        // to remove.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => std::fs::remove_dir(home.estop()),
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
        Ok(()) => File::open(home.folder())?.sync_all().map(|()| true),
    }
}

/// Raises a cancel flag soon after the emergency stop is set. Dropping the watch ends it.
///
/// The watch polls every 20 ms, and only while a tool runs. Polling works on every file system, and closing
/// an inotify descriptor would add milliseconds to each call.
#[must_use = "dropping it ends the watch"]
pub struct EstopWatch {
    stop_signal: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// A stop must end running tools within 100 ms, and killing them takes part of that time.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// After this delay every watch has polled at least once, also on a busy machine.
const CLEAR_DELAY: Duration = Duration::from_millis(100);

impl EstopWatch {
    /// Starts to watch. If the stop is set already, the flag is raised before this function returns.
    ///
    /// # Errors
    /// Fails if the system can't provide a descriptor or a thread. In that case no tool may run.
    pub fn start(home: &AgentHome, cancel: &CancelFlag) -> io::Result<Self> {
        if is_set(home) {
            cancel.raise(CancelReason::Estop);
        }
        let stop_signal = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (home, cancel, signal) = (home.clone(), cancel.clone(), Arc::clone(&stop_signal));
        let thread = std::thread::Builder::new()
            .name("estop".to_owned())
            .spawn(move || watch_estop(&home, &cancel, &signal))?;
        Ok(Self { stop_signal, thread: Some(thread) })
    }
}

fn watch_estop(home: &AgentHome, cancel: &CancelFlag, stop_signal: &OwnedFd) {
    loop {
        let mut poll_fds = [PollFd::new(stop_signal, PollFlags::IN)];
        let poll_failed = poll(&mut poll_fds, Some(&POLL_INTERVAL)).is_err_and(|error| error != Errno::INTR);
        let [signal] = &poll_fds;
        if !signal.revents().is_empty() {
            return;
        }
        if poll_failed || is_set(home) {
            cancel.raise(CancelReason::Estop);
            return;
        }
    }
}

impl Drop for EstopWatch {
    fn drop(&mut self) {
        // The write fails only if the counter is full, and a full counter also wakes the thread.
        let _ = rustix::io::write(&*self.stop_signal, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
