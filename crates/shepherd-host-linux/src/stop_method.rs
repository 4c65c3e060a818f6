//! Ways to ask a program to end, as data that outlives the daemon, and how each is carried out.

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

/// One way to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopMethod {
    /// `SIGTERM` to every member.
    Signal,
    /// A command of the program's own.
    Run(StopCommand),
    /// A machine's power button.
    PowerDown {
        /// Where its monitor listens.
        socket: PathBuf,
    },
    /// A machine's monitor is told to end it.
    QuitMachine {
        /// Where its monitor listens.
        socket: PathBuf,
    },
    /// A player is told to quit.
    QuitPlayer {
        /// Where it listens.
        socket: PathBuf,
    },
}

/// A request that may take its time, and so is made on a thread of its own.
pub(crate) struct SlowStopRequest {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) session_id: SessionId,
    /// Whom the tree runs as.
    pub(crate) identity: Option<UserIdentity>,
    /// As which user it must answer.
    pub(crate) user: u32,
    pub(crate) method: StopMethod,
    /// Readable when the session is over.
    pub(crate) session_over: Arc<OwnedFd>,
    /// Nobody waits for it longer.
    pub(crate) timeout: Duration,
}

/// Why a request was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StopMethodError {
    #[error("nobody listens who could be asked")]
    Socket(#[from] io::Error),
    #[error("whoever listens at the control socket is not the program")]
    WrongPeer,
    #[error("the answer was `{0}`")]
    Refused(String),
    #[error("the command that was to end it could not be run")]
    Command(#[from] ward_process::SpawnError),
}

impl SlowStopRequest {
    /// Makes the request. That it was made does not mean that anything comes of it.
    pub(crate) fn send(self) -> Result<(), StopMethodError> {
        match &self.method {
            // Signals are the worker's own, without a thread.
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

    /// The command is no more trusted than the program: it runs as its user, in a tree of its own, and not longer
    /// than the session, so that it can't end the next one.
    fn run_command(&self, command: &StopCommand) -> Result<(), StopMethodError> {
        let mut order = ProcessSpec::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            order = order.env(name, value);
        }
        if let Some(identity) = &self.identity {
            order = order.identity(identity.clone());
        }
        let order = order.lifetime(match self.supervisor.containment() {
            Containment::ProcessGroup => TreeLifetime::Independent,
            Containment::Cgroup | Containment::PidNamespace | Containment::Subreaper => {
                TreeLifetime::DiesWithSupervisor
            }
        });
        let mut tree = self.supervisor.spawn(self.command_id()?, order)?;
        self.wait_for_command(&mut tree)?;
        let _ = self.supervisor.stop(&mut tree, StopLadder::force());
        Ok(())
    }

    /// Until the command has ended, the session is over, or nobody waits any more.
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

    /// One that neither a session nor another command of this session has.
    fn command_id(&self) -> Result<TreeId, StopMethodError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("stop-{}-{now:x}", self.session_id).parse().map_err(|error| io::Error::other(error).into())
    }
}
