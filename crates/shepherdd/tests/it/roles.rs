//! Roles and the PIN (S11.3, S11.3b), with real users if the tests run as root.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_uid};
use shepherd_api::{AdminPin, AuditKind, ClientRole, Command, CommandReply, ErrorCode, Millis, StopMode};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions, ConnectError};

use crate::harness::{ShepherddFixture, wait_until};

const ANNA: u32 = 65_001;
const BEN: u32 = 65_002;
const SCREEN: u32 = 65_003;
const GRANDMA: u32 = 65_004;
const STRANGER: u32 = 65_005;

const POLICY: &str = r#"
config_version = 1

[profiles.anna]
accounts = [65001]

[profiles.ben]
accounts = [65002]

[access]
shells = [65003]
observers = [65004]
others = "nothing"

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
"#;

/// Connects as another user. On Linux, each thread has its own credentials, and a socket has those of the thread that
/// connected.
pub(crate) fn as_user<T: Send>(
    fixture: &ShepherddFixture,
    uid: u32,
    talk: impl FnOnce(Result<BlockingClient, ConnectError>) -> T + Send,
) -> T {
    let socket = fixture.socket();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            set_thread_gid(Gid::from_raw(uid)).unwrap();
            set_thread_uid(Uid::from_raw(uid)).unwrap();
            talk(BlockingClient::connect(&ClientOptions::new(socket, "front end")))
        });
        other.join().unwrap()
    })
}

/// Returns the error code of a refusal.
fn code(outcome: &Result<CommandReply, CallError>) -> Option<ErrorCode> {
    outcome.as_ref().err().map(|error| error.api_error().unwrap_or_else(|| panic!("{error:?}")).code)
}

fn launch(profile: Option<&str>) -> Command {
    Command::Launch {
        entry_id: "nap".parse().unwrap(),
        profile: profile.map(|name| name.parse().unwrap()),
        display: None,
    }
}

fn session_log(session: Option<&str>) -> Command {
    Command::ReadSessionLog { session: session.map(str::to_owned), profile: None }
}

fn extend() -> Command {
    Command::ExtendCurrent { by: Millis(3_600_000), session_id: None }
}

fn refusals(fixture: &ShepherddFixture, uid: u32) -> Vec<String> {
    let whose = format!("uid {uid} ");
    let of_user = fixture.audit().into_iter().filter(|record| record.line.actor.starts_with(&whose));
    of_user
        .filter_map(|record| match record.line.what {
            AuditKind::CommandRefused { command, .. } => Some(command),
            _ => None,
        })
        .collect()
}

