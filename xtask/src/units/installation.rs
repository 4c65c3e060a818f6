//! An installed Shepherd in a container. The checks use it through the same tools as a parent.

use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::container::TestContainer;
use super::service_scope::ServiceScope;

/// The longest run of the entry `middle`.
pub(super) const MIDDLE_MAX_RUN: Duration = Duration::from_secs(10);

/// The argument of `sleep` by which the programs of sessions are found.
const TOKEN: &str = "987654";

/// An entry with a player that runs as the child and listens in a folder that the daemon created.
const FILM_POLICY: &str = r#"
[libraries.films]
paths = ["/usr/share/films"]
player = "/usr/local/bin/mpv"
[[entries]]
id = "film"
kind = "media"
library = "films"
user = "kid"
always = true
"#;

/// A minimal player with a control socket.
const PLAYER: &str = r#"#!/usr/bin/perl
use IO::Socket::UNIX;
my ($path) = map { /^--input-ipc-server=(.*)/ } @ARGV;
my $socket = IO::Socket::UNIX->new(Local => $path, Listen => 1) or die "$path: $!";
open(my $mark, ">", "/tmp/player-listens");
my $asker = $socket->accept;
my $word = <$asker>;
open($mark, ">", "/tmp/player-was-asked-to-quit") if $word =~ /quit/;
print $asker "{\"error\":\"success\"}\n";
"#;

/// The policy's setting for sessions when the daemon stops.
#[derive(Clone, Copy)]
pub(super) enum ShutdownPolicy {
    LeaveSessions,
    EndSessions,
}

/// The daemon of a container.
pub(super) struct InstalledShepherd {
    pub(super) container: TestContainer,
    pub(super) service: ServiceScope,
}

impl InstalledShepherd {
    /// Writes the policy and starts the unit, and returns when the daemon is ready.
    pub(super) fn start(container: TestContainer, service: ServiceScope) -> Result<Self> {
        let installation = Self { container, service };
        if service == ServiceScope::User {
            installation.container.start_child_user_manager()?;
        }
        installation.write_policy(ShutdownPolicy::LeaveSessions, "")?;
        installation.systemctl(&["start", "shepherdd"]).with_context(|| installation.journal())?;
        let state = installation.unit_property("ActiveState")?;
        ensure!(state == "active", "the unit is {state}");
        Ok(installation)
    }

    pub(super) fn write_policy(&self, shutdown: ShutdownPolicy, more: &str) -> Result<()> {
        let on_shutdown = match shutdown {
            ShutdownPolicy::LeaveSessions => "leave-sessions",
            ShutdownPolicy::EndSessions => "end-sessions",
        };
        let away = format!("(setsid sleep {TOKEN} </dev/null >/dev/null 2>&1 &); exec sleep {TOKEN}");
        let entry = |id: &str, script: &str, more: &str| {
            format!(
                "[[entries]]\nid = \"{id}\"\nargv = [\"sh\", \"-c\", \"{script}\"]\nuser = \"kid\"\nalways = true\n{more}\n"
            )
        };
        let moved = format!("exec systemd-run --user --scope --quiet sh -c '{away}'");
        // All kinds of namespaces that browsers and Flatpak use.
        let sandbox = "unshare -U -r -m -p -i -n -u -C -f --mount-proc touch /tmp/sandbox-was-made";
        let look = "test -e /proc/self && test ! -e /proc/1 && touch /tmp/saw-nobody";
        let policy = [
            &format!(
                "config_version = 1\non_shutdown = \"{on_shutdown}\"\nreload_on_change = false\n[profiles.kid]\naccounts = [\"kid\"]\n"
            ),
            &entry("long", &away, ""),
            &entry("evening", &away, "cooldown_after_run = \"1h\""),
            &entry("middle", &away, &format!("max_run = \"{}s\"", MIDDLE_MAX_RUN.as_secs())),
            &entry("short", &away, "max_run = \"4s\""),
            &entry("moved", &moved, &format!("max_run = \"{}s\"", MIDDLE_MAX_RUN.as_secs())),
            &entry("sandbox", sandbox, ""),
            &entry("look", look, ""),
            FILM_POLICY,
            more,
        ];
        self.container.write(self.service.policy_path(), &policy.concat())
    }

    /// Runs a command as the user of the daemon.
    fn run(&self, command: &[&str]) -> Result<Output> {
        self.container.run(&[self.service.prefix(), command].concat())
    }

    /// Runs a check while the unit has additional settings.
    pub(super) fn with_setting(&self, setting: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        self.container.write(self.service.drop_in_path(), &format!("[Service]\n{setting}\n"))?;
        self.systemctl(&["daemon-reload"])?;
        self.systemctl(&["restart", "shepherdd"])?;
        act()?;
        self.container.remove(self.service.drop_in_path())?;
        self.systemctl(&["daemon-reload"])?;
        self.systemctl(&["restart", "shepherdd"])
    }

