//! The methods that ask a program to end. They are stored in the session's handle, so that they survive the daemon.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use shepherd_util::SessionId;
use ward_process::{
    Containment, ProcessSpec, ProcessTree, StopCommand, StopLadder, Supervisor, TreeId, TreeLifetime,
    UserIdentity,
};

mod control_socket;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopMethod {
    /// Sends `SIGTERM` to every process of the tree.
    Signal,
    /// Runs a command of the program itself.
    Run(StopCommand),
    /// Presses the power button of a virtual machine.
    PowerDown { socket: PathBuf },
    /// Tells the monitor of a virtual machine to quit.
    QuitMachine { socket: PathBuf },
    /// Tells a media player to quit.
    QuitPlayer { socket: PathBuf },
}

/// A stop request that can be slow, and is therefore made on its own thread.
pub(crate) struct SlowStopRequest {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) session_id: SessionId,
    /// The identity of the tree, which a stop command gets as well.
    pub(crate) identity: Option<UserIdentity>,
    /// The user id that the process at the control socket must have.
    pub(crate) user: u32,
    pub(crate) method: StopMethod,
    /// An eventfd that is readable when the session is over.
    pub(crate) session_over: Arc<OwnedFd>,
    pub(crate) timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StopMethodError {
    #[error("could not reach the program at its control socket")]
    Socket(#[from] io::Error),
    #[error("the process at the control socket is not the program")]
    WrongPeer,
    #[error("the program refused the request: `{0}`")]
    Refused(String),
    #[error("could not run the stop command")]
    Command(#[from] ward_process::SpawnError),
}

impl SlowStopRequest {
    /// Makes the request. Success doesn't mean that the program will end.
    pub(crate) fn send(self) -> Result<(), StopMethodError> {
        match &self.method {
            // The worker sends signals itself.
            StopMethod::Signal => Ok(()),
            StopMethod::Run(command) => self.run_command(command),
            StopMethod::PowerDown { socket } => {
                control_socket::send_monitor_command(socket, self.user, self.timeout, "system_powerdown")
            }
            StopMethod::QuitMachine { socket } => {
                control_socket::send_monitor_command(socket, self.user, self.timeout, "quit")
            }
            StopMethod::QuitPlayer { socket } => control_socket::quit_player(socket, self.user, self.timeout),
        }
    }

    /// Runs a stop command in its own tree. The command is no more trusted than the program, so it runs as the same
    /// user. It ends with the session at the latest, so that it can't end the next session.
    fn run_command(&self, command: &StopCommand) -> Result<(), StopMethodError> {
        let mut spec = ProcessSpec::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            spec = spec.env(name, value);
        }
        if let Some(identity) = &self.identity {
            spec = spec.identity(identity.clone());
        }
        let spec = spec.lifetime(match self.supervisor.containment() {
            Containment::ProcessGroup => TreeLifetime::Independent,
            Containment::Cgroup | Containment::PidNamespace | Containment::Subreaper => {
                TreeLifetime::DiesWithSupervisor
            }
        });
        let mut tree = self.supervisor.spawn(self.command_id()?, spec)?;
        self.wait_for_command(&mut tree)?;
        let _ = self.supervisor.stop(&mut tree, StopLadder::force());
        Ok(())
    }

    /// Waits until the command has ended, the session is over, or the timeout has passed.
    fn wait_for_command(&self, command: &mut ProcessTree) -> io::Result<()> {
        let deadline = Instant::now().checked_add(self.timeout);
        while command.poll_ended()?.is_none() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [
                PollFd::from_borrowed_fd(command.readiness_fd(), PollFlags::IN),
                PollFd::new(&self.session_over, PollFlags::IN),
            ];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [_, over] = fds;
            if !over.revents().is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes an id that neither a session nor another stop command of this session has.
    fn command_id(&self) -> Result<TreeId, StopMethodError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("stop-{}-{now:x}", self.session_id).parse().map_err(|error| io::Error::other(error).into())
    }
}
