//! Work that may wait for a disk, or for a file server that is gone: nobody can make the kernel give up such a wait, so
//! the work is done on a thread of its own, which is left behind when the time is over or somebody says stop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use collieclaw_providers::net::{CancellableDeadline, WaitError};

use super::{ToolContext, ToolResult};
use crate::security::{FileAccess, FileError};

/// So many threads may be left behind. More would only wait for the same disk.
const MAX_THREADS: usize = 64;

static RUNNING_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Does some work within the time of a tool. It is told how much there is: what takes many steps looks at it between them.
pub(super) fn run_with_timeout(
    context: &ToolContext<'_>,
    work: impl FnOnce(&CancellableDeadline) -> Result<ToolResult, WaitError> + Send + 'static,
) -> ToolResult {
    let time = context.bounds.tool_timeout;
    let Some(seat) = ThreadSlot::acquire() else {
        return ToolResult::failed("earlier calls still wait for a disk that doesn't answer");
    };
    let patience = CancellableDeadline::new(context.cancel, time);
    let (sender, receiver) = mpsc::channel();
    let cancelled = sender.clone();
    // Whoever listens no more has gone on already.
    let _at_once = context.cancel.on_cancel(move || drop(cancelled.send(Err(WaitError::Cancelled))));
    let thread = thread::Builder::new().name("disk".to_owned()).spawn(move || {
        let done = patience.remaining().and_then(|_| work(&patience));
        drop(seat);
        drop(sender.send(done));
    });
    if let Err(error) = thread {
        return ToolResult::failed(format!("there is no thread for it: {error}"));
    }
    match receiver.recv_timeout(time).unwrap_or(Err(WaitError::TimedOut)) {
        Ok(result) => result,
        Err(stopped) => stopped_result(stopped, time),
    }
}

/// The same for work on a file. Errors begin with the path as it was given.
pub(super) fn run_with_files(
    context: &ToolContext<'_>,
    path: &str,
    work: impl FnOnce(FileAccess<'_>) -> Result<ToolResult, FileError> + Send + 'static,
) -> ToolResult {
    let workspace = match context.workspace.try_clone() {
        Ok(workspace) => workspace,
        Err(error) => return ToolResult::failed(format!("the workspace can't be used: {error}")),
    };
    let (policy, path) = (context.policy.clone(), path.to_owned());
    run_with_timeout(context, move |patience| {
        match work(workspace.access_under(&policy).with_time_limit(patience)) {
            Err(FileError::Stopped(stopped)) => Err(stopped),
            Err(error) => Ok(ToolResult::failed(format!("`{path}` {error}"))),
            Ok(result) => Ok(result),
        }
    })
}

fn stopped_result(stopped: WaitError, time: Duration) -> ToolResult {
    match stopped {
        WaitError::Cancelled => ToolResult::cancelled(),
        WaitError::TimedOut => {
            ToolResult::failed(format!("it took longer than {} s and was given up", time.as_secs_f64()))
                .with_metadata("timed_out", true)
        }
    }
}

/// The right to have a thread.
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
