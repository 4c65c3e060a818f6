//! The connection to the daemon. It sends commands, and the administrator's PIN if a command needs the PIN.

mod name_lookup;

use std::io::IsTerminal;

use shepherd_api::{ApiError, ClientRole, Command, CommandReply, ErrorCode, ProfileView, SessionView};
use shepherd_ipc::{BlockingClient, CallError, ClientOptions};
use shepherd_util::ProfileId;

use crate::client_display;
use crate::context::{CommandContext, DisplaySettings, PolicyLabels};
use crate::error::ShepherdCliError;
use crate::humanize;
use crate::pin;
use crate::pin_recipient;
use crate::refusal::RefusedCommand;

/// The client's name in the daemon's log.
const CLIENT_NAME: &str = "shepherd";

pub(crate) struct DaemonConnection<'c> {
    client: BlockingClient,
    context: &'c CommandContext,
    /// The profile that was chosen with `--profile`.
    profile: Option<ProfileId>,
}

pub(crate) fn client_options(context: &CommandContext) -> Result<ClientOptions, ShepherdCliError> {
    Ok(ClientOptions::new(context.socket()?, CLIENT_NAME))
}

impl<'c> DaemonConnection<'c> {
    pub(crate) fn connect(context: &'c CommandContext) -> Result<Self, ShepherdCliError> {
        let client = BlockingClient::connect(&client_options(context)?)?;
        let mut daemon = Self { client, context, profile: None };
        if let Some(given) = &context.profile {
            daemon.profile = Some(daemon.resolve_profile(given)?);
        }
        Ok(daemon)
    }

    pub(crate) fn context(&self) -> &'c CommandContext {
        self.context
    }

    /// Returns the profile that was chosen with `--profile`.
    pub(crate) fn profile(&self) -> Option<ProfileId> {
        self.profile.clone()
    }

    /// Sends a command. If the daemon asks for the PIN, obtains the PIN and sends the command again.
    pub(crate) fn send_command(&mut self, command: &Command) -> Result<CommandReply, ShepherdCliError> {
        if matches!(command, Command::SetPin { pin: Some(_) }) {
            pin_recipient::check_pin_recipient(&self.client)?;
        }
        match client_display::call_daemon(&mut self.client, command.clone()) {
            Err(CallError::Refused(error)) if error.code == ErrorCode::PinRequired => {
                let Some(pin) = self.obtain_pin()? else {
                    return Err(self.describe_refusal(error, command));
                };
                self.call(&Command::Authenticate { pin })?;
                self.call(command)
            }
            result => self.check_reply(result, command),
        }
    }

    /// Sends a question about one child. If the user doesn't name a child, has no profile and may see several, such as a
    /// parent, asks it about each of them. The replies come with the child if there may be several.
    pub(crate) fn ask_about_children(
        &mut self,
        question: impl Fn(Option<ProfileId>) -> Command,
    ) -> Result<Vec<(Option<ProfileView>, CommandReply)>, ShepherdCliError> {
        let refused = match self.send_command(&question(self.profile())) {
            Ok(reply) => return Ok(vec![(None, reply)]),
            Err(error) if self.profile.is_none() && error.is_unknown_profile() => error,
            Err(error) => return Err(error),
        };
        let mut replies = Vec::new();
        for child in self.fetch_profiles()? {
            match self.client.call(question(Some(child.profile.clone()))) {
                Ok(reply) => replies.push((Some(child), reply)),
                Err(CallError::Refused(error)) if name_lookup::is_about_profile(error.code) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if replies.is_empty() { Err(refused) } else { Ok(replies) }
    }

    pub(crate) fn client(&mut self) -> &mut BlockingClient {
        &mut self.client
    }

    /// Fetches the labels of the profiles, of the profile's entries and of running entries. If a label can't be fetched,
    /// the id is shown.
    pub(crate) fn fetch_labels(&mut self) -> PolicyLabels {
        let mut labels = PolicyLabels::default();
        for (entry_id, label) in self.fetch_entry_names(self.profile().as_ref()).unwrap_or_default() {
            labels.insert(entry_id, label);
        }
        if let Ok(CommandReply::State { snapshot }) = self.call(&Command::GetState {}) {
            labels.set_language(snapshot.language);
            // Entries of other profiles may be running.
            for session in snapshot.all_sessions() {
                labels.insert(session.entry_id.clone(), session.label.clone());
            }
            snapshot.profiles.into_iter().for_each(|profile| labels.insert_profile(profile));
        }
        labels
    }

    /// Returns all sessions, the oldest first; none if the daemon can't be asked.
    pub(crate) fn fetch_sessions(&mut self) -> Vec<SessionView> {
        match self.call(&Command::GetState {}) {
            Ok(CommandReply::State { snapshot }) => snapshot.all_sessions().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the display settings with the labels of entries.
    pub(crate) fn display_with_labels(&mut self) -> DisplaySettings {
        let labels = self.fetch_labels();
        self.context.display.with_labels(labels)
    }

    fn call(&mut self, command: &Command) -> Result<CommandReply, ShepherdCliError> {
        let result = client_display::call_daemon(&mut self.client, command.clone());
        self.check_reply(result, command)
    }

    fn check_reply(
        &mut self,
        result: Result<CommandReply, CallError>,
        command: &Command,
    ) -> Result<CommandReply, ShepherdCliError> {
        result.map_err(|error| match error {
            CallError::Refused(error) => self.describe_refusal(error, command),
            other => other.into(),
        })
    }

    /// Adds to a refusal what the user probably meant.
    fn describe_refusal(&mut self, error: ApiError, command: &Command) -> ShepherdCliError {
        let mut refused =
            RefusedCommand::new(error, command, self.client.welcome().role, &self.context.display);
        if refused.error.code == ErrorCode::UnknownProfile {
            let known = self.fetch_profile_names().unwrap_or_default();
            refused.profiles = known.into_iter().map(|(profile, _)| profile).collect();
        } else if let Some(entry_id) = refused.unknown_entry().cloned() {
            refused.near = self.find_near_entry(entry_id.as_str(), refused.profile().cloned().as_ref());
        }
        ShepherdCliError::Refused(Box::new(refused))
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
    command: &Command,
) -> Result<CommandReply, ShepherdCliError> {
    DaemonConnection::connect(context)?.send_command(command)
}

/// Returns true for an administrator, and for somebody who becomes one with the PIN.
pub(crate) fn may_administer(client: &BlockingClient) -> bool {
    let welcome = client.welcome();
    welcome.role_with_pin.unwrap_or(welcome.role) == ClientRole::Admin
}

/// Returns a line for an administrator if the rules in force aren't those of the policy file. It needs no PIN. A daemon
/// that gives no health is no reason to hide everything else.
pub(crate) fn fetch_old_rules(client: &mut BlockingClient) -> Option<String> {
    if !may_administer(client) {
        return None;
    }
    match client.call(Command::Health {}) {
        Ok(CommandReply::Health { health }) => humanize::old_rules(&health),
        _ => None,
    }
}

/// Returns the display settings for an error. Reasons are in the language of the policy, and name entries by their label.
pub(crate) fn display_for_error(failure: &ShepherdCliError, context: &CommandContext) -> DisplaySettings {
    match failure {
        ShepherdCliError::Refused(refused) if !refused.error.reasons.is_empty() => {
            DaemonConnection::connect(context)
                .map_or_else(|_| context.display.clone(), |mut daemon| daemon.display_with_labels())
        }
        _ => context.display.clone(),
    }
}
