//! The temporary daemon of the demonstration. It runs in a private folder and stops with the demonstration.

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
use ward_terminal::escape_lines;

use crate::error::ShepherdCliError;
use crate::policy::STARTER_POLICY;

/// Longest time for the daemon to start. Usually it takes milliseconds, on a busy machine more.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest time for the daemon to stop. It stops its programs first, with the two seconds of grace in the starter policy.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval between two checks of a condition that sends no event.
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
        let log = tempfile::tempfile().map_err(ShepherdCliError::io("make a temporary file"))?;
        // Orphans of the daemon become children of this process, so that leftovers can be detected.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| ShepherdCliError::io("watch for leftover processes")(error.into()))?;
        let program =
            std::env::current_exe().map_err(ShepherdCliError::io("find this program's own file"))?;
        let daemon = Command::new(program)
            .arg("up")
            // Root may be the only user here, and the programs of the starter policy are harmless.
            .arg("--allow-root")
            .args(["--end-with".into(), getpid().as_raw_nonzero().to_string()])
            .args(["--remove".as_ref(), folder.path()])
            .args(["--policy".as_ref(), policy.as_path()])
            .args(["--data-dir".into(), folder.path().join("data")])
            .args(["--socket".into(), socket_path(&folder)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.try_clone().map_err(ShepherdCliError::io("keep the daemon's log"))?)
            .spawn()
            .map_err(ShepherdCliError::io("start the daemon"))?;
        let mut demo = Self { folder, daemon, log, ended: false };
        demo.wait_until_up()?;
        Ok(demo)
    }

    pub(super) fn client_options(&self) -> ClientOptions {
        ClientOptions::new(socket_path(&self.folder), "shepherd demo")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.path().join("data").join("audit.log")
    }

    fn wait_until_up(&mut self) -> Result<(), ShepherdCliError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let Err(error) = BlockingClient::connect(&self.client_options()) else { return Ok(()) };
            let ended = self.daemon.try_wait().map_err(ShepherdCliError::io("check the daemon"))?;
            if ended.is_some() {
                self.ended = true;
                return Err(ShepherdCliError::DaemonEnded { log: self.read_log() });
            }
            if Instant::now() > deadline {
                return Err(error.into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn read_log(&mut self) -> String {
        let mut text = String::new();
        let read = self.log.rewind().and_then(|()| self.log.read_to_string(&mut text));
        read.map(|_| escape_lines(text.trim_end())).unwrap_or_default()
    }

    /// Stops the daemon and checks that none of its processes is left. Returns the time this took.
    pub(super) fn stop_and_check(mut self) -> Result<Duration, ShepherdCliError> {
        let began = Instant::now();
        let stopped_in_time = self.terminate();
        if !stopped_in_time {
            return Err(ShepherdCliError::DemoCheckFailed(
                "the daemon did not stop in time and was killed".to_owned(),
            ));
        }
        match check_leftovers() {
            LeftoverProcesses::Nothing => Ok(began.elapsed()),
            LeftoverProcesses::Something => Err(ShepherdCliError::DemoCheckFailed(
                "a program that the daemon started is still running".to_owned(),
            )),
        }
    }

    /// Asks the daemon to stop, and kills it after a timeout. Returns true if the daemon stopped in time.
    fn terminate(&mut self) -> bool {
        self.ended = true;
        // The daemon is an unreaped child of this process, so its pid can't belong to another process.
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

/// Checks whether a process of the daemon outlived it. Such a process would be a child of this process now.
fn check_leftovers() -> LeftoverProcesses {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return LeftoverProcesses::Something,
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => return LeftoverProcesses::Nothing,
        }
    }
}

/// Creates the private folder in a place where the socket's path is short enough for the kernel.
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
    fn the_starter_policy_has_the_entries_of_the_demonstration_and_stops_them_with_the_daemon() {
        let loaded = shepherd_config::load_bytes("starter.toml", STARTER_POLICY.as_bytes()).unwrap();
        let ids: Vec<&str> = loaded.policy.entries().iter().map(|entry| entry.entry_id.as_str()).collect();
        assert!(ids.contains(&OBEDIENT) && ids.contains(&STUBBORN), "{ids:?}");
        assert_eq!(format!("{:?}", loaded.policy.rules().on_shutdown), "EndSessions");
    }
}
