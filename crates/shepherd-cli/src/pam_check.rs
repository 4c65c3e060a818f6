//! `shepherd pam-check`: tells PAM whether an account may log in now (S19.2). `pam_exec` runs it before a log-in and shows
//! its output to the person.
//!
//! Only an answer of no refuses a log-in, with exit code 1. Any fault of this program lets the person in: it must never
//! lock out a parent, and the daemon ends a login that began against the rules. The one exception are accounts that the
//! daemon wrote down, because the policy refuses them while no daemon answers.

use std::path::PathBuf;
use std::process::{Command as Program, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use shepherd_api::{Command, CommandReply, ErrorCode, LOGIN_WITHOUT_DAEMON, LoginAnswer};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, ConnectError};
use shepherd_util::{EnvironmentVariables, ShepherdPaths, parse_passwd};
use shepherdd::LoginAccounts;
use ward_terminal::escape_lines;

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;

/// The time in which the question is answered. A person waits for it at the log-in screen.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The time for the connection, so that a daemon that accepts it and hangs leaves time to look the account up.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(800);

/// The time between two looks at a program that looks an account up.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(5);

/// The program that knows the accounts of directory services, by its full path: PAM gives us no `PATH`.
const ACCOUNT_LOOKUP: &str = "/usr/bin/getent";

/// Services by which root becomes another user. Root needs no permission for this.
const SWITCH_SERVICES: [&str; 5] = ["su", "su-l", "runuser", "sudo", "sudo-i"];

#[derive(clap::Args)]
pub(crate) struct PamCheckArgs {
    /// Name of the account [default: PAM_USER, which PAM sets]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Folder of the daemon's records, for a daemon elsewhere
    #[arg(long, value_name = "FOLDER", hide = true)]
    data: Option<PathBuf>,
}

/// An account of the machine.
#[derive(Clone, Copy)]
struct LoginAccount {
    uid: u32,
    gid: u32,
}

/// The result of the check.
enum PamDecision {
    Allow,
    Refuse { sentence: String },
}

