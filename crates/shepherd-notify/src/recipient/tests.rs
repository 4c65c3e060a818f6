//! A scripted daemon on a real socket answers.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use jiff::Timestamp;
use shepherd_api::{ApiResponse, ClientMessage, CommandResult, ServerMessage, ServerWelcome};
use shepherd_util::ClientId;

use super::*;

/// The answer to a connection, and to the listing of entries.
enum Script {
    RefuseConnection(ErrorCode),
    Welcome(ClientRole, Box<CommandResult>),
}

/// Returns who is at a login to which the daemon answers like this.
fn identify(script: Script) -> Result<Recipient, DaemonCallError> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let daemon = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let mut send = |message: &ServerMessage| {
            let line = serde_json::to_string(message).unwrap() + "\n";
            stream.write_all(line.as_bytes()).unwrap();
        };
        lines.next().unwrap();
        let (role, result) = match script {
            Script::RefuseConnection(code) => {
                send(&ServerMessage::Closing { error: ApiError::new(code, "No.") });
                return;
            }
            Script::Welcome(role, result) => (role, result),
        };
        send(&ServerMessage::Welcome(ServerWelcome {
            api_version: 1,
            speaks: 1,
            daemon_version: "0.1.0".to_owned(),
            client_id: ClientId::from_random(1),
            role,
            role_with_pin: None,
        }));
        // A parent asks nothing.
        let Some(line) = lines.next() else { return };
        let ClientMessage::Request(request) = ClientMessage::parse(line.as_bytes()).unwrap() else {
            panic!("a request was expected: {line}");
        };
        assert_eq!(request.command, Command::ListEntries { at_time: None, profile: None });
        send(&ServerMessage::Response(ApiResponse { id: request.id, result: *result }));
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let identified = runtime.block_on(Recipient::identify(&ClientOptions::new(socket, "test")));
    daemon.join().unwrap();
    identified
}

fn entries_of_anna() -> Box<CommandResult> {
    let (at, profile) = (Timestamp::UNIX_EPOCH, "anna".parse().unwrap());
    Box::new(CommandResult::Ok(CommandReply::Entries { at, profile, entries: Vec::new() }))
}

fn refusal(code: ErrorCode) -> Box<CommandResult> {
    Box::new(CommandResult::Err(ApiError::new(code, "No.")))
}

#[test]
fn the_role_and_the_listed_profile_identify_the_recipient() {
    let check = |role, result, expected| {
        assert_eq!(identify(Script::Welcome(role, result)).unwrap(), expected, "{role:?}");
    };
    check(ClientRole::Admin, entries_of_anna(), Recipient::Parent);
    check(ClientRole::Shell, entries_of_anna(), Recipient::Child("anna".parse().unwrap()));
    check(ClientRole::Observer, entries_of_anna(), Recipient::Child("anna".parse().unwrap()));
}

#[test]
fn an_account_without_a_profile_of_its_own_sees_nothing() {
    for code in [ErrorCode::UnknownProfile, ErrorCode::NotPermitted, ErrorCode::PinRequired] {
        let identified = identify(Script::Welcome(ClientRole::Shell, refusal(code)));
        assert_eq!(identified.unwrap(), Recipient::Other, "{code:?}");
    }
    let refused = identify(Script::RefuseConnection(ErrorCode::NotPermitted));
    assert_eq!(refused.unwrap(), Recipient::Other);
}

#[test]
fn a_busy_daemon_does_not_say_who_is_at_the_login() {
    let is_busy = |script| {
        let error = identify(script).unwrap_err();
        error.api_error().map(|error| error.code) == Some(ErrorCode::RateLimited)
    };
    assert!(is_busy(Script::Welcome(ClientRole::Shell, refusal(ErrorCode::RateLimited))));
    assert!(is_busy(Script::RefuseConnection(ErrorCode::RateLimited)));
}
