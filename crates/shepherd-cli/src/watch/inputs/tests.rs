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

/// A daemon that lets only administrators stop anything, and knows the PIN.
fn serve(listener: &UnixListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        let mut role = ClientRole::Shell;
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        lines.next();
        let client_id = ClientId::from_random(1);
        let (api_version, speaks, daemon_version) = (1, 1, "0.1.0".to_owned());
        send_message(
            &stream,
            &ServerMessage::Welcome(ServerWelcome { api_version, speaks, daemon_version, client_id, role }),
        );
        for line in lines {
            let Ok(ClientMessage::Request(request)) = ClientMessage::parse(line.as_bytes()) else { break };
            let answer = match request.command {
                Command::Authenticate { pin } if pin.reveal() == "4711" => {
                    role = ClientRole::Admin;
                    Ok(CommandReply::Authenticated { role })
                }
                Command::Authenticate { .. } => Err(ApiError::new(ErrorCode::WrongPin, "Wrong PIN.")),
                _ if role == ClientRole::Admin => {
                    Ok(CommandReply::Stopping { session_id: SessionId::from_random(1) })
                }
                _ => Err(ApiError::new(ErrorCode::PinRequired, "Only an administrator may.")),
            };
            let response = ApiResponse { id: request.id, result: CommandResult::from(answer) };
            send_message(&stream, &ServerMessage::Response(response));
        }
    }
}

/// S11.3b: the PIN is good for what it was given for, and for nothing after it.
#[test]
fn the_pin_is_for_one_act() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || serve(&listener));
    let mut answering =
        LiveViewRequestWorker { options: ClientOptions::new(socket, "test"), profile: None, client: None };
    let stop = LiveViewRequest::Stop(StopMode::Graceful);
    let with = |pin: &str| LiveViewRequest::WithPin {
        pin: AdminPin::try_from(pin.to_owned()).unwrap(),
        request: Box::new(LiveViewRequest::Stop(StopMode::Graceful)),
    };
    let mut wanted = |wish: &LiveViewRequest| match answering.execute(wish) {
        LiveViewReply::PinRequired { request: wish, message: told } => {
            assert_eq!(wish, stop);
            Some(told)
        }
        _ => None,
    };
    assert_eq!(wanted(&stop).as_deref(), Some("Only an administrator may."));
    assert_eq!(wanted(&with("0000")).as_deref(), Some("Wrong PIN."));
    assert_eq!(wanted(&with("4711")), None);
    assert_eq!(wanted(&stop).as_deref(), Some("Only an administrator may."));
}
