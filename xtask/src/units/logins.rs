//! The checks on log-ins, with a real logind and PAM (S19.2).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::checks::InstallationCheck;
use super::installation::{InstalledShepherd, ShutdownPolicy};

pub(super) const LOGIN_CHECKS: &[InstallationCheck] = &[
    ("PAM refuses a child outside its hours, with the sentence, and nobody else", pam_refuses),
    ("without a daemon, PAM refuses the child and nobody else", pam_without_daemon),
    ("a login that got past PAM is ended at once, also after a restart of logind", bypass_is_ended),
    (
        "a login is counted once for all its terminals, and ends with a warning when its time is up",
        login_is_counted,
    ),
    ("the end of a login leaves nothing of its user, wherever it runs", login_leaves_nothing),
    (
        "a program that Shepherd started for the account goes on when a forbidden login ends",
        session_is_spared,
    ),
    ("without its configuration, PAM asks nobody", pam_configuration_is_removed),
];

/// The entry for being logged in.
const LOGIN: &str = "[[entries]]\nid = \"computer\"\nkind = \"login\"\nalways = true\nstop_grace = \"1s\"\n";

/// Closes the entry at any time.
const CLOSED: &str =
    "[[exceptions]]\nfrom = 2020-01-01\nto = 2100-01-01\nentries = [\"computer\"]\nclosed = true\n";

/// The grace period of the entry.
const GRACE: Duration = Duration::from_secs(1);

/// The time after the grace period in which a login has ended.
const END_LIMIT: Duration = Duration::from_secs(1);

/// The time for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Allows or forbids the child's logins.
fn set_hours(installation: &InstalledShepherd, open: bool) -> Result<()> {
    let more = if open { LOGIN.to_owned() } else { format!("{LOGIN}{CLOSED}") };
    installation.write_policy(ShutdownPolicy::LeaveSessions, &more)?;
    installation.shepherd_reply(&["reload"]).map(drop)
}

fn root(installation: &InstalledShepherd, script: &str) -> Result<String> {
    let done = installation.container.run(&["sh", "-c", script])?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "`{script}`: {said}");
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Logs in on a terminal with the program `login`, and returns what the person reads and whether it worked.
fn log_in(installation: &InstalledShepherd, account: &str) -> Result<(String, bool)> {
    let command = format!("echo exit | script --quiet --return --command 'login -f {account}' /dev/null");
    let done = installation.container.run(&["timeout", "20", "sh", "-c", &command])?;
    Ok((String::from_utf8_lossy(&done.stdout).into_owned(), done.status.success()))
}

/// Begins a login of the child that logind knows, without a person. Its programs ignore the request to end.
fn begin_login(installation: &InstalledShepherd) -> Result<()> {
    // What the daemon logged about earlier logins is skipped.
    installation.journal_contains("");
    let script = "trap \"\" TERM HUP; (setsid sleep 4711 &); while :; do sleep 1; done";
    let session = "Environment=XDG_SESSION_CLASS=user XDG_SESSION_TYPE=tty";
    root(
        installation,
        &format!(
            "systemd-run --quiet --collect -p PAMName=login -p User=kid -p '{session}' sh -c '{script}'"
        ),
    )
    .map(drop)
}

fn has_processes(installation: &InstalledShepherd) -> bool {
    installation.container.run(&["pgrep", "--uid", "kid"]).is_ok_and(|done| done.status.success())
}

fn wait_until_logged_in(installation: &InstalledShepherd) -> Result<()> {
    installation.wait_until("logind knows the login", PATIENCE, || {
        let manager = "systemctl is-active --quiet user@1000.service";
        root(installation, &format!("{manager} && loginctl list-sessions --no-legend | grep -q kid")).is_ok()
    })
}

/// Waits until the system knows that the child is logged out, so that the next login begins anew.
fn wait_until_logged_out(installation: &InstalledShepherd) -> Result<()> {
    installation.wait_until("logind knows no login", PATIENCE, || {
        let manager = "! systemctl is-active --quiet user@1000.service user-runtime-dir@1000.service";
        root(installation, &format!("{manager} && ! loginctl list-sessions --no-legend | grep -q kid"))
            .is_ok()
    })
}

fn wait_until_gone(installation: &InstalledShepherd, within: Duration) -> Result<()> {
    installation.wait_until("nothing of the child is left", within, || !has_processes(installation))
}

fn pam_refuses(installation: &InstalledShepherd) -> Result<()> {
    root(
        installation,
        "useradd --create-home mama && DEBIAN_FRONTEND=noninteractive pam-auth-update --package",
    )?;
    set_hours(installation, false)?;
    let (said, succeeded) = log_in(installation, "kid")?;
    ensure!(!succeeded && said.contains("Not at this time."), "the child logged in: {said}");
    let (said, succeeded) = log_in(installation, "mama")?;
    ensure!(succeeded, "the parent could not log in: {said}");
    root(installation, "su --login kid --command true")?;
    set_hours(installation, true)?;
    let (said, succeeded) = log_in(installation, "kid")?;
    ensure!(succeeded, "the child could not log in at any time: {said}");
    root(installation, "loginctl terminate-user kid; sleep 1; pkill -KILL --uid kid || true").map(drop)
}

fn pam_without_daemon(installation: &InstalledShepherd) -> Result<()> {
    set_hours(installation, true)?;
    installation.systemctl(&["stop", "shepherdd"])?;
    let child = log_in(installation, "kid");
    let parent = log_in(installation, "mama");
    let other = root(installation, "su --login kid --command true");
    installation.systemctl(&["start", "shepherdd"])?;
    let (said, succeeded) = child?;
    ensure!(!succeeded && said.contains("Shepherd isn't running"), "the child logged in: {said}");
    let (said, succeeded) = parent?;
    ensure!(succeeded, "the parent could not log in: {said}");
    other.map(drop)
}

