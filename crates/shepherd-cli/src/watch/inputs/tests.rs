use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use shepherd_api::{
    ApiError, ApiResponse, ClientMessage, ClientRole, CommandResult, ServerMessage, ServerWelcome,
};
use shepherd_util::{ClientId, SessionId};

use super::*;

fn send_message(mut stream: &UnixStream, message: &ServerMessage) {
    writeln!(stream, "{}", serde_json::to_string(message).unwrap()).unwrap();
}

/// Serves as a daemon that lets only administrators stop a session, with the PIN 4711.
fn serve(listener: &UnixListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        let mut role = ClientRole::Shell;
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        lines.next();
        let client_id = ClientId::from_random(1);
        let (api_version, speaks, daemon_version) = (1, 1, "0.1.0".to_owned());
        let role_with_pin = Some(ClientRole::Admin);
        let welcome = ServerWelcome { api_version, speaks, daemon_version, client_id, role, role_with_pin };
        send_message(&stream, &ServerMessage::Welcome(welcome));
        for line in lines {
            let Ok(ClientMessage::Request(request)) = ClientMessage::parse(line.as_bytes()) else { break };
            let reply = match request.command {
                Command::Authenticate { pin } if pin.reveal() == "4711" => {
                    role = ClientRole::Admin;
                    Ok(CommandReply::Authenticated { role })
                }
                Command::Authenticate { .. } => Err(ApiError::new(ErrorCode::WrongPin, "Incorrect PIN.")),
                _ if role == ClientRole::Admin => {
                    Ok(CommandReply::Stopping { session_id: SessionId::from_random(1) })
                }
                _ => Err(ApiError::new(ErrorCode::PinRequired, "Only an administrator may.")),
            };
            let response = ApiResponse { id: request.id, result: CommandResult::from(reply) };
            send_message(&stream, &ServerMessage::Response(response));
        }
    }
}

/// S11.3b: the PIN is valid for one request only.
#[test]
fn the_pin_is_valid_for_one_request() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || serve(&listener));
    let mut worker = LiveViewRequestWorker {
        options: ClientOptions::new(socket, "test"),
        profile: None,
        desktop: None,
        client: None,
    };
    let stop = LiveViewRequest::Stop(StopMode::Graceful, None);
    let with = |pin: &str| LiveViewRequest::WithPin {
        pin: AdminPin::try_from(pin.to_owned()).unwrap(),
        request: Box::new(LiveViewRequest::Stop(StopMode::Graceful, None)),
    };
    let mut pin_prompt = |request: &LiveViewRequest| match worker.execute(request) {
        LiveViewReply::PinRequired { request, message } => {
            assert_eq!(request, stop);
            Some(message)
        }
        _ => None,
    };
    assert_eq!(pin_prompt(&stop).as_deref(), Some("Only an administrator may."));
    assert_eq!(pin_prompt(&with("0000")).as_deref(), Some("Incorrect PIN."));
    assert_eq!(pin_prompt(&with("4711")), None);
    assert_eq!(pin_prompt(&stop).as_deref(), Some("Only an administrator may."));
}
