//! One conversation with the daemon, with the administrator's PIN where it needs one.

use std::io::IsTerminal;

use shepherd_api::{Command, CommandReply, ErrorCode};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions};

use crate::context::CommandContext;
use crate::error::ShepherdCliError;
use crate::pin;
use crate::pin_recipient;

/// What we call ourselves in the daemon's log.
const CLIENT_NAME: &str = "shepherd";

pub(crate) struct DaemonConnection<'c> {
    client: BlockingClient,
    context: &'c CommandContext,
}

pub(crate) fn client_options(context: &CommandContext) -> Result<ClientOptions, ShepherdCliError> {
    Ok(ClientOptions::new(context.socket()?, CLIENT_NAME))
}

impl<'c> DaemonConnection<'c> {
    pub(crate) fn connect(context: &'c CommandContext) -> Result<Self, ShepherdCliError> {
        let client = BlockingClient::connect(&client_options(context)?)?;
        Ok(Self { client, context })
    }

    /// Gives a command. If only an administrator may, and we could become one with the PIN, it is asked for.
    pub(crate) fn send_command(&mut self, command: Command) -> Result<CommandReply, ShepherdCliError> {
        if matches!(command, Command::SetPin { pin: Some(_) }) {
            pin_recipient::check_pin_recipient(&self.client)?;
        }
        match self.client.call(command.clone()) {
            Err(CallError::Refused(error)) if error.code == ErrorCode::PinRequired => {
                let Some(pin) = self.obtain_pin()? else { return Err(ShepherdCliError::Refused(error)) };
                self.call(Command::Authenticate { pin })?;
                self.call(command)
            }
            Err(error) => Err(error.into()),
            Ok(reply) => Ok(reply),
        }
    }

    pub(crate) fn client(&mut self) -> &mut BlockingClient {
        &mut self.client
    }

    fn call(&mut self, command: Command) -> Result<CommandReply, ShepherdCliError> {
        Ok(self.client.call(command)?)
    }

    fn obtain_pin(&self) -> Result<Option<shepherd_api::AdminPin>, ShepherdCliError> {
        // Nobody types it for the wrong one.
        pin_recipient::check_pin_recipient(&self.client)?;
        if let Some(file) = &self.context.pin_file {
            return pin::read_file(file).map(Some);
        }
        let at_a_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if at_a_terminal {
            pin::prompt_pin("This is for an administrator. PIN, or Enter to give up: ")
        } else {
            Ok(None)
        }
    }
}

/// One question, one answer.
pub(crate) fn send_command(
    context: &CommandContext,
    command: Command,
) -> Result<CommandReply, ShepherdCliError> {
    DaemonConnection::connect(context)?.send_command(command)
}