fn bypass_is_ended(installation: &InstalledShepherd) -> Result<()> {
    root(installation, "DEBIAN_FRONTEND=noninteractive pam-auth-update --package --remove shepherd")?;
    set_hours(installation, false)?;
    for prepare in ["true", "systemctl restart systemd-logind"] {
        root(installation, prepare)?;
        begin_login(installation)?;
        installation.wait_until("the login was noticed", PATIENCE, || {
            installation.journal_contains("ending a login that isn't allowed now")
        })?;
        wait_until_gone(installation, Duration::from_secs(5))?;
        // The child's service manager, which logind was about to start, does not follow.
        std::thread::sleep(Duration::from_secs(1));
        ensure!(!has_processes(installation), "{}", root(installation, "ps -u kid -o pid,cgroup:70,args")?);
        wait_until_logged_out(installation)?;
    }
    Ok(())
}

fn login_is_counted(installation: &InstalledShepherd) -> Result<()> {
    let limits = format!("{LOGIN}max_run = \"6s\"\nwarnings = [\"3s\"]\n");
    installation.write_policy(ShutdownPolicy::LeaveSessions, &limits)?;
    installation.shepherd_reply(&["reload"])?;
    let before = installation.usage_of("computer")?;
    begin_login(installation)?;
    wait_until_logged_in(installation)?;
    begin_login(installation)?;
    let session = login_session(installation)?.context("the login was not adopted")?;
    ensure!(installation.launch_refusal("computer")?.is_some_and(|reason| reason.contains("login-entry")));
    installation.systemctl(&["restart", "shepherdd"])?;
    ensure!(login_session(installation)?.as_deref() == Some(&*session), "another session after a restart");
    installation
        .wait_until("the login has ended", PATIENCE, || matches!(login_session(installation), Ok(None)))?;
    wait_until_gone(installation, Duration::from_secs(1))?;
    let used = installation.usage_of("computer")?.saturating_sub(before);
    ensure!((Duration::from_secs(6)..Duration::from_secs(10)).contains(&used), "{used:?} were charged");
    let log = installation.shepherd_reply(&["audit", "list", "--last", "20"])?.to_string();
    ensure!(log.contains("warning_given"), "there was no warning: {log}");
    wait_until_logged_out(installation)
}

/// Returns the id of the session that stands for the child's login.
fn login_session(installation: &InstalledShepherd) -> Result<Option<String>> {
    let reply = installation.shepherd_reply(&["status"])?;
    let snapshot = reply.get("snapshot").with_context(|| reply.to_string())?;
    let several = snapshot.get("sessions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut sessions: Vec<Value> = several;
    sessions.extend(snapshot.get("session").cloned());
    let is_login = |session: &&Value| session.get("entry_id").and_then(Value::as_str) == Some("computer");
    let ids = sessions.iter().filter(is_login).filter_map(|session| session.get("session_id")?.as_str());
    let ids: std::collections::BTreeSet<&str> = ids.collect();
    ensure!(ids.len() <= 1, "several sessions: {ids:?}");
    Ok(ids.into_iter().next().map(str::to_owned))
}

fn login_leaves_nothing(installation: &InstalledShepherd) -> Result<()> {
    set_hours(installation, true)?;
    root(installation, "loginctl enable-linger kid")?;
    begin_login(installation)?;
    wait_until_logged_in(installation)?;
    let session = installation.launch("long")?;
    installation.wait_for_program(&session)?;
    let as_kid = "setpriv --reuid=kid --regid=kid --init-groups env XDG_RUNTIME_DIR=/run/user/1000";
    root(installation, &format!("{as_kid} systemd-run --user --quiet sleep 4712"))?;
    // cron runs these jobs when it starts for the first time after the boot, which it recognises by the file.
    let jobs =
        "echo '@reboot sleep 4713' | crontab -u kid - && rm -f /run/crond.reboot && systemctl restart cron";
    root(installation, jobs)?;
    root(installation, &format!("{as_kid} setsid --fork sleep 4714 >/dev/null 2>&1"))?;
    for number in 4711..=4714 {
        let is_running = format!("pgrep --uid kid --full 'sleep {number}'");
        installation.wait_until(&is_running, PATIENCE, || root(installation, &is_running).is_ok())?;
    }
    let asked = Instant::now();
    installation.shepherd_reply(&["stop", "computer"])?;
    ensure!(has_processes(installation), "the child had no time to save");
    wait_until_gone(installation, GRACE + END_LIMIT + Duration::from_secs(1))?;
    installation.wait_for_session_end(PATIENCE)?;
    println!("    ended {:?} after `shepherd stop`, with {GRACE:?} to save", asked.elapsed());
    root(installation, "crontab -r -u kid && loginctl disable-linger kid")?;
    wait_until_logged_out(installation)
}

fn session_is_spared(installation: &InstalledShepherd) -> Result<()> {
    set_hours(installation, false)?;
    let session = installation.launch("long")?;
    let program = installation.wait_for_program(&session)?;
    begin_login(installation)?;
    installation.wait_until("only the session is left", PATIENCE, || {
        root(installation, "! pgrep --uid kid --full 'sleep 4711'").is_ok()
            && installation.journal_contains("the login has ended")
    })?;
    ensure!(installation.container.exists(&format!("/proc/{program}")), "the session was killed");
    installation.stop()
}

fn pam_configuration_is_removed(installation: &InstalledShepherd) -> Result<()> {
    root(installation, "! grep -r shepherd /etc/pam.d").map(drop)
}
