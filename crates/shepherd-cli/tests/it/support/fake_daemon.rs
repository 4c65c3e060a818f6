//! A fake daemon on a real socket that sends scripted replies.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use shepherd_api::{
    ApiError, ApiResponse, ClientMessage, ClientRole, Command, CommandReply, CommandResult, ServerMessage,
    ServerWelcome,
};
use shepherd_util::ClientId;
use tempfile::TempDir;

pub(crate) struct FakeDaemon {
    folder: TempDir,
    seen: Receiver<Command>,
}

impl FakeDaemon {
    /// Serves one client, who is an administrator once the PIN is given, with these replies, in order.
    pub(crate) fn with_replies(script: Vec<Result<CommandReply, ApiError>>) -> Self {
        Self::with_replies_to(Some(ClientRole::Admin), script)
    }

    /// Serves one client that has this role once the PIN is given, with these replies, in order.
    pub(crate) fn with_replies_to(
        role_with_pin: Option<ClientRole>,
        script: Vec<Result<CommandReply, ApiError>>,
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("fd-").tempdir_in("/tmp").unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.next();
            send_message(&stream, &ServerMessage::Welcome(welcome(role_with_pin)));
            for (line, reply) in lines.zip(script) {
                let ClientMessage::Request(request) = ClientMessage::parse(line.as_bytes()).unwrap() else {
                    panic!("a request was expected: {line}");
                };
                let _ = sender.send(request.command);
                let result = CommandResult::from(reply);
                send_message(&stream, &ServerMessage::Response(ApiResponse { id: request.id, result }));
            }
        });
        Self { folder, seen }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Returns the commands received since the last call.
    pub(crate) fn received_commands(&self) -> Vec<Command> {
        self.seen.try_iter().collect()
    }
}

fn welcome(role_with_pin: Option<ClientRole>) -> ServerWelcome {
    ServerWelcome {
        api_version: 1,
        speaks: 1,
        daemon_version: "0.1.0".to_owned(),
        client_id: ClientId::from_random(1),
        role: ClientRole::Shell,
        role_with_pin,
    }
}

fn send_message(mut stream: &UnixStream, message: &ServerMessage) {
    let mut line = serde_json::to_vec(message).unwrap();
    line.push(b'\n');
    // The client may have closed the connection already.
    let _ = stream.write_all(&line);
}
