//! Work that may wait for a disk, or for a file server that is gone: nobody can make the kernel give up such a wait, so
//! the work is done on a thread of its own, which is left behind when the time is over or somebody says stop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Context, ToolResult};
use crate::net::{Patience, Stopped};
use crate::security::{Access, FileError};

/// So many threads may be left behind. More would only wait for the same disk.
const MOST_AT_ONCE: usize = 64;

static AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// Does some work within the time of a tool. It is told how much there is: what takes many steps looks at it between them.
pub(super) fn in_time(
    context: &Context<'_>,
    work: impl FnOnce(&Patience) -> Result<ToolResult, Stopped> + Send + 'static,
) -> ToolResult {
    let time = context.bounds.tool_timeout;
    let Some(seat) = Seat::take() else {
        return ToolResult::failed("earlier calls still wait for a disk that doesn't answer");
    };
    let patience = Patience::new(context.cancel, time);
    let (sender, receiver) = mpsc::channel();
    let cancelled = sender.clone();
    // Whoever listens no more has gone on already.
    let _at_once = context.cancel.at_once(move || drop(cancelled.send(Err(Stopped::Cancelled))));
    let thread = thread::Builder::new().name("disk".to_owned()).spawn(move || {
        let done = patience.left().and_then(|_| work(&patience));
        drop(seat);
        drop(sender.send(done));
    });
    if let Err(error) = thread {
        return ToolResult::failed(format!("there is no thread for it: {error}"));
    }
    match receiver.recv_timeout(time).unwrap_or(Err(Stopped::TimedOut)) {
        Ok(result) => result,
        Err(stopped) => ended(stopped, time),
    }
}

/// The same for work on a file. Errors begin with the path as it was given.
pub(super) fn with_files(
    context: &Context<'_>,
    path: &str,
    work: impl FnOnce(Access<'_>) -> Result<ToolResult, FileError> + Send + 'static,
) -> ToolResult {
    let workspace = match context.workspace.another() {
        Ok(workspace) => workspace,
        Err(error) => return ToolResult::failed(format!("the workspace can't be used: {error}")),
    };
    let (policy, path) = (context.policy.clone(), path.to_owned());
    in_time(context, move |patience| match work(workspace.under(&policy).within(patience)) {
        Err(FileError::Stopped(stopped)) => Err(stopped),
        Err(error) => Ok(ToolResult::failed(format!("`{path}` {error}"))),
        Ok(result) => Ok(result),
    })
}

fn ended(stopped: Stopped, time: Duration) -> ToolResult {
    match stopped {
        Stopped::Cancelled => ToolResult::cancelled(),
        Stopped::TimedOut => {
            ToolResult::failed(format!("it took longer than {} s and was given up", time.as_secs_f64()))
                .with("timed_out", true)
        }
    }
}

/// The right to have a thread.
struct Seat;

impl Seat {
    fn take() -> Option<Self> {
        let free = |taken| (taken < MOST_AT_ONCE).then_some(taken + 1);
        AT_ONCE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, free).ok().map(|_| Self)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        AT_ONCE.fetch_sub(1, Ordering::SeqCst);
    }
}
