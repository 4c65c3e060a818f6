//! `shepherd policy init --interactive`: asks eight questions, and writes a policy of the answers (S19.4).
//!
//! Nothing is written before the last question is answered, and then the whole file at once.

mod answers;
mod family;
mod installed_programs;
mod prompt;
mod render;
mod rules;
mod write_file;

use std::io::IsTerminal;
use std::path::Path;

use rustix::process::geteuid;
use serde::Serialize;
use shepherd_api::{AdminPin, Command, CommandReply};
use shepherd_config::load_bytes;
use shepherd_ipc::SystemAccounts;
use shepherd_util::ErrorChain;
use ward_terminal::TextTone;

use self::answers::PolicyAnswers;
use self::installed_programs::InstalledPrograms;
use self::prompt::{AnswerSource, TerminalPrompt};
use crate::context::CommandContext;
use crate::daemon::{DaemonConnection, may_administer};
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;
use crate::policy_warnings;

/// Facts of this machine that the questions suggest and check answers with.
pub(crate) struct MachineFacts {
    accounts: SystemAccounts,
    programs: InstalledPrograms,
    /// The login of the person who answers.
    own_login: Option<String>,
    /// The width of the terminal.
    width: usize,
}

#[derive(Serialize)]
struct PolicyWrittenReport<'p> {
    written: &'p Path,
}

/// Asks the questions at the terminal, and writes the policy to a file.
pub(crate) fn run(
    file: &Path,
    context: &CommandContext,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(ShepherdCliError::NoTerminalForQuestions);
    }
    write_file::check_folder(file)?;
    let mut prompt = TerminalPrompt;
    if file.exists() && !ask_replacement(file, &mut prompt)? {
        return Err(ShepherdCliError::PolicyExists { file: file.to_owned() });
    }
    let accounts =
        SystemAccounts::read().map_err(|error| ShepherdCliError::Accounts(ErrorChain(&error).to_string()))?;
    let machine = MachineFacts {
        own_login: own_login(&accounts, context),
        accounts,
        programs: InstalledPrograms::find(context.environment()),
        width: context.display.width,
    };
    let daemon = daemon_for_pin(file, context);
    let answers = ask_all(&mut prompt, &machine, daemon.is_some())?;
    let text = render::render_policy(&answers);
    let name = file.display().to_string();
    // The rules and their examples were made of valid answers. If they are not valid, nothing is written.
    let loaded = load_bytes(&name, text.as_bytes())
        .map_err(|report| ShepherdCliError::AnswersNotValid(report.to_string()))?;
    let old = write_file::replace_file(file, &text)?;
    output.print_result(&PolicyWrittenReport { written: file }, |output| {
        output.print_line("");
        output.print_marked(TextTone::Good, "✓", &format!("wrote {name}"));
        if let Some(old) = old {
            output.print_marked(TextTone::Good, "✓", &format!("kept the old rules in {}", old.display()));
        }
        policy_warnings::print_warnings(&policy_warnings::collect_warnings(&loaded, file, context), output);
    });
    if let (Some(pin), Some(mut daemon)) = (answers.pin, daemon) {
        set_pin(pin, &mut daemon, output);
    }
    print_next_steps(file, context, output);
    Ok(())
}

/// Asks the eight questions.
fn ask_all(
    prompt: &mut impl AnswerSource,
    machine: &MachineFacts,
    can_set_pin: bool,
) -> Result<PolicyAnswers, ShepherdCliError> {
    prompt.say(
        "Eight questions, and your rules are written. Enter takes what is in [brackets].\n\
         Ctrl-C stops, and then nothing is changed.",
    );
    let names = family::ask_children(prompt)?;
    let children = family::ask_logins(names, prompt, machine)?;
    let children = family::ask_bedtimes(children, prompt)?;
    let minutes = rules::ask_minutes(prompt)?;
    let programs = rules::ask_programs(prompt, machine)?;
    let parents = family::ask_parents(&children, prompt, machine)?;
    let pin = family::ask_pin(prompt, can_set_pin)?;
    let warnings = rules::ask_warnings(prompt)?;
    Ok(PolicyAnswers { children, minutes, programs, parents, pin, warnings })
}

fn ask_replacement(file: &Path, prompt: &mut impl AnswerSource) -> Result<bool, ShepherdCliError> {
    prompt.say(&format!("{} exists. Its rules will be kept in another file beside it.", file.display()));
    prompt.ask_yes("Write new rules?", false)
}

/// Returns the login of the person: behind `sudo`, the one who typed it.
fn own_login(accounts: &SystemAccounts, context: &CommandContext) -> Option<String> {
    let behind_sudo =
        context.environment().get("SUDO_USER").and_then(|name| name.to_str()).map(str::to_owned);
    let own = behind_sudo.or_else(|| accounts.user_name(geteuid().as_raw()).map(str::to_owned))?;
    accounts.person_names().any(|name| name == own).then_some(own)
}

/// Connects to the daemon that reads the file, if this user may set its PIN.
fn daemon_for_pin<'c>(file: &Path, context: &'c CommandContext) -> Option<DaemonConnection<'c>> {
    let reads_file = |reply: &CommandReply| match reply {
        CommandReply::Policy { path: Some(path), .. } => {
            let folder =
                |path: &Path| Some((path.parent()?.canonicalize().ok()?, path.file_name()?.to_owned()));
            folder(Path::new(path)) == folder(file)
        }
        _ => false,
    };
    if !context.has_daemon() {
        return None;
    }
    let mut daemon = DaemonConnection::connect(context).ok()?;
    if !may_administer(daemon.client()) {
        return None;
    }
    daemon.client().call(Command::GetPolicy {}).ok().filter(reads_file)?;
    Some(daemon)
}

/// Sets the PIN. The rules are written by now, so a failure is only reported.
fn set_pin(pin: AdminPin, daemon: &mut DaemonConnection<'_>, output: &mut ConsoleOutput) {
    match daemon.send_command(&Command::SetPin { pin: Some(pin) }) {
        Ok(_) => output.print_marked(TextTone::Good, "✓", "administrators need the PIN from now on"),
        Err(error) => {
            let note = format!("could not set the PIN: {error}; `sudo shepherd pin set` tries again");
            output.print_marked(TextTone::Warn, "!", &note);
        }
    }
}

fn print_next_steps(file: &Path, context: &CommandContext, output: &mut ConsoleOutput) {
    let sudo = if geteuid().is_root() { "sudo " } else { "" };
    let is_own = context.policy_file().is_ok_and(|policy| policy == file);
    let file = file.display();
    let reload = if is_own {
        format!("`{sudo}shepherd reload`")
    } else {
        format!("`{sudo}shepherd policy set {file}`")
    };
    output.print_note(&format!("  To put the rules into force: {reload}"));
    output.print_note(&format!("  To read them in plain words: `shepherd policy show {file}`"));
}

#[cfg(test)]
mod tests;