    pub(super) fn systemctl(&self, arguments: &[&str]) -> Result<()> {
        let done = self.run(&[self.service.systemctl(), arguments].concat())?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "`systemctl {}`: {said}", arguments.join(" "));
        Ok(())
    }

    /// Installs the player that the entry `film` starts.
    pub(super) fn install_player(&self) -> Result<()> {
        self.container.write("/usr/share/films/grey.mkv", "")?;
        self.container.write("/usr/local/bin/mpv", PLAYER)?;
        let done = self.container.run(&["chmod", "755", "/usr/local/bin/mpv"])?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Returns a property of the unit.
    pub(super) fn unit_property(&self, property: &str) -> Result<String> {
        let show = ["show", "--value", "--property", property, "shepherdd"];
        let done = self.run(&[self.service.systemctl(), &show].concat())?;
        Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    }

    /// Collects the logs of systemd and the daemon for a failure message.
    pub(super) fn journal(&self) -> String {
        let status = ["status", "--full", "--lines=40", "--no-pager", "shepherdd"];
        let done = self.run(&[self.service.systemctl(), &status].concat());
        done.map_or_else(|error| error.to_string(), |done| String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Returns whether the daemon has logged a line since the last call.
    pub(super) fn journal_contains(&self, text: &str) -> bool {
        let read = format!(
            "journalctl --no-pager --output=cat --unit=shepherdd --cursor-file=/tmp/cursor | grep -qF \"{text}\""
        );
        self.container.run(&["sh", "-c", &read]).is_ok_and(|done| done.status.success())
    }

    /// Returns the reply to a command, also if it is a refusal.
    fn run_shepherd(&self, arguments: &[&str]) -> Result<(bool, Value)> {
        let done = self.run(&[&["shepherd", "--output", "json"], arguments].concat())?;
        let reply = serde_json::from_slice(&done.stdout);
        let said =
            || format!("`shepherd {}`: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr));
        Ok((done.status.success(), reply.with_context(said)?))
    }

    pub(super) fn shepherd_reply(&self, arguments: &[&str]) -> Result<Value> {
        let (succeeded, reply) = self.run_shepherd(arguments)?;
        ensure!(succeeded, "`shepherd {}`: {reply}", arguments.join(" "));
        Ok(reply)
    }

    /// Launches an entry as an administrator, on the child's time, and returns the id of the session.
    pub(super) fn launch(&self, entry: &str) -> Result<String> {
        let reply = self.shepherd_reply(&["launch", entry])?;
        let id = reply.pointer("/session/session_id").and_then(Value::as_str);
        id.map(str::to_owned).with_context(|| reply.to_string())
    }

    /// Returns the reason why an entry can't be launched, if there is one.
    pub(super) fn launch_refusal(&self, entry: &str) -> Result<Option<String>> {
        let (succeeded, reply) = self.run_shepherd(&["launch", entry])?;
        Ok((!succeeded).then(|| reply.to_string()))
    }

    /// Returns the id of the running session.
    pub(super) fn current_session(&self) -> Result<Option<String>> {
        let reply = self.shepherd_reply(&["status"])?;
        let snapshot = reply.get("snapshot").with_context(|| reply.to_string())?;
        Ok(snapshot.pointer("/session/session_id").and_then(Value::as_str).map(str::to_owned))
    }

    pub(super) fn stop(&self) -> Result<()> {
        self.shepherd_reply(&["stop", "--force"])?;
        self.wait_for_session_end(Duration::from_secs(20))
    }

    /// Returns the recorded usage of an entry on these days.
    pub(super) fn usage_of(&self, entry: &str) -> Result<Duration> {
        let reply = self.shepherd_reply(&["usage", "--week"])?;
        let usage = reply.get("usage").and_then(Value::as_array).with_context(|| reply.to_string())?;
        let of_entry =
            usage.iter().filter(|one| one.pointer("/of/entry_id").and_then(Value::as_str) == Some(entry));
        let milliseconds = of_entry.filter_map(|one| one.get("used").and_then(Value::as_u64)).sum();
        Ok(Duration::from_millis(milliseconds))
    }

    /// Waits until the program of a session runs, and returns its process id.
    pub(super) fn wait_for_program(&self, session: &str) -> Result<String> {
        let mut found = Vec::new();
        self.wait_until("its programs run", Duration::from_secs(20), || {
            found = self.programs();
            found.len() == 2
        })
        .with_context(|| format!("session {session}"))?;
        found.into_iter().next().context("the program has ended")
    }

    fn programs(&self) -> Vec<String> {
        let found = self.container.run(&["pgrep", "--full", &format!("^sleep {TOKEN}$")]);
        let words =
            |text: &[u8]| String::from_utf8_lossy(text).split_whitespace().map(str::to_owned).collect();
        found.map_or_else(|_| Vec::new(), |found| words(&found.stdout))
    }

    pub(super) fn assert_no_program_left(&self) -> Result<()> {
        self.wait_until("no program is left", Duration::from_secs(5), || self.programs().is_empty())
    }

    pub(super) fn wait_for_session_end(&self, patience: Duration) -> Result<()> {
        self.wait_until("the session ends", patience, || matches!(self.current_session(), Ok(None)))
    }

    pub(super) fn assert_idle(&self) -> Result<()> {
        ensure!(self.current_session()?.is_none(), "a session is still running");
        self.assert_no_program_left()
    }

    pub(super) fn wait_until(
        &self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut() -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !is_so() {
            if Instant::now() > deadline {
                bail!("timed out after {patience:?} waiting until {what}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}
