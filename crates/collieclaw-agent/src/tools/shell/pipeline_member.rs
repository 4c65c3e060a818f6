//! A command of a running pipeline, and the exit of a command that could not be started.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use ward_process::{ProcessExit, ProcessTree, SpawnError};

/// The exit codes of a shell for a program that doesn't exist, and for one that can't be executed.
const EXIT_NOT_FOUND: ProcessExit = ProcessExit::Code(127);
const EXIT_NOT_EXECUTABLE: ProcessExit = ProcessExit::Code(126);

/// A command of a pipeline.
pub(super) struct PipelineMember {
    /// `None` if no process was started.
    pub(super) tree: Option<ProcessTree>,
    pub(super) exit: Option<ProcessExit>,
}

impl PipelineMember {
    /// Notes the exit of the program, if it has ended.
    pub(super) fn poll_exit(&mut self) -> std::io::Result<()> {
        if let (Some(tree), None) = (&mut self.tree, self.exit) {
            self.exit = match tree.program_exit()? {
                Some(exit) => Some(exit),
                None => tree.poll_ended()?.map(|ended| ended.exit),
            };
        }
        Ok(())
    }

    /// Returns the descriptors that become readable when the program ends.
    pub(super) fn wake_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let tree = self.tree.as_ref().filter(|_| self.exit.is_none());
        tree.into_iter().flat_map(|tree| [Some(tree.readiness_fd()), tree.program_exit_fd()]).flatten()
    }
}

/// Returns the exit code of a shell for a program that failed to start, or `None` if the program is not the
/// cause.
pub(super) fn spawn_failure_exit(error: &SpawnError) -> Option<ProcessExit> {
    let SpawnError::Start { source, .. } = error else { return None };
    match Errno::from_io_error(source)? {
        Errno::NOENT | Errno::NOTDIR => Some(EXIT_NOT_FOUND),
        Errno::ACCESS | Errno::NOEXEC | Errno::TOOBIG => Some(EXIT_NOT_EXECUTABLE),
        _ => None,
    }
}
