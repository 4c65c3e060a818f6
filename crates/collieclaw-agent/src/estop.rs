//! The emergency stop: a file in the home. While it is there no tool runs, in any process of that home (C11).

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

/// Whether tools are stopped. What can't be looked at counts as stopped.
#[must_use]
pub fn is_set(home: &AgentHome) -> bool {
    match home.estop().symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound || !home.folder().is_dir(),
    }
}

/// Stops every tool.
///
/// # Errors
/// When the file can't be made.
pub fn set(home: &AgentHome) -> io::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.estop());
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        // That it is there is what counts, for every process, at once; that it outlives a power cut comes second, and
        // whoever can't be promised that has stopped everything all the same.
        Ok(_) => {
            let _ = File::open(home.folder()).and_then(|folder| folder.sync_all());
            Ok(())
        }
    }
}

/// Lets tools run again. Whether they were stopped.
///
/// # Errors
/// When the file can't be removed.
pub fn clear(home: &AgentHome) -> io::Result<bool> {
    // Whoever runs something has to have seen it.
    let since = home.estop().symlink_metadata().and_then(|stop| stop.modified());
    if let Some(age) = since.ok().and_then(|since| since.elapsed().ok()) {
        std::thread::sleep(CLEAR_DELAY.saturating_sub(age));
    }
    let removed = match std::fs::remove_file(home.estop()) {
        // Whoever made a folder there meant the same. One that holds something is not ours to empty.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => std::fs::remove_dir(home.estop()),
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
        Ok(()) => File::open(home.folder())?.sync_all().map(|()| true),
    }
}

/// Raises a flag soon after tools are stopped. It ends when this is dropped.
///
/// It looks, every 20 ms, and only while a tool runs: that works with every file system, and a notice of the
/// kernel's costs each call the milliseconds that it takes to be given back.
#[must_use = "dropped, nobody watches any more"]
pub struct EstopWatch {
    stop_signal: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// A stop must end what runs within a tenth of a second, and ending takes some of it.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// After this every watch has looked, also on a busy machine.
const CLEAR_DELAY: Duration = Duration::from_millis(100);

impl EstopWatch {
    /// Begins to watch. A stop that is there already raises the flag before this returns.
    ///
    /// # Errors
    /// When the machine gives no descriptor or no thread: then nothing may run.
    pub fn start(home: &AgentHome, cancel: &CancelFlag) -> io::Result<Self> {
        if is_set(home) {
            cancel.raise(CancelReason::Estop);
        }
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (home, cancel, end) = (home.clone(), cancel.clone(), Arc::clone(&over));
        let thread = std::thread::Builder::new()
            .name("estop".to_owned())
            .spawn(move || watch_estop(&home, &cancel, &end))?;
        Ok(Self { stop_signal: over, thread: Some(thread) })
    }
}

fn watch_estop(home: &AgentHome, cancel: &CancelFlag, over: &OwnedFd) {
    loop {
        let mut waiting = [PollFd::new(over, PollFlags::IN)];
        let unsure = poll(&mut waiting, Some(&POLL_INTERVAL)).is_err_and(|error| error != Errno::INTR);
        let [end] = &waiting;
        if !end.revents().is_empty() {
            return;
        }
        if unsure || is_set(home) {
            cancel.raise(CancelReason::Estop);
            return;
        }
    }
}

impl Drop for EstopWatch {
    fn drop(&mut self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&*self.stop_signal, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
