//! A daemon of one's own in a private folder, which ends with us.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use shepherd_ipc::{BlockingClient, ClientOptions};
use shepherd_util::MAX_SOCKET_PATH;
use tempfile::TempDir;

use crate::error::ShepherdCliError;
use crate::policy::STARTER_POLICY;

/// How long a daemon may take to come up. It takes milliseconds, on a busy machine more.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it may take to go: it ends what runs first, and the starter policy gives two seconds of grace.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How often something is looked at that can't be waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct DemoDaemon {
    folder: TempDir,
    daemon: Child,
    log: File,
    ended: bool,
}

impl DemoDaemon {
    pub(super) fn start() -> Result<Self, ShepherdCliError> {
        let folder = private_folder()?;
        let policy = folder.path().join("policy.toml");
        std::fs::write(&policy, STARTER_POLICY).map_err(ShepherdCliError::file(&policy))?;
        let said = tempfile::tempfile().map_err(ShepherdCliError::io("make a temporary file"))?;
        // What the daemon would leave behind becomes ours, so that we see it.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| ShepherdCliError::io("watch for what is left")(error.into()))?;
        let program = std::env::current_exe().map_err(ShepherdCliError::io("find our own program"))?;
        let daemon = Command::new(program)
            .arg("up")
            // Where nobody but root is, our own harmless programs may be root's.
            .arg("--allow-root")
            .args(["--end-with".into(), getpid().as_raw_nonzero().to_string()])
            .args(["--remove".as_ref(), folder.path()])
            .args(["--policy".as_ref(), policy.as_path()])
            .args(["--data-dir".into(), folder.path().join("data")])
            .args(["--socket".into(), socket_path(&folder)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone().map_err(ShepherdCliError::io("keep what the daemon says"))?)
            .spawn()
            .map_err(ShepherdCliError::io("start the daemon"))?;
        let mut household = Self { folder, daemon, log: said, ended: false };
        household.wait_until_up()?;
        Ok(household)
    }

    pub(super) fn client_options(&self) -> ClientOptions {
        ClientOptions::new(socket_path(&self.folder), "shepherd demo")
    }

    /// Where the audit log is.
    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.path().join("data").join("audit.log")
    }

    fn wait_until_up(&mut self) -> Result<(), ShepherdCliError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let Err(error) = BlockingClient::connect(&self.client_options()) else { return Ok(()) };
            let ended = self.daemon.try_wait().map_err(ShepherdCliError::io("look after the daemon"))?;
            if ended.is_some() {
                self.ended = true;
                return Err(ShepherdCliError::DaemonEnded { said: self.read_log() });
            }
            if Instant::now() > deadline {
                return Err(error.into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn read_log(&mut self) -> String {
        let mut said = String::new();
        let read = self.log.rewind().and_then(|()| self.log.read_to_string(&mut said));
        read.map(|_| crate::text::escape_unsafe_lines(said.trim_end())).unwrap_or_default()
    }

    /// Ends the daemon in order, and looks whether anything is left. Says how long it took.
    pub(super) fn stop_and_check(mut self) -> Result<Duration, ShepherdCliError> {
        let began = Instant::now();
        let in_order = self.terminate();
        if !in_order {
            return Err(ShepherdCliError::DemoCheckFailed(
                "the daemon did not end in time, and was killed".to_owned(),
            ));
        }
        match check_leftovers() {
            LeftoverProcesses::Nothing => Ok(began.elapsed()),
            LeftoverProcesses::Something => Err(ShepherdCliError::DemoCheckFailed(
                "something that the daemon started is still there".to_owned(),
            )),
        }
    }

    /// Whether it went when it was asked to.
    fn terminate(&mut self) -> bool {
        self.ended = true;
        // It is our child and not waited for, so that its number is nobody else's.
        let _ = kill_process(Pid::from_child(&self.daemon), Signal::TERM);
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            match self.daemon.try_wait() {
                Ok(Some(_)) => return true,
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Err(_) => break,
            }
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        false
    }
}

impl Drop for DemoDaemon {
    fn drop(&mut self) {
        if !self.ended {
            self.terminate();
        }
    }
}

enum LeftoverProcesses {
    Nothing,
    Something,
}

/// Whether any process that the daemon started outlived it: they would be our children now.
fn check_leftovers() -> LeftoverProcesses {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return LeftoverProcesses::Something,
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => return LeftoverProcesses::Nothing,
        }
    }
}

/// Where a socket still has a path that the kernel can bind.
fn private_folder() -> Result<TempDir, ShepherdCliError> {
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("shepherd-");
        builder
    };
    let folder = builder().tempdir().map_err(ShepherdCliError::io("make a temporary folder"))?;
    if socket_path(&folder).as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok(folder);
    }
    builder().tempdir_in("/tmp").map_err(ShepherdCliError::io("make a temporary folder"))
}

fn socket_path(folder: &TempDir) -> PathBuf {
    folder.path().join("shepherd.sock")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::text_demo::{OBEDIENT, STUBBORN};

    #[test]
    fn the_starter_policy_has_what_the_story_tells_of_and_ends_it_with_the_daemon() {
        let loaded = shepherd_config::load_bytes("starter.toml", STARTER_POLICY.as_bytes()).unwrap();
        let ids: Vec<&str> = loaded.policy.entries().iter().map(|entry| entry.entry_id.as_str()).collect();
        assert!(ids.contains(&OBEDIENT) && ids.contains(&STUBBORN), "{ids:?}");
        assert_eq!(format!("{:?}", loaded.policy.rules().on_shutdown), "EndSessions");
    }
}