#[test]
fn real_users_have_exactly_the_role_of_the_policy() {
    if !geteuid().is_root() {
        // Without root there is only one user: the daemon's own, who is its administrator.
        let fixture = ShepherddFixture::running(POLICY);
        assert_eq!(fixture.client().welcome().role, ClientRole::Admin);
        return;
    }
    let fixture = ShepherddFixture::running(POLICY);
    std::fs::set_permissions(fixture.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = as_user(&fixture, STRANGER, |client| client.map(|client| client.welcome().role));
    assert!(matches!(refused, Err(ConnectError::Refused(error)) if error.code == ErrorCode::NotPermitted));
    as_user(&fixture, GRANDMA, |client| {
        let mut client = client.unwrap();
        assert_eq!(client.welcome().role, ClientRole::Observer);
        assert_eq!(client.welcome().role_with_pin, Some(ClientRole::Observer));
        assert_eq!(code(&client.call(Command::GetState {})), None);
        for command in
            [launch(Some("anna")), Command::StopCurrent { mode: StopMode::Force, session_id: None }, extend()]
        {
            assert_eq!(code(&client.call(command)), Some(ErrorCode::NotPermitted));
        }
    });
    as_user(&fixture, ANNA, |client| {
        let mut client = client.unwrap();
        assert_eq!(client.welcome().role, ClientRole::Shell);
        assert_eq!(code(&client.call(launch(Some("ben")))), Some(ErrorCode::NotPermitted));
        let Ok(CommandReply::Launched { session }) = client.call(launch(None)) else {
            panic!("not launched")
        };
        assert_eq!(session.profile.as_str(), "anna");
        for command in
            [extend(), Command::ReloadConfig {}, Command::SetPin { pin: None }, Command::ConfirmClock {}]
        {
            assert_eq!(code(&client.call(command)), Some(ErrorCode::NotPermitted));
        }
    });
    as_user(&fixture, BEN, |client| {
        let outcome = client.unwrap().call(Command::StopCurrent { mode: StopMode::Force, session_id: None });
        assert_eq!(code(&outcome), Some(ErrorCode::NotPermitted), "it is Anna's");
    });
    as_user(&fixture, SCREEN, |client| {
        let mut client = client.unwrap();
        let nobodys = client.call(launch(None));
        assert_eq!(code(&nobodys), Some(ErrorCode::UnknownProfile), "it has to say whose time it is");
        assert_eq!(
            code(&client.call(launch(Some("anna")))),
            Some(ErrorCode::NotPermitted),
            "Anna has a login"
        );
        let outcome = client.call(Command::StopCurrent { mode: StopMode::Force, session_id: None });
        assert_eq!(
            code(&outcome),
            Some(ErrorCode::NotPermitted),
            "and so it is not the screen's to end, either"
        );
    });
    assert!(fixture.state().session.is_some(), "nobody has ended it");
    as_user(&fixture, ANNA, |client| {
        assert_eq!(
            code(&client.unwrap().call(Command::StopCurrent { mode: StopMode::Force, session_id: None })),
            None
        );
    });
    fixture.wait_until_idle();
    assert_eq!(refusals(&fixture, STRANGER), ["connect"]);
    assert_eq!(refusals(&fixture, GRANDMA), ["launch", "stop_current", "extend_current"]);
    assert_eq!(
        refusals(&fixture, ANNA),
        ["launch", "extend_current", "reload_config", "set_pin", "confirm_clock"]
    );
    assert_eq!(refusals(&fixture, BEN), ["stop_current"]);
    assert_eq!(refusals(&fixture, SCREEN), ["launch", "launch", "stop_current"]);
}

/// A request without a profile is for the client's own profile, or for the only profile if that has no account. It is
/// never for a profile that belongs to another account.
#[test]
fn the_only_profile_is_not_everybodys_if_it_has_an_account() {
    if !geteuid().is_root() {
        return;
    }
    let policy = POLICY.replace("[profiles.ben]\naccounts = [65002]\n", "").replace("[65003]", "[65002]");
    let fixture = ShepherddFixture::running(&policy);
    std::fs::set_permissions(fixture.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    as_user(&fixture, BEN, |client| {
        let mut client = client.unwrap();
        let entry_id: shepherd_util::EntryId = "nap".parse().unwrap();
        let request =
            Command::RequestTime { entry_id: entry_id.clone(), minutes: 5, note: None, profile: None };
        for command in [launch(None), request, usage(), Command::Why { entry_id, at: None, profile: None }] {
            let name = command.name();
            assert_eq!(code(&client.call(command)), Some(ErrorCode::NotPermitted), "{name}");
        }
    });
    as_user(&fixture, GRANDMA, |client| {
        assert_eq!(code(&client.unwrap().call(usage())), Some(ErrorCode::NotPermitted));
    });
    assert_eq!(fixture.state().session, None);
    assert_eq!(code(&fixture.call(launch(None))), None, "an administrator may");
    as_user(&fixture, ANNA, |client| {
        assert_eq!(code(&client.unwrap().call(usage())), None, "and so may Anna");
    });
}

fn usage() -> Command {
    let today = jiff::Zoned::now().date();
    Command::Usage { from: today, to: today, profile: None }
}

fn pin(digits: &str) -> AdminPin {
    digits.to_owned().try_into().unwrap()
}

/// Parent and child share an account: the daemon's own for an ordinary user, and another one for root, who needs no PIN.
#[test]
fn administration_needs_the_pin_once_there_is_one() {
    let own = geteuid().as_raw();
    let shared = if geteuid().is_root() { ANNA } else { own };
    let policy = POLICY
        .replace("shells = [65003]", &format!("admins = [{shared}]"))
        .replace("accounts = [65001]", "")
        .replace("accounts = [65002]", "");
    let mut fixture = ShepherddFixture::running(&policy);
    std::fs::set_permissions(fixture.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let talk = |fixture: &ShepherddFixture, talk: &(dyn Fn(BlockingClient) + Sync)| {
        if shared == own {
            talk(fixture.client());
        } else {
            as_user(fixture, shared, |client| talk(client.unwrap()));
        }
    };
    talk(&fixture, &|mut client| {
        assert_eq!(client.welcome().role, ClientRole::Admin);
        assert!(matches!(
            client.call(Command::SetPin { pin: Some(pin("2468")) }),
            Ok(CommandReply::PinChanged { set: true })
        ));
    });
    talk(&fixture, &|mut client| {
        assert_eq!(client.welcome().role, ClientRole::Shell);
        assert_eq!(client.welcome().role_with_pin, Some(ClientRole::Admin));
        assert_eq!(code(&client.call(launch(Some("anna")))), None);
        assert_eq!(code(&client.call(extend())), Some(ErrorCode::PinRequired));
        assert_eq!(code(&client.call(Command::SetPin { pin: None })), Some(ErrorCode::PinRequired));
        assert_eq!(code(&client.call(Command::Authenticate { pin: pin("1357") })), Some(ErrorCode::WrongPin));
        let right = client.call(Command::Authenticate { pin: pin("2468") });
        assert!(matches!(right, Ok(CommandReply::Authenticated { role: ClientRole::Admin })), "{right:?}");
        assert_eq!(
            code(&client.call(Command::StopCurrent { mode: StopMode::Force, session_id: None })),
            None
        );
        assert_eq!(code(&client.call(Command::ReloadConfig {})), None);
    });
    // The PIN is kept over a restart, and guesses are rate limited.
    assert!(fixture.end().success());
    fixture.start();
    talk(&fixture, &|mut client| {
        assert_eq!(client.welcome().role, ClientRole::Shell);
        let guesses: Vec<ErrorCode> = (0..12)
            .filter_map(|guess| {
                code(&client.call(Command::Authenticate { pin: pin(&format!("{guess:04}")) }))
            })
            .collect();
        assert_eq!(guesses.len(), 12);
        assert_eq!(guesses.last(), Some(&ErrorCode::RateLimited), "{guesses:?}");
        let throttled = client.call(Command::Authenticate { pin: pin("2468") });
        let error = throttled.unwrap_err().api_error().cloned().unwrap();
        assert_eq!(error.code, ErrorCode::RateLimited, "not even the right one, until the time has come");
        assert!(error.retry_after.is_some_and(|wait| Duration::from(wait) > Duration::ZERO));
    });
}

/// S6.5: a program that runs as root could not be contained. A daemon of an ordinary user starts programs as that user.
#[test]
fn root_starts_nothing_as_root() {
    const ACCOUNTS: &str = r#"
config_version = 1

[profiles.anna]
accounts = ["nobody"]

[profiles.ben]

[[entries]]
id = "nap"
argv = ["sleep", "TOKEN"]
always = true
"#;
    let mut fixture = ShepherddFixture::new(ACCOUNTS).without_options();
    fixture.start();
    let is_root = geteuid().is_root();
    let says_so =
        |sentence: &String| sentence.starts_with("entry `nap`: would run as root for profile `ben`, ");
    let limitations = fixture.health().limitations;
    assert_eq!(limitations.iter().any(says_so), is_root, "{limitations:?}");
    for (profile, starts) in [("anna", true), ("ben", !is_root)] {
        let outcome = fixture.call(launch(Some(profile)));
        if starts {
            outcome.unwrap();
            let owner = std::fs::metadata(format!("/proc/{}", fixture.wait_for_program())).unwrap().uid();
            assert!(!is_root || owner != 0, "{profile}: {owner}");
            fixture.stop(StopMode::Force).unwrap();
            fixture.wait_until_idle();
        } else {
            let error = outcome.unwrap_err();
            let error = error.api_error().unwrap();
            assert_eq!(error.reasons[0].code(), "account-missing", "{error:?}");
        }
    }
}

/// S11.3: if the daemon creates the folders itself, all users can reach the socket, and only the daemon its data.
#[test]
fn users_can_reach_the_socket_whatever_the_umask() {
    let fixture = ShepherddFixture::new(POLICY);
    std::fs::set_permissions(fixture.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = fixture.folder().join("run");
    let mut fixture = fixture
        .with_wrapper(&["sh", "-c", "umask 077; exec \"$@\"", "sh"])
        .with_socket(run.join("shepherd.sock"));
    fixture.start();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&run), mode(&fixture.data())), (0o755, 0o700));
    if geteuid().is_root() {
        as_user(&fixture, ANNA, |client| assert_eq!(client.unwrap().welcome().role, ClientRole::Shell));
    }
}

/// S11.3: the mode and the group of the socket.
#[test]
fn mode_and_group_of_the_socket_can_be_set() {
    let fixture = ShepherddFixture::new(POLICY);
    std::fs::set_permissions(fixture.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // An ordinary user can give a file only to their own groups.
    let group = if geteuid().is_root() { BEN } else { rustix::process::getegid().as_raw() };
    let mut fixture = fixture.with_options(&["--socket-mode", "0660", "--socket-group", &group.to_string()]);
    fixture.start();
    let metadata = std::fs::metadata(fixture.socket()).unwrap();
    assert_eq!((metadata.permissions().mode() & 0o777, metadata.gid()), (0o660, group));
    if geteuid().is_root() {
        as_user(&fixture, BEN, |client| assert_eq!(client.unwrap().welcome().role, ClientRole::Shell));
        as_user(&fixture, ANNA, |client| {
            let error = client.map(drop).unwrap_err();
            assert!(matches!(error, ConnectError::PermissionDenied { .. }), "{error:?}");
        });
    }
}

#[test]
fn an_unknown_socket_group_is_reported() {
    let fixture = ShepherddFixture::new(POLICY);
    let mut command = fixture.command();
    let output = command.args(["--socket-group", "no-such-group"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no such group `no-such-group`"), "{said}");
    let mut command = fixture.command();
    assert_eq!(command.args(["--socket-mode", "rw"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn the_output_of_a_session_is_for_its_child_and_for_administrators() {
    if !geteuid().is_root() {
        return;
    }
    let fixture = ShepherddFixture::running(POLICY);
    as_user(&fixture, ANNA, |client| client.unwrap().call(launch(None)).unwrap());
    fixture.wait_for_program();
    let shown = |reply: Result<CommandReply, CallError>| match reply.unwrap() {
        CommandReply::SessionLog { log } => log,
        other => panic!("{other:?}"),
    };
    let own = as_user(&fixture, ANNA, |client| shown(client.unwrap().call(session_log(None))));
    assert_eq!((own.profile.as_str(), own.entry_id.as_str(), own.end.as_ref()), ("anna", "nap", None));
    let id = own.session_id.as_str();
    assert_eq!(shown(fixture.call(session_log(Some(id)))), own);
    as_user(&fixture, BEN, |client| {
        let mut client = client.unwrap();
        assert_eq!(code(&client.call(session_log(None))), Some(ErrorCode::NotPermitted));
        // The answer doesn't tell that Anna's session exists.
        let unknown = format!("session-{}", "0".repeat(32));
        for named in [id, id.split_at(12).0, &unknown] {
            let refused = client.call(session_log(Some(named))).unwrap_err();
            let error = refused.api_error().unwrap();
            assert_eq!(
                (error.code, error.sentence.as_str()),
                (ErrorCode::UnknownSession, "There is no such session.")
            );
        }
    });
    as_user(&fixture, GRANDMA, |client| {
        assert_eq!(code(&client.unwrap().call(session_log(None))), Some(ErrorCode::NotPermitted));
    });
    fixture.stop(StopMode::Force).unwrap();
    fixture.wait_until_idle();
    wait_until("the end of the session is recorded", || shown(fixture.call(session_log(None))).end.is_some());
}
