//! The connection to the daemon. It sends commands, and the administrator's PIN if a command needs the PIN.

use std::io::IsTerminal;

use shepherd_api::{Command, CommandReply, ErrorCode, ReasonCode};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions};

use crate::client_display;
use crate::context::{CommandContext, DisplaySettings, EntryLabels};
use crate::error::ShepherdCliError;
use crate::pin;
use crate::pin_recipient;

/// The client's name in the daemon's log.
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

    /// Sends a command. If the daemon asks for the PIN, obtains the PIN and sends the command again.
    pub(crate) fn send_command(&mut self, command: Command) -> Result<CommandReply, ShepherdCliError> {
        if matches!(command, Command::SetPin { pin: Some(_) }) {
            pin_recipient::check_pin_recipient(&self.client)?;
        }
        match client_display::call_daemon(&mut self.client, command.clone()) {
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

    /// Fetches the labels of the profile's entries and of the running entry. A label that can't be fetched is missing, and
    /// its entry is shown by its id.
    pub(crate) fn fetch_labels(&mut self) -> EntryLabels {
        let profile = self.context.profile.clone();
        let mut labels = match self.call(Command::ListEntries { at_time: None, profile }) {
            Ok(CommandReply::Entries { entries, .. }) => EntryLabels::from_entries(&entries),
            _ => EntryLabels::default(),
        };
        // An entry of another profile may be running.
        if let Ok(CommandReply::State { snapshot }) = self.call(Command::GetState {})
            && let Some(session) = snapshot.session
        {
            labels.insert(session.entry_id, session.label);
        }
        labels
    }

    /// Returns the display settings with the labels of entries.
    pub(crate) fn display_with_labels(&mut self) -> DisplaySettings {
        let labels = self.fetch_labels();
        self.context.display.with_labels(labels)
    }

    fn call(&mut self, command: Command) -> Result<CommandReply, ShepherdCliError> {
        Ok(client_display::call_daemon(&mut self.client, command)?)
    }

    fn obtain_pin(&self) -> Result<Option<shepherd_api::AdminPin>, ShepherdCliError> {
        // Checked before the prompt, so that nobody types the PIN for a fake daemon.
        pin_recipient::check_pin_recipient(&self.client)?;
        if let Some(file) = &self.context.pin_file {
            return pin::read_file(file).map(Some);
        }
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if is_terminal {
            pin::prompt_pin("Only an administrator can do this. PIN, or Enter to give up: ")
        } else {
            Ok(None)
        }
    }
}

/// Sends one command on a new connection.
pub(crate) fn send_command(
    context: &CommandContext,
    command: Command,
) -> Result<CommandReply, ShepherdCliError> {
    DaemonConnection::connect(context)?.send_command(command)
}

/// Returns the display settings for an error, with the labels of entries if a reason of the error names an entry.
pub(crate) fn display_for_error(failure: &ShepherdCliError, context: &CommandContext) -> DisplaySettings {
    let names_entry = |reason: &ReasonCode| {
        matches!(reason, ReasonCode::SessionActive { .. } | ReasonCode::NotUnlocked { .. })
    };
    match failure {
        ShepherdCliError::Refused(error) if error.reasons.iter().any(names_entry) => {
            DaemonConnection::connect(context)
                .map_or_else(|_| context.display.clone(), |mut daemon| daemon.display_with_labels())
        }
        _ => context.display.clone(),
    }
}
