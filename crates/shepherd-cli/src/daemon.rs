//! One conversation with the daemon, with the administrator's PIN where it needs one.

use std::io::IsTerminal;

use shepherd_api::{Command, ErrorCode, Reply};
use shepherd_ipc::{CallError, Client, ClientOptions};

use crate::confidant;
use crate::context::Context;
use crate::failure::Failure;
use crate::pin;

/// What we call ourselves in the daemon's log.
const CLIENT_NAME: &str = "shepherd";

pub(crate) struct Daemon<'c> {
    client: Client,
    context: &'c Context,
}

pub(crate) fn client_options(context: &Context) -> Result<ClientOptions, Failure> {
    Ok(ClientOptions::new(context.socket()?, CLIENT_NAME))
}

impl<'c> Daemon<'c> {
    pub(crate) fn connect(context: &'c Context) -> Result<Self, Failure> {
        let client = Client::connect(&client_options(context)?)?;
        Ok(Self { client, context })
    }

    /// Gives a command. If only an administrator may, and we could become one with the PIN, it is asked for.
    pub(crate) fn ask(&mut self, command: Command) -> Result<Reply, Failure> {
        if matches!(command, Command::SetPin { pin: Some(_) }) {
            confidant::check(&self.client)?;
        }
        match self.client.call(command.clone()) {
            Err(CallError::Refused(error)) if error.code == ErrorCode::PinRequired => {
                let Some(pin) = self.pin()? else { return Err(Failure::Refused(error)) };
                self.call(Command::Authenticate { pin })?;
                self.call(command)
            }
            Err(error) => Err(error.into()),
            Ok(reply) => Ok(reply),
        }
    }

    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    fn call(&mut self, command: Command) -> Result<Reply, Failure> {
        Ok(self.client.call(command)?)
    }

    fn pin(&self) -> Result<Option<shepherd_api::Pin>, Failure> {
        // Nobody types it for the wrong one.
        confidant::check(&self.client)?;
        if let Some(file) = &self.context.pin_file {
            return pin::read_file(file).map(Some);
        }
        let at_a_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if at_a_terminal {
            pin::ask("This is for an administrator. PIN, or Enter to give up: ")
        } else {
            Ok(None)
        }
    }
}

/// One question, one answer.
pub(crate) fn ask(context: &Context, command: Command) -> Result<Reply, Failure> {
    Daemon::connect(context)?.ask(command)
}