pub(crate) fn run(
    arguments: &PamCheckArgs,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<ExitCode, ShepherdCliError> {
    let sentence = match decide(arguments, context, Instant::now() + TIMEOUT) {
        PamDecision::Allow => None,
        PamDecision::Refuse { sentence } => Some(sentence),
    };
    output.print_result(&json!({ "allowed": sentence.is_none(), "sentence": sentence }), |output| {
        sentence.iter().for_each(|sentence| output.print_line(&escape_lines(sentence)));
    });
    Ok(if sentence.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn decide(arguments: &PamCheckArgs, context: &CommandContext, deadline: Instant) -> PamDecision {
    let request = PamRequest::from_environment(context.environment());
    let Some(name) = arguments.user.as_deref().or(request.user) else { return PamDecision::Allow };
    if !request.begins_login() || name == "root" {
        return PamDecision::Allow;
    }
    let Some(account) = find_account(name, deadline) else { return PamDecision::Allow };
    if account.uid == 0 {
        return PamDecision::Allow;
    }
    // Nobody but the machine's daemon is asked: the environment may be the child's.
    let machine = ShepherdPaths::system(&EnvironmentVariables::new());
    let socket =
        context.socket_override().cloned().or(machine.as_ref().ok().map(|paths| paths.socket.clone()));
    let data = arguments.data.clone().or(machine.ok().map(|paths| paths.data));
    let answer = socket.map_or(DaemonAnswer::None, |socket| ask_daemon(socket, account, &request, deadline));
    match answer {
        DaemonAnswer::Given(PamDecision::Refuse { sentence }) => PamDecision::Refuse { sentence },
        DaemonAnswer::Given(PamDecision::Allow) => PamDecision::Allow,
        DaemonAnswer::None => {
            let accounts = data.and_then(|data| LoginAccounts::load(&data).ok()).unwrap_or_default();
            match accounts.refuses(account.uid) {
                true => PamDecision::Refuse { sentence: LOGIN_WITHOUT_DAEMON.to_owned() },
                false => PamDecision::Allow,
            }
        }
    }
}

/// The question of PAM, as `pam_exec(8)` passes it on.
struct PamRequest<'e> {
    user: Option<&'e str>,
    service: &'e str,
    kind: &'e str,
    /// The user who asks, if the service knows it.
    asking_user: &'e str,
}

impl<'e> PamRequest<'e> {
    fn from_environment(environment: &'e EnvironmentVariables) -> Self {
        let value = |name: &str| environment.get(name).and_then(|value| value.to_str());
        Self {
            user: value("PAM_USER").filter(|user| !user.is_empty()),
            service: value("PAM_SERVICE").unwrap_or_default(),
            kind: value("PAM_TYPE").unwrap_or_default(),
            asking_user: value("PAM_RUSER").unwrap_or_default(),
        }
    }

    /// Returns whether somebody wants to log in. A log-out and a switch of the user by root are none of our business.
    fn begins_login(&self) -> bool {
        let is_switch_by_root = self.asking_user == "root" && SWITCH_SERVICES.contains(&self.service);
        !["close_session", "password"].contains(&self.kind) && !is_switch_by_root
    }
}

/// Looks an account up, first in `/etc/passwd`, and then in directory services.
fn find_account(name: &str, deadline: Instant) -> Option<LoginAccount> {
    let find = |text: &str| {
        let account = parse_passwd(text).find(|entry| entry.name == name)?;
        Some(LoginAccount { uid: account.uid, gid: account.gid })
    };
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    find(&String::from_utf8_lossy(&passwd)).or_else(|| find(&look_up_elsewhere(name, deadline)?))
}

/// Asks the directory services of the machine. They may hang, so they get at most half of the time that is left.
fn look_up_elsewhere(name: &str, deadline: Instant) -> Option<String> {
    let patience = deadline.saturating_duration_since(Instant::now()) / 2;
    let give_up = Instant::now() + patience;
    let mut lookup = Program::new(ACCOUNT_LOOKUP)
        .args(["--", "passwd", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    while Instant::now() < give_up {
        match lookup.try_wait() {
            Ok(Some(_)) => {
                let output = lookup.wait_with_output().ok()?;
                return Some(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            Ok(None) => std::thread::sleep(LOOKUP_INTERVAL),
            Err(_) => break,
        }
    }
    let _ = lookup.kill().and_then(|()| lookup.wait());
    None
}

/// The answer of the daemon, if there is one.
enum DaemonAnswer {
    Given(PamDecision),
    /// No daemon answers, or it has no rules.
    None,
}

fn ask_daemon(
    socket: PathBuf,
    account: LoginAccount,
    request: &PamRequest<'_>,
    deadline: Instant,
) -> DaemonAnswer {
    let left = || deadline.saturating_duration_since(Instant::now());
    let name = format!("pam-check {}", request.service);
    let mut options = ClientOptions::new(socket, name.trim_end());
    options.connect_timeout = left().min(CONNECT_TIMEOUT);
    options.call_timeout = left().saturating_sub(options.connect_timeout);
    let mut client = match BlockingClient::connect(&options) {
        Ok(client) => client,
        // The policy doesn't know the user who asks, and with it the account, which asks for itself.
        Err(ConnectError::Refused(error)) if error.code == ErrorCode::NotPermitted => {
            return DaemonAnswer::Given(PamDecision::Allow);
        }
        Err(_) => return DaemonAnswer::None,
    };
    let question = Command::CheckLogin { uid: account.uid, gid: Some(account.gid) };
    match client.call(question) {
        Ok(CommandReply::LoginChecked { login: LoginAnswer::Refused { sentence, .. } }) => {
            DaemonAnswer::Given(PamDecision::Refuse { sentence })
        }
        Ok(_) => DaemonAnswer::Given(PamDecision::Allow),
        // A daemon of an older version limits no logins, and a user who may not ask about others isn't PAM.
        Err(CallError::Refused(error))
            if matches!(
                error.code,
                ErrorCode::UnknownCommand | ErrorCode::NotPermitted | ErrorCode::PinRequired
            ) =>
        {
            DaemonAnswer::Given(PamDecision::Allow)
        }
        Err(_) => DaemonAnswer::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'e>(kind: &'e str, service: &'e str, asking_user: &'e str) -> PamRequest<'e> {
        PamRequest { user: Some("anna"), service, kind, asking_user }
    }

    // S19.2
    #[test]
    fn root_may_become_anybody_and_everybody_may_log_out() {
        for (kind, service, asking_user, expected) in [
            ("account", "sshd", "", true),
            ("auth", "login", "", true),
            ("open_session", "gdm-password", "", true),
            ("", "", "", true),
            ("account", "su", "ben", true),
            ("account", "su", "root", false),
            ("account", "sshd", "root", true),
            ("close_session", "sshd", "", false),
            ("password", "passwd", "", false),
        ] {
            assert_eq!(
                request(kind, service, asking_user).begins_login(),
                expected,
                "{kind} {service} {asking_user}"
            );
        }
    }

    // S19.2
    #[test]
    fn root_is_an_account_and_an_unknown_name_is_none() {
        let deadline = Instant::now() + TIMEOUT;
        assert_eq!(find_account("root", deadline).map(|account| account.uid), Some(0));
        assert!(find_account("no-such-account", deadline).is_none());
    }
}
