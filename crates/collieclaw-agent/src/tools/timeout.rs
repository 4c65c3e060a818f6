//! Runs work that may block on a disk or an unreachable file server. Such a wait can't be interrupted, so the
//! work runs on its own thread, which is left behind at the timeout or when the call is cancelled.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use collieclaw_providers::net::{CancellableDeadline, WaitError};

use super::{ToolContext, ToolResult};
use crate::security::{FileAccess, FileError};

/// The maximum number of threads, including those left behind. More would only wait for the same disk.
const MAX_THREADS: usize = 64;

static RUNNING_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Runs work with the time limit of a tool. The work gets the deadline, and checks it between its steps.
pub(super) fn run_with_timeout(
    context: &ToolContext<'_>,
    work: impl FnOnce(&CancellableDeadline) -> Result<ToolResult, WaitError> + Send + 'static,
) -> ToolResult {
    let time = context.bounds.tool_timeout;
    let Some(slot) = ThreadSlot::acquire() else {
        return ToolResult::failed("earlier calls are still waiting for a disk that doesn't respond");
    };
    let deadline = CancellableDeadline::new(context.cancel, time);
    let (sender, receiver) = mpsc::channel();
    let cancelled = sender.clone();
    // A failed send means that the receiver has gone on already.
    let _at_once = context.cancel.on_cancel(move || drop(cancelled.send(Err(WaitError::Cancelled))));
    let thread = thread::Builder::new().name("disk".to_owned()).spawn(move || {
        let done = deadline.remaining().and_then(|_| work(&deadline));
        drop(slot);
        drop(sender.send(done));
    });
    if let Err(error) = thread {
        return ToolResult::failed(format!("could not start a thread: {error}"));
    }
    match receiver.recv_timeout(time).unwrap_or(Err(WaitError::TimedOut)) {
        Ok(result) => result,
        Err(stopped) => stopped_result(stopped, time),
    }
}

/// Runs work on a file with the time limit of a tool. Errors start with the path as the model wrote it.
pub(super) fn run_with_files(
    context: &ToolContext<'_>,
    path: &str,
    work: impl FnOnce(FileAccess<'_>) -> Result<ToolResult, FileError> + Send + 'static,
) -> ToolResult {
    let workspace = match context.workspace.try_clone() {
        Ok(workspace) => workspace,
        Err(error) => return ToolResult::failed(format!("could not open the workspace: {error}")),
    };
    let (policy, path) = (context.policy.clone(), path.to_owned());
    run_with_timeout(context, move |deadline| {
        match work(workspace.access_under(&policy).with_time_limit(deadline)) {
            Err(FileError::Stopped(stopped)) => Err(stopped),
            Err(error) => Ok(ToolResult::failed(format!("`{path}` {error}"))),
            Ok(result) => Ok(result),
        }
    })
}

fn stopped_result(stopped: WaitError, time: Duration) -> ToolResult {
    match stopped {
        WaitError::Cancelled => ToolResult::cancelled(),
        WaitError::TimedOut => ToolResult::failed(format!(
            "the call took longer than {} s and was abandoned",
            time.as_secs_f64()
        ))
        .with_metadata("timed_out", true),
    }
}

/// The permission to start a thread.
struct ThreadSlot;

impl ThreadSlot {
    fn acquire() -> Option<Self> {
        let free = |taken| (taken < MAX_THREADS).then_some(taken + 1);
        RUNNING_THREADS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, free).ok().map(|_| Self)
    }
}

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        RUNNING_THREADS.fetch_sub(1, Ordering::SeqCst);
    }
}
