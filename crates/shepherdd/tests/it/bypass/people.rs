//! Attempts with other accounts, through the socket and on the files. Only root can run them with real other users.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command as Program;

use rustix::process::geteuid;
use shepherd_api::{
    AdminPin, AuditKind, ClientRole, Command, CommandReply, EntryScope, ErrorCode, GrantKind, Millis,
};
use shepherd_ipc::{BlockingClient, CallError, ConnectError};

use crate::harness::{ShepherddFixture, policy, stubborn_entry};
use crate::roles::as_user;

const CHILD: u32 = 65_011;
const CHILDS_SECOND: u32 = 65_012;
const STRANGER: u32 = 65_013;

const POLICY: &str = policy!(
    r#"
[profiles.anna]
accounts = [OWN, 65011, 65012]

[profiles.ben]

[access]
others = "nothing"
"#,
    stubborn_entry!(
        "game",
        r#"daily_quota = "500ms"
stop_grace = "300ms""#
    )
);

fn policy() -> String {
    // Root must not belong to a child's profile, so an unused account stands in for it.
    let own = if geteuid().is_root() { 65_019 } else { geteuid().as_raw() };
    POLICY.replace("OWN", &own.to_string())
}

fn fixture_for_other_users() -> ShepherddFixture {
    let fixture = ShepherddFixture::running(&policy());
    fs::set_permissions(fixture.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    fixture
}

fn play() -> Command {
    Command::Launch { entry_id: "game".parse().unwrap(), profile: None, display: None }
}

fn code(outcome: Result<CommandReply, CallError>) -> ErrorCode {
    let error = outcome.expect_err("it was permitted");
    error.api_error().unwrap_or_else(|| panic!("{error:?}")).code
}

/// Connects as this account if the test runs as root, and otherwise as the test's own, which belongs to the same child.
fn with_client_of<T: Send>(
    fixture: &ShepherddFixture,
    account: u32,
    talk: impl FnOnce(BlockingClient) -> T + Send,
) -> T {
    if geteuid().is_root() {
        as_user(fixture, account, |client| talk(client.unwrap()))
    } else {
        talk(fixture.client())
    }
}

pub(super) fn second_account() {
    let fixture = fixture_for_other_users();
    let session = with_client_of(&fixture, CHILD, |mut client| match client.call(play()) {
        Ok(CommandReply::Launched { session }) => session,
        other => panic!("{other:?}"),
    });
    assert_eq!(session.profile.as_str(), "anna", "the account says whose time it is");
    fixture.wait_until_idle();
    let refused = with_client_of(&fixture, CHILDS_SECOND, |mut client| client.call(play()).unwrap_err());
    let reasons = refused.api_error().unwrap().reasons.clone();
    assert_eq!(reasons[0].code(), "quota-exhausted");
    if geteuid().is_root() {
        let others = Command::Launch {
            entry_id: "game".parse().unwrap(),
            profile: Some("ben".parse().unwrap()),
            display: None,
        };
        assert_eq!(
            with_client_of(&fixture, CHILD, |mut client| code(client.call(others))),
            ErrorCode::NotPermitted
        );
        let unknown = as_user(&fixture, STRANGER, |client| client.map(drop));
        assert!(
            matches!(unknown, Err(ConnectError::Refused(error)) if error.code == ErrorCode::NotPermitted)
        );
    }
}

pub(super) fn talking_to_the_socket() {
    let fixture = fixture_for_other_users();
    // The user of an ordinary user's daemon is its administrator until there is a PIN.
    let pin: AdminPin = "8642".to_owned().try_into().unwrap();
    fixture.call(Command::SetPin { pin: Some(pin) }).unwrap();
    let entry = || "game".parse().unwrap();
    let everything = [
        Command::ExtendCurrent { by: Millis(3_600_000), session_id: None },
        Command::Grant {
            profile: None,
            scope: EntryScope::Entry { entry_id: entry() },
            gift: GrantKind::Extra { amount: Millis(3_600_000) },
            valid_from: None,
            lapses_at: None,
            why: None,
        },
        Command::SetPolicy { text: policy() },
        Command::GetPolicy {},
        Command::ReloadConfig {},
        Command::SwitchMode { mode: None },
        Command::ConfirmClock {},
        Command::SetPin { pin: None },
        Command::ReadAudit { after: None, limit: 10 },
    ];
    let tried = everything.len();
    let refused = if geteuid().is_root() { ErrorCode::NotPermitted } else { ErrorCode::PinRequired };
    with_client_of(&fixture, CHILD, |mut client| {
        assert_eq!(client.welcome().role, ClientRole::Shell);
        for command in everything {
            let shown = format!("{command:?}");
            assert_eq!(code(client.call(command)), refused, "{shown}");
        }
    });
    if geteuid().is_root() {
        let recorded = fixture.count_audit_records(|what| matches!(what, AuditKind::CommandRefused { .. }));
        assert_eq!(recorded, tried, "each refusal is on record");
    }
}

pub(super) fn editing_the_files() {
    let mut fixture = fixture_for_other_users();
    for (path, mode) in [
        (fixture.data(), 0o700),
        (fixture.data().join("shepherd.db"), 0o600),
        (shepherd_store::audit_log_path(&fixture.data()), 0o600),
    ] {
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode, "{}", path.display());
    }
    if geteuid().is_root() {
        let (data, policy, socket) = (fixture.data(), fixture.policy_path(), fixture.socket());
        let (data, policy, socket) = (data.display(), policy.display(), socket.display());
        for attempt in [
            format!("ls {data}"),
            format!("cat {data}/shepherd.db"),
            format!("rm -rf {data}"),
            format!("mv {data} {data}.old"),
            format!("echo >> {policy}"),
            format!("mv {policy} {policy}.old"),
            format!("rm {socket}"),
            format!("kill -9 {}", fixture.daemon_pid().as_raw_nonzero()),
        ] {
            let child = format!("--reuid={CHILD}");
            let done = Program::new("setpriv")
                .args([&child, "--clear-groups", "sh", "-c", &attempt])
                .output()
                .unwrap();
            assert!(!done.status.success(), "the child succeeded with `{attempt}`");
        }
    }
    // An older database, from before the usage, gains nothing.
    assert!(fixture.end().success());
    let (database, copy) = (fixture.data().join("shepherd.db"), fixture.folder().join("older.db"));
    fs::copy(&database, &copy).unwrap();
    fixture.start();
    with_client_of(&fixture, CHILD, |mut client| drop(client.call(play()).unwrap()));
    fixture.wait_until_idle();
    assert!(fixture.end().success());
    fs::copy(&copy, &database).unwrap();
    fixture.start();
    let refused = with_client_of(&fixture, CHILD, |mut client| client.call(play()).unwrap_err());
    let reasons = refused.api_error().unwrap().reasons.clone();
    assert_eq!(reasons[0].code(), "store-unavailable");
    assert!(fixture.failed_check("store").is_some());
}
