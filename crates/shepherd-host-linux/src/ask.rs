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
use ward_process::{Containment, Identity, Ladder, Lifetime, Order, StopCommand, Supervisor, Tree, TreeId};

mod socket;

/// One way to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
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
pub(crate) struct SlowAsk {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) session_id: SessionId,
    /// Whom the tree runs as.
    pub(crate) identity: Option<Identity>,
    /// As which user it must answer.
    pub(crate) user: u32,
    pub(crate) ask: Ask,
    /// Readable when the session is over.
    pub(crate) over: Arc<OwnedFd>,
    /// Nobody waits for it longer.
    pub(crate) patience: Duration,
}

/// Why a request was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("nobody listens who could be asked")]
    Socket(#[from] io::Error),
    #[error("whoever listens at the control socket is not the program")]
    Stranger,
    #[error("the answer was `{0}`")]
    Refused(String),
    #[error("the command that was to end it could not be run")]
    Command(#[from] ward_process::SpawnError),
}

impl SlowAsk {
    /// Makes the request. That it was made does not mean that anything comes of it.
    pub(crate) fn carry_out(self) -> Result<(), AskError> {
        match &self.ask {
            // Signals are the worker's own, without a thread.
            Ask::Signal => Ok(()),
            Ask::Run(command) => self.run(command),
            Ask::PowerDown { socket } => {
                socket::monitor(socket, self.user, self.patience, "system_powerdown")
            }
            Ask::QuitMachine { socket } => socket::monitor(socket, self.user, self.patience, "quit"),
            Ask::QuitPlayer { socket } => socket::player(socket, self.user, self.patience),
        }
    }

    /// The command is no more trusted than the program: it runs as its user, in a tree of its own, and not longer
    /// than the session, so that it can't end the next one.
    fn run(&self, command: &StopCommand) -> Result<(), AskError> {
        let mut order = Order::new(&command.program).args(command.args.iter().cloned());
        for (name, value) in &command.env {
            order = order.env(name, value);
        }
        if let Some(identity) = &self.identity {
            order = order.identity(identity.clone());
        }
        let order = order.lifetime(match self.supervisor.containment() {
            Containment::ProcessGroup => Lifetime::Independent,
            Containment::Cgroup | Containment::PidNamespace | Containment::Subreaper => {
                Lifetime::DiesWithSupervisor
            }
        });
        let mut tree = self.supervisor.spawn(self.command_id()?, order)?;
        self.wait(&mut tree)?;
        let _ = self.supervisor.stop(&mut tree, Ladder::force());
        Ok(())
    }

    /// Until the command has ended, the session is over, or nobody waits any more.
    fn wait(&self, command: &mut Tree) -> io::Result<()> {
        let deadline = Instant::now().checked_add(self.patience);
        while command.poll_ended()?.is_none() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [
                PollFd::from_borrowed_fd(command.readiness(), PollFlags::IN),
                PollFd::new(&self.over, PollFlags::IN),
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
    fn command_id(&self) -> Result<TreeId, AskError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("stop-{}-{now:x}", self.session_id).parse().map_err(|error| io::Error::other(error).into())
    }
}
