//! A daemon of one's own in a private folder, which ends with us.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use shepherd_ipc::{Client, ClientOptions};
use shepherd_util::MAX_SOCKET_PATH;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::policy::STARTER;

/// How long a daemon may take to come up. It takes milliseconds, on a busy machine more.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long it may take to go: it ends what runs first, and the starter policy gives two seconds of grace.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// How often something is looked at that can't be waited for.
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct Household {
    folder: TempDir,
    daemon: Child,
    said: File,
    ended: bool,
}

impl Household {
    pub(super) fn begin() -> Result<Self, Failure> {
        let folder = private_folder()?;
        let policy = folder.path().join("policy.toml");
        std::fs::write(&policy, STARTER).map_err(Failure::file(&policy))?;
        let said = tempfile::tempfile().map_err(Failure::io("make a temporary file"))?;
        // What the daemon would leave behind becomes ours, so that we see it.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| Failure::io("watch for what is left")(error.into()))?;
        let program = std::env::current_exe().map_err(Failure::io("find our own program"))?;
        let daemon = Command::new(program)
            .arg("up")
            // Where nobody but root is, our own harmless programs may be root's.
            .arg("--allow-root")
            .args(["--end-with".into(), getpid().as_raw_nonzero().to_string()])
            .args(["--remove".as_ref(), folder.path()])
            .args(["--policy".as_ref(), policy.as_path()])
            .args(["--data-dir".into(), folder.path().join("data")])
            .args(["--socket".into(), socket_in(&folder)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone().map_err(Failure::io("keep what the daemon says"))?)
            .spawn()
            .map_err(Failure::io("start the daemon"))?;
        let mut household = Self { folder, daemon, said, ended: false };
        household.wait_until_up()?;
        Ok(household)
    }

    pub(super) fn client_options(&self) -> ClientOptions {
        ClientOptions::new(socket_in(&self.folder), "shepherd demo")
    }

    /// Where the audit log is.
    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.path().join("data").join("audit.log")
    }

    fn wait_until_up(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let Err(error) = Client::connect(&self.client_options()) else { return Ok(()) };
            let ended = self.daemon.try_wait().map_err(Failure::io("look after the daemon"))?;
            if ended.is_some() {
                self.ended = true;
                return Err(Failure::DaemonEnded { said: self.what_it_said() });
            }
            if Instant::now() > deadline {
                return Err(error.into());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn what_it_said(&mut self) -> String {
        let mut said = String::new();
        let read = self.said.rewind().and_then(|()| self.said.read_to_string(&mut said));
        read.map(|_| crate::text::clean_lines(said.trim_end())).unwrap_or_default()
    }

    /// Ends the daemon in order, and looks whether anything is left. Says how long it took.
    pub(super) fn end(mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        let in_order = self.stop();
        if !in_order {
            return Err(Failure::NotAsTold("the daemon did not end in time, and was killed".to_owned()));
        }
        match left_behind() {
            Left::Nothing => Ok(began.elapsed()),
            Left::Something => {
                Err(Failure::NotAsTold("something that the daemon started is still there".to_owned()))
            }
        }
    }

    /// Whether it went when it was asked to.
    fn stop(&mut self) -> bool {
        self.ended = true;
        // It is our child and not waited for, so that its number is nobody else's.
        let _ = kill_process(Pid::from_child(&self.daemon), Signal::TERM);
        let deadline = Instant::now() + END_PATIENCE;
        while Instant::now() < deadline {
            match self.daemon.try_wait() {
                Ok(Some(_)) => return true,
                Ok(None) => std::thread::sleep(LOOK),
                Err(_) => break,
            }
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        false
    }
}

impl Drop for Household {
    fn drop(&mut self) {
        if !self.ended {
            self.stop();
        }
    }
}

enum Left {
    Nothing,
    Something,
}

/// Whether any process that the daemon started outlived it: they would be our children now.
fn left_behind() -> Left {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return Left::Something,
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => return Left::Nothing,
        }
    }
}

/// Where a socket still has a path that the kernel can bind.
fn private_folder() -> Result<TempDir, Failure> {
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("shepherd-");
        builder
    };
    let folder = builder().tempdir().map_err(Failure::io("make a temporary folder"))?;
    if socket_in(&folder).as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok(folder);
    }
    builder().tempdir_in("/tmp").map_err(Failure::io("make a temporary folder"))
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("shepherd.sock")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::story::{OBEDIENT, STUBBORN};

    #[test]
    fn the_starter_policy_has_what_the_story_tells_of_and_ends_it_with_the_daemon() {
        let loaded = shepherd_config::load_bytes("starter.toml", STARTER.as_bytes()).unwrap();
        let ids: Vec<&str> = loaded.policy.entries().iter().map(|entry| entry.entry_id.as_str()).collect();
        assert!(ids.contains(&OBEDIENT) && ids.contains(&STUBBORN), "{ids:?}");
        assert_eq!(format!("{:?}", loaded.policy.rules().on_shutdown), "EndSessions");
    }
}
